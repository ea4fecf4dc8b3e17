-- Each judgment with its own hash (entry), a hash of its unit (coin) and the number of judgments in the unit.
-- Answers of one annotator to one unit are numbered from 0 by their content; the number is part of the hash.
SELECT {columns}, annotator_hash, size,
  (annotator_hash + occurrence_hash) % 2147483647 * (unit_hash % 2147483647) % 2147483647 AS entry,
  unit_hash % 2147483647 * {first_occurrence_hash} % 2147483647 AS coin
FROM (
  SELECT digests.*, ({digits}) % 2147483646 + 1 AS occurrence_hash
  FROM (
    SELECT numbered.*, MD5(CONCAT('{seed}:', CAST(occurrence AS STRING))) AS digest
    FROM (
      SELECT r.*, ROW_NUMBER() OVER (PARTITION BY {unit}, annotator_hash ORDER BY {content}) - 1 AS occurrence,
        COUNT(*) OVER (PARTITION BY {unit}) AS size
      FROM {rows} r) AS numbered) AS digests) AS hashed
