-- How often each item got each value.
SELECT item, value, CAST(SUM(n) AS BIGINT) AS n FROM {showings} GROUP BY item, value
