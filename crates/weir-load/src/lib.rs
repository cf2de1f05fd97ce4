//! The load engine: open and closed loop HTTP/1.1 load, free of coordinated omission.
//!
//! A [`Plan`] describes targets, requests, arrivals and duration. [`run`] executes it with one pinned thread for each
//! given CPU; the threads share nothing while the trial runs. Each thread is an event-driven [`engine`] over a small
//! [`reactor::Reactor`] interface, so that the same engine runs on real sockets and, in tests, on a simulated network
//! with a simulated clock.
//!
//! # Definitions of times
//!
//! All times are CLOCK_MONOTONIC nanoseconds. A request has an *intended* time (when the schedule wanted it sent), a
//! *sent* time, and the times of its response's first and last byte. `response_time` runs from the intended time,
//! `service_time` from the sent time. In an open loop the two diverge as soon as the server falls behind; reporting
//! only the second is coordinated omission. `dispatch_lag` is the engine's own lateness: from the moment a request was
//! due *and* a connection was idle to the moment it was sent. Receive times are stamped when a batch of events is taken
//! from the kernel, before any of it is parsed.
//!
//! # Slices
//!
//! A trial is a sequence of slices, each directing the load at one group of connections. A plain load test has one
//! group and slices of one second, which give the figures over time. A comparison has a group for each arm and switches
//! between them about every tenth of a second; see the documentation of `weir-lab`.

#![warn(missing_docs)]

pub mod calibrate;
pub mod descriptors;
pub mod engine;
pub mod expect;
pub mod figures;
pub mod files;
pub mod floor;
mod gate;
pub mod har;
pub mod ledger;
pub mod null_server;
pub mod plan;
pub mod reactor;
pub mod request_set;
pub mod schedule;
mod sys;
pub mod template;
pub mod tls;
pub mod trace;
pub mod trial;
mod watch;

pub use ledger::{Errors, Histograms, SliceData};
pub use plan::{Flow, Plan, Slice};
pub use reactor::{Io, Route};
pub use request_set::RequestSet;
pub use trace::{Trace, TraceError};
pub use trial::{Appointment, Control, LoadError, OPENING, Outcome, run};
pub use watch::Watch;
pub use weir_stats::SplitMix64;
