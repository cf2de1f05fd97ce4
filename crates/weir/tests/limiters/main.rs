//! Tests of the program as its users run it: what limits a proxy, planted and found.

mod limiter;
mod planted;
mod strangers;
