//! Messages about load: what is asked of the generator, and what it counts.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_load::{SliceData, Trace};
use weir_model::flow::FlowSpec;
use weir_model::load::{Arrivals, ErrorCount};
use weir_model::load_report::TlsReport;
use weir_model::record::ConnectionCounts;
use weir_model::spin::Spin;

use super::Bytes;

/// To carry a load out: a continuous trial over several arms, as the load engine sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

impl TraceJob {
    /// Every so manieth arrival, from the `number`-th on.
    #[must_use]
    pub fn share(&self, number: usize, of: usize) -> TraceJob {
        let Trace {
            times,
            requests,
            which,
            ..
        } = Trace::from(self);
        let which = which.map(|which| which.iter().copied().skip(number).step_by(of).collect());
        TraceJob::from(&Trace {
            times: times.iter().copied().skip(number).step_by(of).collect(),
            requests,
            which,
            skipped: 0,
        })
    }
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
            skipped: 0,
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
    /// All connections are open, and slices begin.
    Started {
        /// Start of the trial by the generator's CLOCK_MONOTONIC, nanoseconds.
        at_ns: u64,
    },
    /// A slice and all its requests have ended.
    Slice {
        /// Its place.
        slice: usize,
        /// What the connections that ask have counted, those of all flows together. Times to the first
        /// byte stay with the generator.
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
