-- Comparisons with their outcome: 1 where left won, -1 where right won, 0 for a tie.
-- A side's name counts only where it is neither of the two items.
SELECT {unit} AS unit, left_item, right_item, CAST(1 AS BIGINT) AS n, CASE
  WHEN winner = left_item THEN 1
  WHEN winner = right_item THEN -1
  WHEN LOWER(winner) = 'left' THEN 1
  WHEN LOWER(winner) = 'right' THEN -1
  WHEN LOWER(winner) IN ('tie', 'draw', '=') THEN 0 END AS outcome
FROM {p}log WHERE {kept}
