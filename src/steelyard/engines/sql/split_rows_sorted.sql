-- One pass of a sorting network over the items of each tuple.
SELECT {columns} FROM (
{rows}) AS s
