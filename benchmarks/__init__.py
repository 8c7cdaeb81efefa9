"""Side-by-side measurements: ours and the alternative, in one run, on the same data."""
