-- The criteria in the rows; '' for rows without one.
SELECT DISTINCT COALESCE(criterion, '') AS criterion FROM {p}trimmed
