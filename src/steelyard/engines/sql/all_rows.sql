-- Every row, for logs without a criterion column.
SELECT * FROM {p}trimmed
