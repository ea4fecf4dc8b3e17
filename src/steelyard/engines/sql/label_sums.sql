-- E step: sum over the labels of an item, by true class, of the values for annotator, fold and label.
SELECT l.item, t.true_class, SUM(t.value) AS value
FROM {labels} l JOIN {p}label_values t ON l.annotator = t.annotator AND l.fold = t.fold AND l.label = t.label
GROUP BY l.item, t.true_class
