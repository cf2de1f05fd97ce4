//! Messages about load: what is asked of the generator, and what it counts.

use std::borrow::Borrow;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_load::SliceData;
use weir_model::load::{Arrivals, ErrorCount, Lifetime};
use weir_model::load_report::TlsReport;
use weir_model::record::ConnectionCounts;
use weir_model::study::TlsOffer;

use super::Bytes;

/// To carry a load out: a continuous trial over several arms, as the load engine sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadJob {
    /// One for each arm.
    pub flows: Vec<FlowJob>,
    /// Who has the load when.
    pub slices: Vec<SliceJob>,
    /// How long is waited at the end for what is still in flight.
    pub drain: Duration,
    /// The engine's threads, each with its CPU.
    pub threads: Vec<Option<u32>>,
    /// Descriptors that one of them may need.
    pub descriptors: u64,
}

/// All that the engine has to know about one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowJob {
    /// Place among the arms.
    pub arm: usize,
    /// Whom to ask.
    pub peer: SocketAddr,
    /// How, over TLS; absent: in clear.
    pub tls: Option<TlsJob>,
    /// The request, as it goes over the wire (inside TLS where there is TLS).
    pub request: Bytes,
    /// Whether it is a HEAD request.
    pub head: bool,
    /// Connections that ask.
    pub connections: u32,
    /// When they do so, from the trial's start on, whichever arm has the load.
    pub arrivals: Arrivals,
    /// How long each of them is used.
    pub lifetime: Lifetime,
    /// Connections beside those, opened before the trial, never used, and opened again when the
    /// proxy closes them.
    pub held: u32,
    /// Addresses to connect from, in turn; empty: the kernel's choice is enough.
    pub sources: Vec<Ipv4Addr>,
    /// How long a response may take.
    pub timeout: Duration,
    /// Whether content that nobody looks at is received all the same; see
    /// [`Flow::keeps_content`](weir_load::Flow::keeps_content).
    #[serde(default)]
    pub keeps_content: bool,
}

/// TLS as a client speaks it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TlsJob {
    /// What it offers.
    pub offer: TlsOffer,
    /// Name for SNI, and that the certificate is for.
    pub server_name: String,
    /// The one certificate to trust, PEM.
    pub trust: String,
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
        /// What the connections that ask have counted. Times to the first byte stay with the generator.
        #[serde(with = "super::slice")]
        data: D,
    },
}

/// What a load leaves beside its slices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadEnd {
    /// By arm.
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
