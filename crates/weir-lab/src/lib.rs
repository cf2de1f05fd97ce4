//! Trials in order: arms side by side, slices, blocks, records.
//!
//! The lab is the only crate that knows both the load and the system under test. A proposer (weir-proposers) proposes
//! cells one after the other, gets the outcome of each, and decides on the next; the [`session`] is the loop between
//! the two, and [`lab`] measures:
//!
//! 1. hosts are opened and foreseeable failures are detected before anything is started (weir-hosts);
//! 2. [`arms`]: an arm's proxy is started when a cell needs it, in a network namespace of its own or on its own
//!    port, with its own origin listener, and has to answer one request correctly;
//! 3. a continuous [`trial`] switches the load between the arms of a cell by a timeline, and assembles blocks from the
//!    data of all hosts ([`assembly`]);
//! 4. each block becomes one `TrialRecord` for each arm, appended as soon as it is complete, and the trial itself a
//!    `PartRecord` ([`record`]) when it has ended.
//!
//! `weir run` is the proposer of a fixed plan, with a pilot before each load ([`run`]). If a controller of a cluster
//! configures the one proxy of all arms ([`controlled`]), they have it one after the other. Everything that happens is
//! reported as an [`Event`]; nothing is printed here.
//!
//! # Arms side by side
//!
//! All arms run at the same time on the same CPUs, and the load is switched between them in short slices. Connections
//! to all of them stay open, and nothing is restarted within a trial.
//!
//! * The design of a block is every arm twice, in a random order and its mirror image, so a linear drift cancels. With
//!   more than two arms, a block never begins with the arm that ended the one before.
//! * The first part of each slice (20 %) is not measured. The pilot measures the residue of every arm, which is the
//!   work it still has to do when the load moves on. The slice is the shortest whose unmeasured part is twice the
//!   longest residue.
//! * The proxy's CPU time is read when its slice begins: it has rested since its last slice, so the scheduler's
//!   counters, which lag by up to a tick for a running process, are exact.
//! * A response time belongs to the slice in which its request was intended. In an open loop, requests that an arm was
//!   too slow for are given up when its slice ends (counted as queued and censored): served later they would burden the
//!   next arm.
//! * Instances of a proxy with equal settings differ by about a per cent, by chance. Arms are therefore started anew
//!   between continuous trials (`blocks.instances`).

mod arms;
mod assembly;
mod changed;
mod controlled;
mod error;
mod event;
mod feed;
mod first_answer;
mod flows;
mod generators;
mod inert;
mod lab;
mod observation;
mod record;
mod run;
mod sampling;
mod session;
mod settings;
mod sums;
mod trial;

#[cfg(test)]
mod tests;

pub use arms::{PATCH, REVERT};
pub use controlled::{changes_of, edited_text, rights_of};
pub use error::{Blame, LabError};
pub use event::Event;
pub use feed::{Measured, MeasuredTimes, no_data};
pub use first_answer::is_redirect;
pub use generators::{FlowTarget, Generators, Threads};
pub use observation::Observation;
pub use run::{ask, ask_again, resume, run};
pub use session::Summary;
pub use settings::of_host;
