-- How many annotators labelled each item.
SELECT item, COUNT(DISTINCT annotator) AS annotators FROM {p}log WHERE label IS NOT NULL GROUP BY item
