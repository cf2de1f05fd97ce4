//! The shared data types of weir: quantities, studies, arms, load and records.
//!
//! This crate holds data without behaviour. All other crates use these types, so a change here changes the vocabulary
//! (see TERMINOLOGY.md) and, for everything under [`record`], a file format that must stay readable for years.

#![warn(missing_docs)]

pub mod arrivals;
pub mod bursts;
pub mod calibration;
pub mod deal;
pub mod environment;
#[cfg(feature = "fixture")]
pub mod fixture;
pub mod flow;
pub mod foreign;
pub mod limit;
pub mod load;
pub mod load_report;
pub mod nearest;
pub mod progress;
pub mod quantity;
pub mod record;
pub mod request;
pub mod room;
pub mod sample;
pub mod spin;
pub mod study;
pub mod tls;
