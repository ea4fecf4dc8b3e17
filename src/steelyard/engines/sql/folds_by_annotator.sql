-- The folds in which each annotator labelled an item.
SELECT DISTINCT annotator, fold FROM {labels} WHERE fold >= 0
