-- The rows of the files, with standard column names and surrounding spaces removed.
SELECT {columns} FROM {p}files
