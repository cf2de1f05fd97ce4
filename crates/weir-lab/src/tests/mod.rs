//! Whole runs on a simulated host.

mod bench;
mod faults;
