-- How many judgments show each item.
SELECT item, CAST(SUM(n) AS BIGINT) AS judgments FROM {showings} GROUP BY item
