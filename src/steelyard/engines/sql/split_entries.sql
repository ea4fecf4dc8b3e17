-- Every judgment with a hash of its own and one of its unit (the coin), and how many the unit has.
-- Answers of one annotator to one unit are numbered from 0 by what they say, and the number is hashed too.
SELECT {columns}, person, size,
  (person + again) % 2147483647 * (unit_hash % 2147483647) % 2147483647 AS entry,
  unit_hash % 2147483647 * {again_0} % 2147483647 AS coin
FROM (
  SELECT digests.*, ({digits}) % 2147483646 + 1 AS again
  FROM (
    SELECT numbered.*, MD5(CONCAT('{seed}:', CAST(occurrence AS STRING))) AS digest
    FROM (
      SELECT r.*, ROW_NUMBER() OVER (PARTITION BY {unit}, person ORDER BY {content}) - 1 AS occurrence,
        COUNT(*) OVER (PARTITION BY {unit}) AS size
      FROM {rows} r) AS numbered) AS digests) AS hashed
