-- M step: sum of the posteriors of the items that each annotator labelled with each class.
SELECT l.annotator, l.label, q.true_class, SUM(q.probability) AS expected
FROM {labels} l JOIN {p}posterior q ON l.item = q.item
GROUP BY l.annotator, l.label, q.true_class
