//! Tests of whole runs on a simulated host.

mod alone;
mod bench;
mod capacity;
mod capacity_budget;
mod elsewhere;
mod faults;
mod feed;
mod generators;
mod going_on;
mod hold_ups;
mod measuring;
mod promise;
mod scaling;
mod shared;
mod turns;
mod until;
