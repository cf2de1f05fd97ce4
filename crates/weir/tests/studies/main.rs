//! Tests of the program as its users run it: `weir run` and `weir capacity` with real proxies, and their reports.

mod capacity;
mod capacity_refused;
mod report;
mod run;
mod run_alone;
mod run_bursts;
mod run_capacity;
mod run_cells;
mod run_flows;
mod run_kernel;
mod run_launch;
mod run_loads;
mod run_own;
mod run_own_asked;
mod run_own_clients;
mod run_own_copies;
mod run_own_refused;
mod run_own_sockets;
mod run_proxies;
mod run_refused;
mod run_stopped;
mod run_times;
mod run_until;
mod screen;
mod studies;
mod taken;
