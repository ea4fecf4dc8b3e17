-- The folds that each annotator met.
SELECT DISTINCT annotator, fold FROM {labels} WHERE fold >= 0
