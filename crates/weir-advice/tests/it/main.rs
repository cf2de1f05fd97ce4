//! Tests of the recommendations that come with weir, and of the verdicts on them.

mod data;
mod verdicts;
