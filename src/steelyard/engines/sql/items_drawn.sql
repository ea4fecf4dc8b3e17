-- The items with a label of an annotator who was drawn.
SELECT DISTINCT l.item FROM {labels} l JOIN {p}drawn d ON l.annotator = d.annotator
