-- Every row: there are no criteria to tell apart.
SELECT * FROM {p}trimmed
