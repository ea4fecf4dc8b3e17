-- Number of annotators who labelled each item.
SELECT item, COUNT(DISTINCT annotator) AS annotators FROM {p}log WHERE label IS NOT NULL GROUP BY item
