-- The largest value of ratings, whatever its sign.
SELECT MAX(ABS(value)) AS largest FROM {p}log WHERE {kept}
