-- Comparisons to be split within each pair (of one task, if tasks are known).
-- Answers of one annotator are ordered by the outcome for the item with the lower hash.
SELECT q.annotator, COALESCE(w.hash, 1) AS annotator_hash, a.hash + b.hash + COALESCE(t.hash, 0) AS unit_hash,
  {task} AS task, LEAST(a.code, b.code) AS item0, GREATEST(a.code, b.code) AS item1,
  CASE WHEN a.code < b.code THEN q.outcome ELSE -q.outcome END AS outcome,
  CASE WHEN a.hash < b.hash THEN q.outcome ELSE -q.outcome END AS content0
FROM {pairs} q JOIN {p}split_items a ON q.left_item = a.id JOIN {p}split_items b ON q.right_item = b.id
  LEFT JOIN {p}split_annotators w ON q.annotator = w.unit LEFT JOIN {p}split_tasks t ON {task} = t.unit
