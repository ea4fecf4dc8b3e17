-- The items labelled by at least one annotator in the bootstrap sample.
SELECT DISTINCT l.item FROM {labels} l JOIN {p}sampled_annotators d ON l.annotator = d.annotator
