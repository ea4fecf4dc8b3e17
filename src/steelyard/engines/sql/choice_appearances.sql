-- The items in one column of the tuples, with value 1 for best, -1 for worst and 0 otherwise.
SELECT {unit} AS unit, {item} AS item,
  CAST(CASE WHEN {item} = best THEN 1 ELSE 0 END - CASE WHEN {item} = worst THEN 1 ELSE 0 END AS DOUBLE) AS value,
  CAST(1 AS BIGINT) AS n
FROM {p}log WHERE {item} IS NOT NULL AND {usable}
