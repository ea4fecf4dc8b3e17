-- As values_by_item, with each judgment as its own unit.
WITH sums AS (SELECT item, CAST(SUM(n) AS BIGINT) AS judgments, SUM(n * value) AS total FROM {appearances} GROUP BY item)
SELECT v.item, MAX(s.judgments) AS judgments, MAX(s.total) AS total, MAX(s.judgments) AS units,
  MAX(s.total / s.judgments) AS mean,
  SUM(v.n * (v.value - s.total / s.judgments) * (v.value - s.total / s.judgments)) AS squares
FROM {appearances} v JOIN sums s ON v.item = s.item GROUP BY v.item
