-- Number and sum of the values by unit and item.
SELECT unit, item, CAST(SUM(n) AS BIGINT) AS n, SUM(n * value) AS total FROM {appearances} GROUP BY unit, item
