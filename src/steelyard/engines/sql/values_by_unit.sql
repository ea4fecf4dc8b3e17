-- What each unit gave each item.
SELECT unit, item, CAST(SUM(n) AS BIGINT) AS n, SUM(n * value) AS total FROM {showings} GROUP BY unit, item
