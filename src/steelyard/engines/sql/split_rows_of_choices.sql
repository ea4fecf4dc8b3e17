-- Choices to be split within each tuple: the codes of its items (-1 for an empty column), best and worst.
-- Answers of one annotator are ordered by the hashes of the worst and the best item.
SELECT r.annotator, COALESCE(w.hash, 1) AS annotator_hash, {hashes} AS unit_hash, {codes},
  best.code AS best, worst.code AS worst,
  COALESCE(worst.hash, 0) AS content0, COALESCE(best.hash, 0) AS content1
FROM {p}log r LEFT JOIN {p}split_annotators w ON r.annotator = w.unit
  LEFT JOIN {p}split_items best ON r.best = best.id LEFT JOIN {p}split_items worst ON r.worst = worst.id
  {joins}
WHERE {usable}
