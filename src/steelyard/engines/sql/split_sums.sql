-- Sum and number of values by trial, half and item; a judgment gives a value to each of its items.
SELECT trial, half, item, SUM(CAST(value AS DOUBLE)) AS total, COUNT(*) AS n
FROM (
  SELECT h.trial, h.half, {item} AS item, {value} AS value
  FROM {halves} h CROSS JOIN {p}split_positions o) AS item_values
WHERE item >= 0 GROUP BY trial, half, item
