-- Number of judgments in units with at least two judgments.
SELECT COALESCE(CAST(SUM(CASE WHEN n > 1 THEN n ELSE 0 END) AS BIGINT), 0) AS n
FROM (SELECT COUNT(*) AS n FROM {rows} GROUP BY {unit}) AS sizes
