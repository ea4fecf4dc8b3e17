-- Poisson(1) weight of each unit in each replicate, by inversion of (multiplier * key + shift)^5 modulo 2^31 - 1,
-- where a unit's key is 32 bits of md5("seed:unit").
SELECT unit, replicate, CASE
  {cases}
  END AS weight
FROM (
  SELECT unit, replicate, square * square % 2147483647 * x % 2147483647 AS random_key
  FROM (
    SELECT unit, replicate, x, x * x % 2147483647 AS square
    FROM (
      SELECT k.unit, r.replicate, (k.hash * r.multiplier + r.shift) % 2147483647 AS x
      FROM {keys} k CROSS JOIN {p}replicates r) AS mixed) AS squared) AS scrambled
