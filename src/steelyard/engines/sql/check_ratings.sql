-- Ratings with errors, counted by kind, and the range of the values.
SELECT problem, MIN(example) AS example, COUNT(*) AS n, COUNT(value) AS usable, MIN(value) AS lowest, MAX(value) AS highest
FROM (
  SELECT value, CAST(value AS STRING) AS example, CASE
    WHEN item IS NULL THEN 'item'
    WHEN value = CAST('NaN' AS DOUBLE) OR ABS(value) = CAST('Infinity' AS DOUBLE) THEN 'number'
    WHEN value < {low} OR value > {high} THEN 'outside' END AS problem
  FROM {p}log) AS checked
GROUP BY problem
