//! Messages about load: jobs of the generator, and its counts.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_load::engine::FlowTotals;
use weir_load::{OPENING, Plan, Slice, SliceData, Trace};
use weir_model::deal::{Deal, OtherThreads};
use weir_model::flow::FlowSpec;
use weir_model::load::{Arrivals, ErrorCount};
use weir_model::load_report::{GeneratorReport, TlsReport};
use weir_model::record::ConnectionCounts;
use weir_model::spin::Spin;

use super::{Ask, Bytes};

/// Request to carry out a load: a continuous trial over several arms, as the load engine sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadJob {
    /// Flows of all arms.
    pub flows: Vec<FlowJob>,
    /// Recorded arrivals, which flows refer to by index.
    pub traces: Vec<TraceJob>,
    /// Contents of the files that the flow descriptions name, by that name; the files need not exist on the generator's
    /// host.
    pub files: BTreeMap<String, Bytes>,
    /// Timeline: the slices, each with the arm that has the load.
    pub slices: Vec<SliceJob>,
    /// Time to wait at the end for responses that are still in flight.
    pub drain: Duration,
    /// Lead time: how early a thread wakes up before each arrival.
    pub spin: Spin,
    /// The engine's threads, each with its CPU; `None`: not pinned.
    pub threads: Vec<Option<u32>>,
    /// File descriptors that one of the threads may need.
    pub descriptors: u64,
    /// Threads of other generators that share the flows with this one. Numbered work (arrivals, connections) is dealt
    /// to threads by its number. All generators start together, see [`StartLoad`].
    pub others: OtherThreads,
    /// Time over which the load grows evenly at the start.
    pub ramp_up: Duration,
    /// True if this is a load test of one arm: its only slice is reported second by second and by flow, with everything
    /// that a result needs.
    pub is_whole: bool,
}

impl Ask {
    /// Returns how long the answer takes at most, where that is known: a load has its own length, beside the time in
    /// which connections open and that for what is in flight at its end.
    pub(crate) fn longest(&self) -> Option<Duration> {
        let Ask::LoadJob(job) = self else { return None };
        let end = job.slices.last().map_or(0, |slice| slice.end);
        Some(OPENING.saturating_add(Duration::from_nanos(end)).saturating_add(job.drain))
    }
}

impl LoadJob {
    /// Returns the part of the work that falls to this generator's threads.
    pub fn deal(&self) -> Deal {
        self.others.beside(self.threads.len())
    }

    /// Returns the slices in the form that the engine takes.
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

    /// Returns true if the load is dealt to several generators.
    pub fn is_shared(&self) -> bool {
        self.others != OtherThreads::default()
    }
}

/// Request to start a load that several generators share. It is sent once all of them are ready.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct StartLoad {
    /// Number of the [`LoadJob`] request.
    pub load: u64,
    /// Start time by this generator's CLOCK_MONOTONIC, nanoseconds.
    pub at_ns: u64,
}

/// Everything that the engine needs to know about one flow to one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowJob {
    /// Index of the arm.
    pub arm: usize,
    /// Address to send requests to.
    pub peer: SocketAddr,
    /// Further addresses to send requests to: connections go to all addresses in turn.
    #[serde(default)]
    pub also: Vec<SocketAddr>,
    /// Name of the server, for Host fields and for checking the certificate.
    pub host: String,
    /// The one certificate to trust, PEM; empty: as the flow's description says.
    pub trust: String,
    /// Description of the flow: its requests, connections and clients.
    pub spec: FlowSpec,
    /// Due times of requests, counted from the trial's start, whichever arm has the load.
    pub arrivals: Arrivals,
    /// Period after which the arrivals repeat, nanoseconds; `None`: they do not repeat.
    pub every_ns: Option<u64>,
    /// Index of the flow's recorded arrivals among the job's traces; `None`: not recorded.
    pub trace: Option<usize>,
    /// Source addresses to connect from, in turn; empty: the kernel chooses.
    pub sources: Vec<IpAddr>,
    /// True if content is received even though nothing reads it; see
    /// [`Flow::keeps_content`](weir_load::Flow::keeps_content).
    #[serde(default)]
    pub keeps_content: bool,
}

/// Recorded arrivals and their requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceJob {
    /// Time from each arrival to the next, nanoseconds; the first is counted from 0.
    pub gaps: Vec<u64>,
    /// Distinct requests, as method and target.
    pub requests: Vec<(String, String)>,
    /// Index into `requests` for each arrival; `None`: all requests are as in the flow's description.
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

/// One slice. Times are in nanoseconds since the trial's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceJob {
    /// Index of the arm that has the load.
    pub arm: usize,
    /// Start.
    pub start: u64,
    /// Start of the measured part.
    pub measure_from: u64,
    /// End.
    pub end: u64,
}

/// Progress of a load. The parameter `D` lets a sender borrow the counts of a slice, which take a megabyte.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    rename_all = "snake_case",
    bound(serialize = "D: Borrow<SliceData>", deserialize = "D: From<Box<SliceData>>")
)]
pub enum LoadEvent<D = Box<SliceData>> {
    /// All connections are open, and the load waits for [`StartLoad`]. Sent only for shared loads.
    Ready,
    /// All connections are open, and slices begin.
    Started {
        /// Start of the trial by the generator's CLOCK_MONOTONIC, nanoseconds.
        at_ns: u64,
    },
    /// A slice and all its requests have ended.
    Slice {
        /// Index of the slice.
        slice: usize,
        /// Index of the flow in a load test ([`LoadJob::is_whole`]); else 0.
        flow: usize,
        /// Counts of that flow in a load test; else those of all flows that send requests, summed.
        #[serde(with = "super::slice")]
        data: D,
    },
}

/// Result of a load, besides its slices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadEnd {
    /// Connections of each arm, in the order in which the flows name the arms.
    pub arms: Vec<FlowEnd>,
    /// Errors that belong to no slice.
    pub errors: Vec<ErrorCount>,
    /// Threads of the engine.
    pub threads: u32,
    /// Number of times that received bytes had to wait for a buffer.
    pub starved: u64,
    /// Kernel interface that was used: `io_uring` or `epoll`.
    pub io: String,
    /// Further results of a load test; `None` for other loads.
    pub whole: Option<Box<WholeEnd>>,
}

/// Parts of a load test's result that are in neither its slices nor its errors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WholeEnd {
    /// End of the measurement, nanoseconds since the start.
    pub ended_at: u64,
    /// Totals by flow.
    #[serde(with = "super::slice::totals")]
    pub flows: Vec<FlowTotals>,
    /// CPU time of each thread, nanoseconds.
    pub cpu_ns: Vec<u64>,
    /// Report of the generator about itself.
    pub generator: GeneratorReport,
}

/// Connections to one arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowEnd {
    /// Connections that send requests.
    pub asking: ConnectionCounts,
    /// Connections that are only held open.
    pub held: ConnectionCounts,
    /// TLS handshakes of the connections that send requests; `None` without TLS.
    pub tls: Option<TlsReport>,
}
