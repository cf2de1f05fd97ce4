//! Tests of the reports, made from a synthetic run with known figures.
#![allow(missing_docs, clippy::unwrap_used)]

mod browser;
mod by_rate;
mod capacity;
mod doctor;
mod extreme;
mod fixture;
mod gains;
mod growth;
mod markup;
mod matrix;
mod page;
mod proxies;
mod readme;
mod screen;
mod text;
