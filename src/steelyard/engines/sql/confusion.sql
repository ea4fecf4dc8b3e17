-- Confusion counts of the annotators on items with gold.
SELECT annotator, gold, fold, label, COUNT(*) AS n FROM {labels} WHERE gold >= 0
GROUP BY annotator, gold, fold, label
