-- Weighted sums of the values by replicate and item; the weights are those of the units.
SELECT w.replicate, c.item, SUM(w.weight * c.total) AS total, CAST(SUM(w.weight * c.n) AS BIGINT) AS n
FROM {cells} c JOIN {p}weights w ON c.unit = w.unit
WHERE w.weight > 0
GROUP BY w.replicate, c.item
