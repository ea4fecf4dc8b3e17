"""Models of comparisons and rankings."""
