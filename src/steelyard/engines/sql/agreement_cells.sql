-- Answers counted by unit and value; those of annotators who answered a unit more than once are kept apart.
-- Units with a single answer are left out: there is nothing to hold it against.
WITH by_person AS (
  SELECT {unit}, annotator, {value} AS answer, COUNT(*) AS n FROM {rows}
  WHERE {given} GROUP BY {unit}, annotator, {value}),
several AS (SELECT {unit} FROM by_person GROUP BY {unit} HAVING SUM(n) > 1),
repeated AS (SELECT {unit}, annotator FROM by_person GROUP BY {unit}, annotator HAVING SUM(n) > 1)
SELECT {unit_of_b}, r.annotator, b.answer, CAST(SUM(b.n) AS BIGINT) AS n
FROM by_person b JOIN several s ON {as_s} LEFT JOIN repeated r ON {as_r} AND b.annotator = r.annotator
GROUP BY {unit_of_b}, r.annotator, b.answer
