-- Comparisons with their outcome: 1 if left won, -1 if right won, 0 for a tie.
SELECT {unit} AS unit, annotator, task, left_item, right_item, CAST(1 AS BIGINT) AS n, {outcome} AS outcome
FROM {p}log WHERE {usable}
