-- The items of the usable rows.
SELECT DISTINCT item FROM {p}log WHERE {usable}
