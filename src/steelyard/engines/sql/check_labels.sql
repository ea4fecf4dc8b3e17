-- Labels that cannot be used.
SELECT problem, MIN(label) AS example, COUNT(*) AS n, COUNT(label) AS given
FROM (SELECT label, CASE WHEN item IS NULL THEN 'item' END AS problem FROM {p}log) AS checked
GROUP BY problem
