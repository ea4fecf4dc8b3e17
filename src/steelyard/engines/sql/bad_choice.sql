-- The problem of a choice, or null.
CASE WHEN {twice} THEN 'twice'
  WHEN best IS NOT NULL AND NOT ({best_in_tuple}) THEN 'best'
  WHEN worst IS NOT NULL AND NOT ({worst_in_tuple}) THEN 'worst' END
