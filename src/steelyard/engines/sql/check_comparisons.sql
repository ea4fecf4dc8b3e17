-- Comparisons with errors, counted by kind.
SELECT problem, MIN(CASE WHEN problem IS NOT NULL THEN CONCAT('winner ''', COALESCE(winner, ''), ''', of ''',
    COALESCE(left_item, ''), ''' and ''', COALESCE(right_item, ''), '''') END) AS example,
  COUNT(*) AS n, CAST(SUM(usable) AS BIGINT) AS usable
FROM (
  SELECT left_item, right_item, winner, CASE WHEN {usable} THEN 1 ELSE 0 END AS usable, {problem} AS problem
  FROM {p}log) AS checked
GROUP BY problem
