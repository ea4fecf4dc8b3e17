-- The E step: what all labels of an item say of each true class.
SELECT l.item, t.true_class, SUM(t.value) AS value
FROM {labels} l JOIN {p}told t ON l.annotator = t.annotator AND l.fold = t.fold AND l.label = t.label
GROUP BY l.item, t.true_class
