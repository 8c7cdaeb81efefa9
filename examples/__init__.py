"""Whole programs to copy; each runs as it stands."""
