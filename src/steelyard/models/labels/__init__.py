"""Models of labels."""
