-- Answers counted by item and value; those of annotators who answered an item more than once are kept apart.
WITH by_person AS (
  SELECT item, annotator, {value} AS answer, COUNT(*) AS n FROM {p}log WHERE {kept} GROUP BY item, annotator, {value}),
repeated AS (SELECT item, annotator FROM by_person GROUP BY item, annotator HAVING SUM(n) > 1)
SELECT b.item, r.annotator, b.answer, CAST(SUM(b.n) AS BIGINT) AS n
FROM by_person b LEFT JOIN repeated r ON b.item = r.item AND b.annotator = r.annotator
GROUP BY b.item, r.annotator, b.answer
