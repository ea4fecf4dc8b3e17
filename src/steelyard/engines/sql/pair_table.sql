-- Wins, losses and ties of each pair of items. Items are integer codes, which take far less memory than ids.
SELECT first_item, second_item, CAST(SUM(CASE WHEN outcome > 0 THEN n ELSE 0 END) AS BIGINT) AS wins,
  CAST(SUM(CASE WHEN outcome < 0 THEN n ELSE 0 END) AS BIGINT) AS losses,
  CAST(SUM(CASE WHEN outcome = 0 THEN n ELSE 0 END) AS BIGINT) AS ties
FROM (
  SELECT LEAST(a.code, b.code) AS first_item, GREATEST(a.code, b.code) AS second_item, q.n,
    CASE WHEN a.code < b.code THEN q.outcome ELSE -q.outcome END AS outcome
  FROM {pairs} q JOIN {p}ids a ON q.left_item = a.id JOIN {p}ids b ON q.right_item = b.id) AS ordered
GROUP BY first_item, second_item
