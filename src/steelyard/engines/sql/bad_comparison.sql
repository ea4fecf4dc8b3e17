-- The problem of a comparison, or null.
CASE WHEN {needed} AND left_item IS NULL THEN 'left'
  WHEN {needed} AND right_item IS NULL THEN 'right'
  WHEN left_item = right_item THEN 'same'
  WHEN winner IS NOT NULL AND ({outcome}) IS NULL THEN 'winner' END
