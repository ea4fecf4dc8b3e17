-- Expected number of correct labels of each annotator, and its variance.
SELECT l.annotator, SUM(q.probability) AS expected, SUM(q.probability * (1 - q.probability)) AS variance
FROM {labels} l JOIN {p}posterior q ON l.item = q.item AND l.label = q.true_class
GROUP BY l.annotator
