-- The units, each once.
SELECT DISTINCT unit FROM {cells}
