-- The rows of one criterion, whose name is in a table of one row.
SELECT t.* FROM {p}trimmed t JOIN {q}criterion c ON COALESCE(t.criterion, '') = c.criterion
