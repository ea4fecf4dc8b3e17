-- Rated items with their values.
SELECT {unit} AS unit, item, {value} AS value, CAST(1 AS BIGINT) AS n FROM {p}log WHERE value IS NOT NULL
