-- The different values of ratings, up to a number of them.
SELECT DISTINCT value FROM {p}log WHERE {usable} LIMIT {most}
