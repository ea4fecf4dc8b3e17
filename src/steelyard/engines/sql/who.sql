-- Who judged, and in which task: how many rows do not say so.
SELECT {kept} AS kept, annotator IS NULL AS nobody, task IS NULL AS no_task, COUNT(*) AS n
FROM {p}log GROUP BY {kept}, annotator IS NULL, task IS NULL
