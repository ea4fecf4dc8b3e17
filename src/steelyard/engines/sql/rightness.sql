-- How many labels of each annotator are right, by expectation, and the variance of that.
SELECT l.annotator, SUM(q.probability) AS expected, SUM(q.probability * (1 - q.probability)) AS spread
FROM {labels} l JOIN {p}posterior q ON l.item = q.item AND l.label = q.true_class
GROUP BY l.annotator
