"""Models of best–worst choices."""
