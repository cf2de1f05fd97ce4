"""The side-by-side benchmark of weir's load engine. `bench/run` is the way in; README.md says why."""
