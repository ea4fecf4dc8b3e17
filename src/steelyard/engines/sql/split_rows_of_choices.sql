-- Choices ready to be split within each tuple: the codes of its items (-1 where there is none), best and worst.
-- Answers of one annotator are told apart by the hashes of the worst and the best item.
SELECT r.annotator, COALESCE(w.hash, 1) AS person, {hashes} AS unit_hash, {codes},
  best.code AS best, worst.code AS worst,
  COALESCE(worst.hash, 0) AS content0, COALESCE(best.hash, 0) AS content1
FROM {p}log r LEFT JOIN {p}split_people w ON r.annotator = w.unit
  LEFT JOIN {p}split_items best ON r.best = best.id LEFT JOIN {p}split_items worst ON r.worst = worst.id
  {joins}
WHERE {kept}
