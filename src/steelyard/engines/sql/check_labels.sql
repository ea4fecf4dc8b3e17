-- Labels with errors, counted by kind.
SELECT problem, MIN(label) AS example, COUNT(*) AS n, COUNT(label) AS usable
FROM (SELECT label, {problem} AS problem FROM {p}log) AS checked
GROUP BY problem
