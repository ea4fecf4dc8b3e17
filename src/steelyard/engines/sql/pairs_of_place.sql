-- What a choice says of the item in one place: best beats it, and it beats worst.
-- A choice of the same item as best and as worst says nothing.
SELECT {unit} AS unit, best AS left_item, {place} AS right_item, CAST(1 AS BIGINT) AS n, 1 AS outcome
FROM {p}log WHERE {kept} AND {place} <> best AND (worst IS NULL OR best <> worst)
UNION ALL
SELECT {unit} AS unit, {place} AS left_item, worst AS right_item, CAST(1 AS BIGINT) AS n, 1 AS outcome
FROM {p}log WHERE {kept} AND {place} <> worst AND (best IS NULL OR (best <> worst AND {place} <> best))
