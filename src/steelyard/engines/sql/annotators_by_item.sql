-- How many annotators judged each item.
SELECT item, COUNT(DISTINCT unit) AS annotators FROM {showings} GROUP BY item
