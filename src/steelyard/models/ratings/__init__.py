"""Models of ratings."""
