-- The problem of a label, or null.
CASE WHEN item IS NULL THEN 'item' END
