"""Slices beside restarts: what weir's way to compare saves. `bench/compare` is the way in."""
