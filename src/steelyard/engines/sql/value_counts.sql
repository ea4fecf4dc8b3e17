-- Number of judgments by item and value.
SELECT item, value, CAST(SUM(n) AS BIGINT) AS n FROM {appearances} GROUP BY item, value
