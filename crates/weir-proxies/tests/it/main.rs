//! Tests of all proxies: users' configurations in their languages, and the programs that are installed on this machine.

mod languages;
mod programs;
