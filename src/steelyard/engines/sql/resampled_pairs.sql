-- Weighted wins, losses and ties by replicate and pair; the weights are those of the units.
SELECT w.replicate, c.first_item, c.second_item, CAST(SUM(w.weight * c.wins) AS BIGINT) AS wins,
  CAST(SUM(w.weight * c.losses) AS BIGINT) AS losses, CAST(SUM(w.weight * c.ties) AS BIGINT) AS ties
FROM {cells} c JOIN {p}weights w ON c.unit = w.unit
WHERE w.weight > 0
GROUP BY w.replicate, c.first_item, c.second_item
