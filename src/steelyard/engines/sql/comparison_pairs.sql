-- Comparisons with their outcome: 1 if left won, -1 if right won, 0 for a tie.
-- The words left and right name a side only if neither item has that id.
SELECT {unit} AS unit, annotator, task, left_item, right_item, CAST(1 AS BIGINT) AS n, CASE
  WHEN winner = left_item THEN 1
  WHEN winner = right_item THEN -1
  WHEN LOWER(winner) = 'left' THEN 1
  WHEN LOWER(winner) = 'right' THEN -1
  WHEN LOWER(winner) IN ('tie', 'draw', '=') THEN 0 END AS outcome
FROM {p}log WHERE {usable}
