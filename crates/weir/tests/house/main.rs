//! Tests of the program as its users run it: the documentation, the catalog, configurations, `weir doctor` and the rules of the code.

mod config;
mod corpus;
mod docs;
mod doctor;
mod doctor_commands;
mod doctor_trust;
mod parameters;
mod patch;
mod schema;
mod tidy;
