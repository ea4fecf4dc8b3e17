-- Poisson(1) weight of each unit in each replicate, by inversion of 32 bits of md5("seed:replicate:unit").
-- Hexadecimal digits sort like their values, so the digests compare as numbers.
SELECT unit, replicate, CASE
  {cases}
  END AS weight
FROM (
  SELECT u.unit, r.replicate,
    SUBSTR(MD5(CONCAT('{seed}:', CAST(r.replicate AS STRING), ':', u.unit)), 1, 8) AS digest
  FROM {units} u CROSS JOIN {p}replicates r) AS hashed
