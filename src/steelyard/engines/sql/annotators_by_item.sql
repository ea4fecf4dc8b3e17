-- Number of annotators who judged each item.
SELECT item, COUNT(DISTINCT unit) AS annotators FROM {appearances} GROUP BY item
