-- Choices with errors or irregularities, counted by kind.
SELECT problem, odd, MIN(example) AS example, COUNT(*) AS n, CAST(SUM(usable) AS BIGINT) AS usable
FROM (
  SELECT CASE WHEN {usable} THEN 1 ELSE 0 END AS usable,
    CONCAT('best ''', COALESCE(best, ''), ''', worst ''', COALESCE(worst, ''), '''') AS example,
    {problem} AS problem,
    CONCAT(CASE WHEN best IS NULL THEN 'b' ELSE '' END, CASE WHEN worst IS NULL THEN 'w' ELSE '' END,
      CASE WHEN best = worst THEN 's' ELSE '' END) AS odd
  FROM {p}log) AS checked
GROUP BY problem, odd
