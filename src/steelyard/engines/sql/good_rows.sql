-- The rows of a log that have no problem.
SELECT * FROM ({rows}) AS every_row WHERE ({problem}) IS NULL
