-- 32 bits of md5("seed:unit") as an integer from 1 to 2^31 - 2.
SELECT unit, ({digits}) % 2147483646 + 1 AS hash
FROM (SELECT unit, MD5(CONCAT('{seed}:', unit)) AS digest FROM {units}) AS digests
