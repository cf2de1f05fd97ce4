//! Intervals, exact tests, verdicts: pure functions that know no HTTP.
