//! Announcements of proposers, which show the progress of a run.

use std::time::Duration;

use serde::{Serialize, Serializer};
use weir_model::record::{BracketRecord, CapacityRecord, LookRecord, PilotRecord};

/// Progress of a plan or a search. As JSON, times are seconds (docs/progress.md).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Announcement {
    /// A pilot for one load begins.
    PilotBegun {
        /// Name of the load.
        load: String,
    },
    /// A pilot has ended and chosen the slice length.
    PilotEnded(PilotRecord),
    /// The trial of a load begins, or of several loads that share a trial.
    TrialBegun {
        /// Names of the loads.
        loads: Vec<String>,
        /// Number of blocks to measure.
        blocks: u32,
        /// Estimated length of the trial.
        #[serde(serialize_with = "seconds")]
        length: Duration,
        /// Rate of an open loop, requests per second; `None` in a closed loop.
        rate: Option<f64>,
        /// Numbers of blocks after which the results are evaluated, if the trial ends as soon as everything is decided;
        /// otherwise empty.
        looks: Vec<u32>,
    },
    /// The results of a load were evaluated.
    Looked {
        /// Decisions, and arms that go on.
        look: Box<LookRecord>,
        /// Estimated time that the load still takes.
        #[serde(serialize_with = "seconds")]
        left: Duration,
        /// Maximum time that the load still takes.
        #[serde(serialize_with = "seconds")]
        at_most: Duration,
    },
    /// The budget is nearly used up, and measurements without enough time are left out.
    TimeIsUp {
        /// Names of the loads that get less than planned, or nothing.
        left_out: String,
    },
    /// A step of a search is done.
    Bracket {
        /// State of the search after the step.
        bracket: BracketRecord,
        /// Estimated time that all searches of the run still take.
        #[serde(serialize_with = "seconds")]
        left: Duration,
    },
    /// A search has ended.
    Capacity(Box<CapacityRecord>),
    /// The plan is done, and two arms are measured one at a time.
    AloneBegun {
        /// Name of the arm that the other is compared with, and of the other.
        arms: [String; 2],
        /// Reason for the choice, as half a sentence.
        why: String,
        /// Number of stretches to measure.
        stretches: u32,
        /// Estimated length of all stretches.
        #[serde(serialize_with = "seconds")]
        length: Duration,
    },
    /// An arm is about to run alone: for a stretch, or for the search of its capacity.
    AloneTurn {
        /// Name of the arm.
        arm: String,
        /// Number of the stretch, from 1 on, over all sessions.
        stretch: u32,
        /// Total number of stretches.
        of: u32,
    },
    /// The side-by-side measurement is done, and an arm now has a load alone for a while, so that samples show its
    /// limiter.
    StretchBegun {
        /// Name of the arm.
        arm: String,
        /// Name of the load.
        load: String,
        /// Number of the stretch, from 1 on.
        stretch: u32,
        /// Number of all stretches of this session.
        of: u32,
        /// Estimated length of the stretch.
        #[serde(serialize_with = "seconds")]
        length: Duration,
    },
    /// No arm could be measured alone.
    NotAlone {
        /// Reason, as half a sentence.
        why: String,
    },
    /// All blocks of these loads are recorded.
    TrialEnded {
        /// Names of the loads.
        loads: Vec<String>,
    },
}

fn seconds<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(length.as_secs_f64())
}
