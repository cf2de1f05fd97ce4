//! Events that report the progress of a run.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};
use weir_host::journal::Restored;
use weir_model::quantity::CpuSet;
use weir_model::record::{AskedRecord, Remark};
use weir_model::sample::SampleRow;
use weir_model::study::Until;
use weir_proposers::Announcement;

use crate::feed::Measured;

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
    /// An arm has measured blocks: at most once a second for each load, arm and phase.
    Measured(Box<Measured>),
    /// Counters of a host were sampled. They are in the run folder, so not written as JSON Lines.
    #[serde(skip)]
    Sampled {
        /// Name of the host.
        host: String,
        /// Rows of its tables.
        rows: Vec<SampleRow>,
    },
    /// Settings of the proxies' host were restored, or could not be.
    PutBack {
        /// Outcome for each setting.
        settings: Vec<Restored>,
    },
    /// Objects of the cluster were restored, or could not be.
    ObjectsPutBack {
        /// Outcome for each object.
        objects: Vec<weir_objects::PutBack>,
    },
    /// The proposer announces what it measures, or what it has found.
    #[serde(untagged)]
    Announced(Announcement),
}

fn seconds<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(length.as_secs_f64())
}
