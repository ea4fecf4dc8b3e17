-- Comparisons that cannot be used.
SELECT problem, MIN(example) AS example, CAST(SUM(n) AS BIGINT) AS n, CAST(SUM(given) AS BIGINT) AS given
FROM (
  SELECT CASE WHEN {kept} THEN n ELSE 0 END AS given, n,
    CONCAT('winner ''', COALESCE(winner, ''), ''', of ''', COALESCE(left_item, ''), ''' and ''', COALESCE(right_item, ''), '''') AS example,
    CASE
      WHEN {needed} AND left_item IS NULL THEN 'left'
      WHEN {needed} AND right_item IS NULL THEN 'right'
      WHEN left_item = right_item THEN 'same'
      WHEN winner <> left_item AND winner <> right_item
        AND LOWER(winner) NOT IN ('left', 'right', 'tie', 'draw', '=') THEN 'winner' END AS problem
  FROM {p}cells) AS checked
GROUP BY problem
