//! The parameter catalog: one row per tunable, read from data.
