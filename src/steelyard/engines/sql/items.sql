-- The items of the rows that count.
SELECT DISTINCT item FROM {p}log WHERE {kept}
