-- Number of rows, or of values of an expression.
SELECT COUNT({what}) AS n FROM {view}
