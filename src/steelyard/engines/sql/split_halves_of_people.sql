-- The half of every judgment in every trial where annotators are split, whose halves are brought along.
SELECT r.*, h.trial, h.half FROM {rows} r JOIN {p}split_people_halves h ON r.annotator = h.annotator
