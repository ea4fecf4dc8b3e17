-- The half of each judgment in each trial when annotators are split: that of its annotator.
SELECT r.*, h.trial, h.half FROM {rows} r JOIN {p}split_annotator_halves h ON r.annotator = h.annotator
