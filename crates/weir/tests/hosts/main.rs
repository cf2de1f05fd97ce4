//! Tests of the program as its users run it: other hosts, settings of hosts, and their end: agents over ssh, networks, kills, `weir restore`.

mod agent;
mod install;
mod kills;
mod places;
mod places_generators;
mod places_lies;
mod places_refused;
mod restore;
mod run_bypass;
