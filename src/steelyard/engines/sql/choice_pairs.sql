-- Comparisons that choices imply for the item in one column: best beats it, and it beats worst.
-- A choice of the same item as best and worst implies no comparison.
SELECT {unit} AS unit, best AS left_item, {item} AS right_item, CAST(1 AS BIGINT) AS n, 1 AS outcome
FROM {p}log WHERE {usable} AND {item} <> best AND (worst IS NULL OR best <> worst)
UNION ALL
SELECT {unit} AS unit, {item} AS left_item, worst AS right_item, CAST(1 AS BIGINT) AS n, 1 AS outcome
FROM {p}log WHERE {usable} AND {item} <> worst AND (best IS NULL OR (best <> worst AND {item} <> best))
