-- Counts of answers by unit and value; annotators with several answers to one unit get rows of their own.
-- Units with a single answer are left out, because agreement needs at least two.
WITH by_annotator AS (
  SELECT {unit}, annotator, {value} AS answer, COUNT(*) AS n FROM {rows}
  WHERE {condition} GROUP BY {unit}, annotator, {value}),
several AS (SELECT {unit} FROM by_annotator GROUP BY {unit} HAVING SUM(n) > 1),
repeated AS (SELECT {unit}, annotator FROM by_annotator GROUP BY {unit}, annotator HAVING SUM(n) > 1)
SELECT {unit_of_b}, r.annotator, b.answer, CAST(SUM(b.n) AS BIGINT) AS n
FROM by_annotator b JOIN several s ON {as_s} LEFT JOIN repeated r ON {as_r} AND b.annotator = r.annotator
GROUP BY {unit_of_b}, r.annotator, b.answer
