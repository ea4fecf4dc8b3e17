-- The distinct ids in a column of the usable rows.
SELECT DISTINCT {column} AS unit FROM {p}log WHERE {usable} AND {column} IS NOT NULL
