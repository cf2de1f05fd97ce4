//! Messages about load: what is asked of the generator, and what it counts.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_load::engine::FlowTotals;
use weir_load::{OPENING, Plan, Slice, SliceData, Trace};
use weir_model::deal::{Deal, Others};
use weir_model::flow::FlowSpec;
use weir_model::load::{Arrivals, ErrorCount};
use weir_model::load_report::{GeneratorReport, TlsReport};
use weir_model::record::ConnectionCounts;
use weir_model::spin::Spin;

use super::{Ask, Bytes};

/// To carry a load out: a continuous trial over several arms, as the load engine sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadJob {
    /// Those of each arm.
    pub flows: Vec<FlowJob>,
    /// Recorded arrivals.
    pub traces: Vec<TraceJob>,
    /// Files that the descriptions name, which need not be on the generator's host.
    pub files: BTreeMap<String, Bytes>,
    /// Who has the load when.
    pub slices: Vec<SliceJob>,
    /// How long is waited at the end for what is still in flight.
    pub drain: Duration,
    /// How long before each arrival a thread is awake.
    pub spin: Spin,
    /// The engine's threads, each with its CPU.
    pub threads: Vec<Option<u32>>,
    /// Descriptors that one of them may need.
    pub descriptors: u64,
    /// Threads of other generators, with which this one shares the flows: each takes what falls to it by number, and all
    /// start together, see [`StartLoad`].
    pub others: Others,
    /// The load grows evenly for this long.
    pub ramp_up: Duration,
    /// Whether this is a load test of one arm: its only slice is told second by second, by flow, with all that a result is
    /// made of.
    pub is_whole: bool,
}

impl Ask {
    /// How long the answer takes at most, where that is known: a load has its own length, beside the time in which
    /// connections open and that for what is in flight at its end.
    pub(crate) fn longest(&self) -> Option<Duration> {
        let Ask::LoadJob(job) = self else { return None };
        let end = job.slices.last().map_or(0, |slice| slice.end);
        Some(
            OPENING
                .saturating_add(Duration::from_nanos(end))
                .saturating_add(job.drain),
        )
    }
}

impl LoadJob {
    /// What falls to its threads.
    pub fn deal(&self) -> Deal {
        self.others.beside(self.threads.len())
    }

    /// The slices as the engine has them.
    pub fn engine_slices(&self) -> Vec<Slice> {
        if let [whole] = &self.slices[..]
            && self.is_whole
        {
            let sustain = Duration::from_nanos(whole.end).saturating_sub(self.ramp_up);
            return Plan::seconds(self.ramp_up, sustain);
        }
        let slices = self.slices.iter().map(|slice| Slice {
            arm: slice.arm,
            start: slice.start,
            measure_from: slice.measure_from,
            end: slice.end,
        });
        slices.collect()
    }

    /// Whether it is dealt to several generators.
    pub fn is_shared(&self) -> bool {
        self.others != Others::default()
    }
}

/// To start a load that several generators share, once all of them are ready.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct StartLoad {
    /// The number of the request that the load is.
    pub load: u64,
    /// When, by this generator's CLOCK_MONOTONIC, nanoseconds.
    pub at_ns: u64,
}

/// All that the engine has to know about one flow to one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowJob {
    /// Place among the arms.
    pub arm: usize,
    /// Whom to ask.
    pub peer: SocketAddr,
    /// Others who are asked as well: connections go to all in turn.
    #[serde(default)]
    pub also: Vec<SocketAddr>,
    /// The server's name: in Host fields, and for the certificate.
    pub host: String,
    /// The one certificate to trust, PEM; empty where the description says whom to trust.
    pub trust: String,
    /// Who asks for what, and how.
    pub spec: FlowSpec,
    /// When requests are due, from the trial's start on, whichever arm has the load.
    pub arrivals: Arrivals,
    /// They begin anew each time so many nanoseconds have passed; `None`: never.
    pub every_ns: Option<u64>,
    /// Its arrivals' place among the job's traces, where it has one.
    pub trace: Option<usize>,
    /// Addresses to connect from, in turn; empty: the kernel's choice is enough.
    pub sources: Vec<IpAddr>,
    /// Whether content that nobody looks at is received all the same; see
    /// [`Flow::keeps_content`](weir_load::Flow::keeps_content).
    #[serde(default)]
    pub keeps_content: bool,
}

/// Recorded arrivals and their requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceJob {
    /// Nanoseconds from each arrival to the next, the first one's from 0.
    pub gaps: Vec<u64>,
    /// Different requests, as method and target.
    pub requests: Vec<(String, String)>,
    /// For each arrival its place among them; `None`: all are those of the description.
    pub which: Option<Vec<u32>>,
}

impl From<&Trace> for TraceJob {
    fn from(trace: &Trace) -> TraceJob {
        let before = std::iter::once(&0).chain(trace.times.iter());
        let gaps = trace.times.iter().zip(before);
        TraceJob {
            gaps: gaps.map(|(time, before)| time - before).collect(),
            requests: trace.requests.clone(),
            which: trace.which.as_ref().map(|which| which.to_vec()),
        }
    }
}

impl From<&TraceJob> for Trace {
    fn from(job: &TraceJob) -> Trace {
        let times = job.gaps.iter().scan(0_u64, |time, gap| {
            *time = time.saturating_add(*gap);
            Some(*time)
        });
        Trace {
            times: times.collect(),
            requests: job.requests.clone(),
            which: job.which.as_ref().map(|which| which[..].into()),
            left_out: Vec::new(),
            longest_pause: None,
        }
    }
}

/// One slice; times in nanoseconds since the trial's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceJob {
    /// The arm that has the load.
    pub arm: usize,
    /// Begin.
    pub start: u64,
    /// Figures are taken from here on.
    pub measure_from: u64,
    /// End.
    pub end: u64,
}

/// What happens while a load goes on. Whoever tells it need not own what a slice counted, a megabyte.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    rename_all = "snake_case",
    bound(
        serialize = "D: Borrow<SliceData>",
        deserialize = "D: From<Box<SliceData>>"
    )
)]
pub enum LoadEvent<D = Box<SliceData>> {
    /// All connections are open. Of a load that is shared alone: it is started by [`StartLoad`].
    Ready,
    /// All connections are open, and slices begin.
    Started {
        /// Start of the trial by the generator's CLOCK_MONOTONIC, nanoseconds.
        at_ns: u64,
    },
    /// A slice and all its requests have ended.
    Slice {
        /// Its place.
        slice: usize,
        /// Of a whole load test the flow; else 0.
        flow: usize,
        /// What the flow's connections have counted; else those that ask, of all flows together.
        #[serde(with = "super::slice")]
        data: D,
    },
}

/// What a load leaves beside its slices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadEnd {
    /// By arm, in the order in which the flows name them.
    pub arms: Vec<FlowEnd>,
    /// Errors that belong to no slice.
    pub errors: Vec<ErrorCount>,
    /// Threads of the engine.
    pub threads: u32,
    /// How often received bytes had to wait for a buffer.
    pub starved: u64,
    /// How the kernel was asked: `io_uring` or `epoll`.
    pub io: String,
    /// Of a whole load test.
    pub whole: Option<Box<WholeEnd>>,
}

/// What the result of a load test is made of beside its slices and errors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WholeEnd {
    /// When the measuring ended, nanoseconds since the start.
    pub ended_at: u64,
    /// By flow.
    #[serde(with = "super::slice::totals")]
    pub flows: Vec<FlowTotals>,
    /// CPU time of each thread, nanoseconds.
    pub cpu_ns: Vec<u64>,
    /// What the generator says about itself.
    pub generator: GeneratorReport,
}

/// What became of the connections to one arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowEnd {
    /// Those that ask.
    pub asking: ConnectionCounts,
    /// Those that are held.
    pub held: ConnectionCounts,
    /// Handshakes of those that ask; absent in clear.
    pub tls: Option<TlsReport>,
}
