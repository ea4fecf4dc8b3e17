-- One step of putting the items of each tuple in order.
SELECT {columns} FROM (
{rows}) AS s
