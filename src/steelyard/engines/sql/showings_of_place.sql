-- The items in one place of the tuples: 1 for best, -1 for worst.
SELECT {unit} AS unit, {place} AS item,
  CAST(CASE WHEN {place} = best THEN 1 ELSE 0 END - CASE WHEN {place} = worst THEN 1 ELSE 0 END AS DOUBLE) AS value,
  CAST(1 AS BIGINT) AS n
FROM {p}log WHERE {place} IS NOT NULL AND {kept}
