-- Sums of the values by item, and of the means of their units: how many, their mean, and the squares about it.
SELECT item, CAST(SUM(n) AS BIGINT) AS judgments, SUM(total) AS total,
  COUNT(*) AS units, AVG(total / n) AS mean, VAR_POP(total / n) * COUNT(*) AS squares
FROM {cells} GROUP BY item
