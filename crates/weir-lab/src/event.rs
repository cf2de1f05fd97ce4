//! What a run tells while it goes on.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};
use weir_host::journal::Restored;
use weir_model::quantity::CpuSet;
use weir_model::record::{
    AskedRecord, BracketRecord, CapacityRecord, LookRecord, PilotRecord, Remark,
};
use weir_model::study::Until;

/// What a run tells while it goes on. As JSON, times are seconds (docs/progress.md).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Pods of a workload are being replaced that the run needs: it begins when that is over.
    RollOutAwaited {
        /// The workload.
        workload: String,
        /// How long it is waited for.
        #[serde(serialize_with = "seconds")]
        within: Duration,
    },
    /// The run folder is there.
    Begun {
        /// Where records go.
        folder: PathBuf,
        /// Whether it goes on with what an earlier session began.
        is_resumed: bool,
        /// What the reader of the figures must know about the place.
        remarks: Vec<Remark>,
        /// How long this session will take, about, as far as that is known before any arm runs.
        #[serde(serialize_with = "seconds")]
        takes: Duration,
        /// The CPUs that weir keeps to, so that the proxies have theirs for themselves; `None`: any.
        #[serde(skip)]
        cpus: Option<CpuSet>,
    },
    /// All arms run.
    Takes {
        /// This session will take so long from its begin to its end, everything included ...
        #[serde(serialize_with = "seconds")]
        takes: Duration,
        /// ... at most, where loads are measured until everything is decided.
        until: Until,
    },
    /// The same of a search for capacities, at most: where the target changes, and where short trials hold what does not last.
    TakesAtMost {
        /// From the session's begin to its end.
        #[serde(serialize_with = "seconds")]
        takes: Duration,
    },
    /// An arm's proxy accepts connections and answered rightly.
    ArmReady {
        /// The arm.
        arm: String,
        /// Address that it listens on.
        address: String,
        /// What loads ask of the user's configuration, where it is a copy of one.
        asked: Vec<AskedRecord>,
        /// What the proxy remarks about its configuration.
        remarks: Vec<String>,
    },
    /// A pilot for one load begins.
    PilotBegun {
        /// The load.
        load: String,
    },
    /// A pilot has chosen.
    PilotEnded(PilotRecord),
    /// The trial of a load begins, or of several that share one.
    TrialBegun {
        /// The loads.
        loads: Vec<String>,
        /// Blocks to be measured.
        blocks: u32,
        /// How long it will take.
        #[serde(serialize_with = "seconds")]
        length: Duration,
        /// Rate of the open loop in requests per second, where it is one.
        rate: Option<f64>,
        /// After how many blocks it is looked at, where it ends as soon as everything is decided; else empty.
        looks: Vec<u32>,
    },
    /// A load was looked at.
    Looked {
        /// What was decided, and which arms go on.
        look: Box<LookRecord>,
        /// How long the load will probably take from here.
        #[serde(serialize_with = "seconds")]
        left: Duration,
        /// And at most.
        #[serde(serialize_with = "seconds")]
        at_most: Duration,
    },
    /// The budget is nearly used up: what has no time any more is left out.
    TimeIsUp {
        /// The loads that have less than was planned, or nothing.
        left_out: String,
    },
    /// A block was recorded.
    Block {
        /// The loads of the trial.
        loads: Vec<String>,
        /// Blocks recorded so far, over all sessions.
        done: u32,
        /// Blocks planned.
        of: u32,
        /// Requests per second that the baseline completed in this block.
        baseline_rate: f64,
    },
    /// A step of a search is done.
    Bracket {
        /// What is known now.
        bracket: BracketRecord,
        /// What all searches of the run still take, about.
        #[serde(serialize_with = "seconds")]
        left: Duration,
    },
    /// A search has ended.
    Capacity(Box<CapacityRecord>),
    /// The plan is done, and two arms are measured one at a time.
    AloneBegun {
        /// The one that the other is compared with, and the other.
        arms: [String; 2],
        /// Why these, in half a sentence.
        why: String,
        /// Stretches that are to be measured.
        stretches: u32,
        /// How long they will take.
        #[serde(serialize_with = "seconds")]
        length: Duration,
    },
    /// An arm is about to run alone: for a stretch, or for the search of its capacity.
    AloneTurn {
        /// The arm.
        arm: String,
        /// Which of the stretches it is, from 1 on, over all sessions.
        stretch: u32,
        /// All.
        of: u32,
    },
    /// Side by side is done, and an arm has a load alone for a while: samples tell what limits it.
    StretchBegun {
        /// The arm.
        arm: String,
        /// The load.
        load: String,
        /// Which of the stretches it is, from 1 on.
        stretch: u32,
        /// All of this session.
        of: u32,
        /// How long it will take.
        #[serde(serialize_with = "seconds")]
        length: Duration,
    },
    /// No arm could be measured alone, and why.
    NotAlone {
        /// In half a sentence.
        why: String,
    },
    /// Settings of the proxies' host have been put back, or could not be.
    PutBack {
        /// The settings.
        settings: Vec<Restored>,
    },
    /// Objects of the cluster have been put back, or could not be.
    ObjectsPutBack {
        /// The objects.
        objects: Vec<weir_kube::PutBack>,
    },
    /// All blocks of these loads are recorded.
    TrialEnded {
        /// The loads.
        loads: Vec<String>,
    },
}

fn seconds<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(length.as_secs_f64())
}
