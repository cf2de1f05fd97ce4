//! Figures of loads and runs for Prometheus.
//!
//! ```text
//! weir-lab's events ─► Feed ─► Store ─┬─► text, protobuf ─► Server (scrapes)
//! a run folder ──► backfill ──────────┴─► remote write, OpenMetrics with time stamps
//! ```
//!
//! The [`store::Store`] holds the latest value of a bounded number of series, so neither memory nor a scrape grows with
//! the length of a run. Everything here runs on threads of its own; the load engine knows nothing of it.

#![warn(missing_docs)]

pub mod backfill;
pub mod families;
pub mod feed;
pub mod histogram;
pub mod openmetrics;
pub mod protobuf;
pub mod remote;
pub mod samples;
pub mod server;
pub mod store;
mod write_messages;

pub use feed::Feed;
pub use remote::{Delivery, RemoteWrite, Version};
pub use server::{Server, ServerError};
pub use store::Store;
