-- By item: number and sum of the values; number, mean and sum of squared deviations of the units' means.
SELECT item, CAST(SUM(n) AS BIGINT) AS judgments, SUM(total) AS total,
  COUNT(*) AS units, AVG(total / n) AS mean, VAR_POP(total / n) * COUNT(*) AS squares
FROM {cells} GROUP BY item
