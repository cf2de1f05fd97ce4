//! Events that report the progress of a run.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};
use weir_host::journal::Restored;
use weir_model::quantity::CpuSet;
use weir_model::record::{
    AskedRecord, BracketRecord, CapacityRecord, LookRecord, PilotRecord, Remark,
};
use weir_model::study::Until;

/// Progress of a run. As JSON, times are seconds (docs/progress.md).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Pods of a workload that the run needs are being replaced: the run begins when that is over.
    RollOutAwaited {
        /// The workload.
        workload: String,
        /// Maximum time to wait.
        #[serde(serialize_with = "seconds")]
        within: Duration,
    },
    /// The run folder exists.
    Begun {
        /// Path of the run folder, which gets the records.
        folder: PathBuf,
        /// True if the session resumes an earlier one.
        is_resumed: bool,
        /// Remarks for the reader of the results about hosts and CPUs.
        remarks: Vec<Remark>,
        /// Estimated length of this session, as far as known before any arm runs.
        #[serde(serialize_with = "seconds")]
        takes: Duration,
        /// CPUs to which weir keeps itself, so that the proxies have theirs alone; `None`: any.
        #[serde(skip)]
        cpus: Option<CpuSet>,
    },
    /// All arms run.
    Takes {
        /// Estimated length of this session from its start to its end, everything included.
        #[serde(serialize_with = "seconds")]
        takes: Duration,
        /// Kind of the estimate: a maximum if loads are measured until everything is decided.
        until: Until,
    },
    /// Maximum length of a search for capacities, which applies if the target changes, or if short trials hold at a
    /// rate that does not last.
    TakesAtMost {
        /// Time from the session's start to its end.
        #[serde(serialize_with = "seconds")]
        takes: Duration,
    },
    /// An arm's proxy accepts connections and has answered correctly.
    ArmReady {
        /// Name of the arm.
        arm: String,
        /// Address on which the proxy listens.
        address: String,
        /// Requests of loads to the user's configuration, if the arm is a copy of one.
        asked: Vec<AskedRecord>,
        /// Remarks about the arm's configuration and its first answers.
        remarks: Vec<String>,
    },
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
    /// A block was recorded.
    Block {
        /// Names of the trial's loads.
        loads: Vec<String>,
        /// Number of blocks recorded so far, over all sessions.
        done: u32,
        /// Number of blocks planned.
        of: u32,
        /// Requests per second that the baseline completed in this block.
        baseline_rate: f64,
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
    /// Settings of the proxies' host were restored, or could not be.
    PutBack {
        /// Outcome for each setting.
        settings: Vec<Restored>,
    },
    /// Objects of the cluster were restored, or could not be.
    ObjectsPutBack {
        /// Outcome for each object.
        objects: Vec<weir_kube::PutBack>,
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
