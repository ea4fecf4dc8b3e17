-- The rows of the files, each column under our name and trimmed.
SELECT {columns} FROM {p}files
