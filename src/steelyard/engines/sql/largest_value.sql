-- The largest absolute value of the ratings.
SELECT MAX(ABS(value)) AS largest FROM {p}log WHERE {usable}
