-- Ratings with errors, counted by kind, and the range of the values.
SELECT problem, MIN(example) AS example, COUNT(*) AS n, COUNT(value) AS usable, MIN(value) AS lowest, MAX(value) AS highest
FROM (
  SELECT value, CAST(value AS STRING) AS example, {problem} AS problem
  FROM {p}log) AS checked
GROUP BY problem
