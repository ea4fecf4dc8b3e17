-- Poisson(1) of every unit in every replicate, by inversion of 32 bits of md5("seed:replicate:unit").
-- Digits of base 16 are in the order of their characters, so texts of them compare as their numbers do.
SELECT unit, replicate, CASE
  {cases}
  END AS weight
FROM (
  SELECT u.unit, r.replicate,
    SUBSTR(MD5(CONCAT('{seed}:', CAST(r.replicate AS STRING), ':', u.unit)), 1, 8) AS digest
  FROM {units} u CROSS JOIN {p}replicates r) AS hashed
