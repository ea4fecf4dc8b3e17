-- How many rows, or how many different values of a column.
SELECT COUNT({what}) AS n FROM {view}
