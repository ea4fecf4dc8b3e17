-- The names that split-half hashes, besides those of items.
SELECT DISTINCT {column} AS unit FROM {p}log WHERE {kept} AND {column} IS NOT NULL
