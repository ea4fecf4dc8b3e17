-- The problem of a rating, or null.
CASE WHEN item IS NULL THEN 'item'
  WHEN value = CAST('NaN' AS DOUBLE) OR ABS(value) = CAST('Infinity' AS DOUBLE) THEN 'number'
  WHEN value < {low} OR value > {high} THEN 'outside' END
