//! Tests of the reports, made from a synthetic run with known figures.
#![allow(missing_docs, clippy::unwrap_used)]

mod browser;
mod by_rate;
mod capacity;
mod doctor;
// Hosts for examinations, shared with the tests of the rules; those use all of it.
#[allow(dead_code)]
#[path = "../../../weir-doctor/tests/it/host.rs"]
mod doctor_host;
mod extreme;
mod fixture;
mod gains;
mod growth;
mod markup;
mod matrix;
mod page;
mod proxies;
mod screen;
mod text;
