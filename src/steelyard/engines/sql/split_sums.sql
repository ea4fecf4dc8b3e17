-- What each half of each trial says of every item: each judgment speaks of the items in its places.
SELECT trial, half, item, SUM(CAST(value AS DOUBLE)) AS total, COUNT(*) AS n
FROM (
  SELECT h.trial, h.half, {item} AS item, {value} AS value
  FROM {halves} h CROSS JOIN {p}split_places o) AS spoken
WHERE item >= 0 GROUP BY trial, half, item
