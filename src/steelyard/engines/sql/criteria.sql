-- The criteria that rows name; '' where they name none.
SELECT DISTINCT COALESCE(criterion, '') AS criterion FROM {p}trimmed
