-- Number of labels by item and class.
SELECT item, label, COUNT(*) AS n FROM {p}log WHERE label IS NOT NULL GROUP BY item, label
