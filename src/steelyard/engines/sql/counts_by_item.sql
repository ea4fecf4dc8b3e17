-- Number of judgments in which each item appears.
SELECT item, CAST(SUM(n) AS BIGINT) AS judgments FROM {appearances} GROUP BY item
