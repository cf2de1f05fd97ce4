//! Trials in order: arms side by side, slices, blocks, records.
//!
//! The lab is the only place that knows both the load and the system under test. A run goes
//!
//! 1. [`preflight`]: what can be known to fail is found out before anything is started;
//! 2. [`places`]: an agent on each host that takes part; [`network`]: what connects them;
//! 3. [`arms`]: every arm's proxy is started in a network namespace of its own or on its own port,
//!    with its own origin listener, and has to answer one request rightly ([`flows`] says what the
//!    engine then does there);
//! 4. for each load a [`pilot`] chooses the slice, then a continuous trial for each instance of the
//!    proxies ([`measure`]) switches the load between the arms by a [`timeline`] and hands on block
//!    after block;
//! 5. each block becomes one `TrialRecord` for each arm, appended the moment it is whole, and the
//!    trial itself a `PartRecord` ([`part`]) when it has ended.
//!
//! Everything that happens on the way is told as an [`Event`]; nothing is printed here.

mod arms;
mod arrivals;
mod assembly;
mod cpus;
mod done;
mod error;
mod event;
mod flows;
mod left_out;
mod measure;
mod network;
mod part;
mod pilot;
mod places;
mod preflight;
mod record;
mod run;
mod session;
mod settings;
mod timeline;

pub use arms::{PATCH, REVERT, STOCK_NOFILE};
pub use error::LabError;
pub use event::Event;
pub use places::{Facts, PlaceSpec, Role, facts};
pub use preflight::plan_of;
pub use run::{Options, Summary, resume, run};
