-- Number of labels by annotator and class.
SELECT annotator, label, COUNT(*) AS n FROM {p}log WHERE label IS NOT NULL GROUP BY annotator, label
