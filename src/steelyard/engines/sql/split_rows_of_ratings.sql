-- Ratings to be split within each item.
SELECT r.annotator, COALESCE(w.hash, 1) AS annotator_hash, i.hash AS unit_hash, i.code AS item0, r.value AS content0
FROM {p}log r JOIN {p}split_items i ON r.item = i.id LEFT JOIN {p}split_annotators w ON r.annotator = w.unit
WHERE {usable}
