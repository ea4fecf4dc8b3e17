-- The words of winners that are neither of the two items, and whether each is the id of an item elsewhere.
SELECT w.winner, MAX(w.n) AS n, COUNT(i.id) AS items
FROM (SELECT winner, COUNT(*) AS n FROM {p}log WHERE winner <> left_item AND winner <> right_item GROUP BY winner) AS w
  LEFT JOIN (SELECT left_item AS id FROM {p}log UNION SELECT right_item AS id FROM {p}log) AS i ON w.winner = i.id
GROUP BY w.winner
