-- Number of rows by whether they are usable, lack an annotator, and lack a task.
SELECT {usable} AS usable, annotator IS NULL AS no_annotator, task IS NULL AS no_task, COUNT(*) AS n
FROM {p}log GROUP BY {usable}, annotator IS NULL, task IS NULL
