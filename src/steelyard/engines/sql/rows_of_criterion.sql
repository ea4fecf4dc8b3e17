-- The rows of one criterion, whose name is brought along.
SELECT t.* FROM {p}trimmed t JOIN {q}criterion c ON COALESCE(t.criterion, '') = c.criterion
