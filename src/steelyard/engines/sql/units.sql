-- The distinct units.
SELECT DISTINCT unit FROM {cells}
