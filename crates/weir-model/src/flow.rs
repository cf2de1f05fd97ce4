//! The description of a load: what `weir load` and a study ask the engine for, and what goes over the
//! wire to the generator.
//!
//! A load has flows that send at the same time, the main one first. A flow's requests are
//! specifications until the engine renders them for a protocol. How arguments and study files are read
//! into this description is in [`words`].

use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::load::{Arrivals, Assignment, Close, Lifetime, Overflow, RequestSpec, Segment, Spacing};
use crate::request::{ExpectSpec, WeightedRequest};
use crate::spin::Spin;
use crate::study::MatrixCell;
use crate::tls::TlsSpec;

mod old;
pub mod words;

/// Connections of a flow where nobody says how many.
pub const CONNECTIONS: u32 = 50;

/// How long a response may take where nobody says.
pub const TIMEOUT: Duration = Duration::from_secs(2);

/// What the flow is called that is a load's own, where there are several.
pub const MAIN: &str = "main";

/// What the flow of a load's held connections is called.
pub const HELD: &str = "held";

/// One load. In a study, every arm is measured under every load.
///
/// It derefs to its main flow: who asks for "the connections of a load" means that one's, and
/// whoever means all of them goes through [`LoadSpec::flows`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!try_from))]
#[serde(try_from = "old::LoadShape")]
pub struct LoadSpec {
    /// Short name, unique in the study.
    pub name: String,
    /// What the load is called for.
    pub main: FlowSpec,
    /// Other flows at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<FlowSpec>,
    /// Measured time; in a study, how long the slices of all arms together last.
    pub duration: Duration,
    /// Time in which the load grows to its full height, not measured; none in a study.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub ramp_up: Duration,
    /// How long before each arrival the generator's thread is awake.
    #[serde(default, skip_serializing_if = "Spin::is_off")]
    pub spin: Spin,
    /// Size in bytes of the file that is asked for, which then is the request's target
    /// ([`file_target`](crate::study::file_target)); `None`: the target is the study's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Where it stands in a matrix of loads; `None`: it is no part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<MatrixCell>,
}

impl Deref for LoadSpec {
    type Target = FlowSpec;

    fn deref(&self) -> &FlowSpec {
        &self.main
    }
}

impl DerefMut for LoadSpec {
    fn deref_mut(&mut self) -> &mut FlowSpec {
        &mut self.main
    }
}

impl LoadSpec {
    /// A load of one flow.
    pub fn new(name: &str, main: FlowSpec, duration: Duration) -> LoadSpec {
        LoadSpec {
            name: name.to_owned(),
            main,
            beside: Vec::new(),
            duration,
            ramp_up: Duration::ZERO,
            spin: Spin::Auto,
            size: None,
            cell: None,
        }
    }

    /// All flows, the main one first.
    pub fn flows(&self) -> impl Iterator<Item = &FlowSpec> {
        std::iter::once(&self.main).chain(&self.beside)
    }

    /// Flows of the load, the main one first, to be changed.
    pub fn flows_mut(&mut self) -> impl Iterator<Item = &mut FlowSpec> {
        std::iter::once(&mut self.main).chain(&mut self.beside)
    }

    /// Connections that ask, of all flows together.
    pub fn asking(&self) -> u64 {
        let asking = self.flows().filter(|flow| !flow.is_held());
        asking.map(|flow| u64::from(flow.connections)).sum()
    }

    /// Connections that are opened and never used, of all flows together.
    pub fn held(&self) -> u64 {
        let held = self.flows().filter(|flow| flow.is_held());
        held.map(|flow| u64::from(flow.connections)).sum()
    }

    /// Whether some flow asks over TLS.
    pub fn is_secure(&self) -> bool {
        self.flows().any(|flow| flow.tls.is_some())
    }

    /// Requests per second of all flows together, as far as the description says them;
    /// `None` in a closed loop, and where a rate follows from what was measured.
    pub fn rate(&self) -> Option<f64> {
        let asking = self.flows().filter(|flow| !flow.is_held());
        asking.map(FlowSpec::rate).sum()
    }

    /// Whether all requests say which status codes are right.
    pub fn expects_status(&self) -> bool {
        let asking = self.flows().filter(|flow| !flow.is_held());
        let mut requests = asking.flat_map(|flow| &flow.requests);
        requests.all(|request| {
            request
                .expect
                .as_ref()
                .is_some_and(|expect| !expect.status.is_empty())
        })
    }

    /// The longest time that a response of any flow may take.
    pub fn longest_timeout(&self) -> Duration {
        let timeouts = self.flows().map(|flow| flow.timeout);
        timeouts.max().unwrap_or_default()
    }
}

/// Connections that send the same mix of requests to the same server in the same manner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSpec {
    /// Short name, unique in the load.
    pub name: String,
    /// Connections, opened before the trial unless each serves one request.
    pub connections: u32,
    /// When requests are due.
    pub arrivals: ArrivalsSpec,
    /// How arrivals are spread at a given rate.
    #[serde(default)]
    pub spacing: Spacing,
    /// How long a connection is used.
    #[serde(default)]
    pub lifetime: Lifetime,
    /// How a connection that has served its time is closed.
    #[serde(default)]
    pub close: Close,
    /// Connections opened per second at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_rate: Option<f64>,
    /// Requests in flight on one connection at most; at least 1.
    #[serde(default = "one")]
    pub pipeline: u16,
    /// Which connection sends what is due.
    #[serde(default)]
    pub assignment: Assignment,
    /// What becomes of a request that finds no idle connection.
    #[serde(default)]
    pub overflow: Overflow,
    /// Requests at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// How long a response may take, and a connection to open.
    pub timeout: Duration,
    /// How connections are secured; `None`: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
    /// The port of the listener that is asked, by the user's configuration of the proxy; `None`: the
    /// proxy's, or the first that passes requests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The server's name, in handshakes and in Host fields of requests that have none;
    /// `None`: whoever sends chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What is sent, mixed by weight; at least one. Where a trace has requests of its own, the first
    /// of these gives them their fields, content and expectations.
    pub requests: Vec<WeightedRequest>,
    /// Own addresses.
    #[serde(default)]
    pub sources: SourceSpec,
}

fn one() -> u16 {
    1
}

/// When the requests of a flow are due, as far as is known before anything is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArrivalsSpec {
    /// Closed loop.
    Closed,
    /// Open loop at a rate in requests per second.
    Constant(f64),
    /// Open loop at a share (0..1) of the rate that the slowest arm completed in the first
    /// closed-loop load of the study: the same rate for all arms, and one that each can carry.
    ShareOfSlowest(f64),
    /// Open loop at a rate that changes; in a study it begins anew in every slice.
    Varied(Vec<Segment>),
    /// Open loop at recorded times; in a study they begin anew in every slice.
    Trace(TraceSpec),
    /// None: connections are opened and held.
    Held,
}

/// Recorded arrivals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceSpec {
    /// The file of timestamps or the access log.
    pub file: String,
    /// So many times as fast as it was recorded.
    pub speed: f64,
}

/// Own addresses that connections come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SourceSpec {
    /// As many as the connections need.
    #[default]
    Needed,
    /// So many, of those that there are.
    Count(u8),
    /// These.
    These(Vec<IpAddr>),
}

impl FlowSpec {
    /// Returns true if some request names a coding in Accept-Encoding (RFC 9110 section 12.5.3).
    pub fn asks_compressed(&self) -> bool {
        let mut fields = self.requests.iter().flat_map(|one| &one.request.fields);
        fields.any(|(name, value)| {
            name.eq_ignore_ascii_case("accept-encoding")
                && !value.trim().eq_ignore_ascii_case("identity")
        })
    }

    /// A flow of kept connections in clear that asks for `/`.
    pub fn new(connections: u32, arrivals: ArrivalsSpec) -> FlowSpec {
        FlowSpec {
            name: MAIN.to_owned(),
            connections,
            arrivals,
            spacing: Spacing::Even,
            lifetime: Lifetime::Kept,
            close: Close::Fin,
            connect_rate: None,
            pipeline: 1,
            assignment: Assignment::Global,
            overflow: Overflow::Queue,
            limit: None,
            timeout: TIMEOUT,
            tls: None,
            port: None,
            host: None,
            requests: vec![WeightedRequest::single(RequestSpec::get("/"))],
            sources: SourceSpec::Needed,
        }
    }

    /// Connections that are opened beside others and never used.
    pub fn held(connections: u32) -> FlowSpec {
        FlowSpec {
            name: HELD.to_owned(),
            ..FlowSpec::new(connections, ArrivalsSpec::Held)
        }
    }

    /// Whether its connections are opened and never used.
    pub fn is_held(&self) -> bool {
        self.arrivals == ArrivalsSpec::Held
    }

    /// Whether requests are due at times of their own, whatever the answers do.
    pub fn is_open(&self) -> bool {
        !matches!(self.arrivals, ArrivalsSpec::Closed | ArrivalsSpec::Held)
    }

    /// Whether its rate is another at other times, so that it must begin anew in every slice.
    pub fn changes(&self) -> bool {
        matches!(
            self.arrivals,
            ArrivalsSpec::Varied(_) | ArrivalsSpec::Trace(_)
        )
    }

    /// Requests per second, where the description says them.
    pub fn rate(&self) -> Option<f64> {
        match &self.arrivals {
            ArrivalsSpec::Constant(rate) => Some(*rate),
            _ => None,
        }
    }

    /// The first of its requests.
    pub fn request(&self) -> Option<&RequestSpec> {
        self.requests.first().map(|weighted| &weighted.request)
    }

    /// What the response to the first of its requests must be like.
    pub fn expect(&self) -> Option<&ExpectSpec> {
        self.requests.first()?.expect.as_ref()
    }

    /// The requests as they are sent: a connection for one request says so (RFC 9112 §9.6), so that the
    /// server closes first, as a client without keep-alive would have it, and the wait for stray
    /// packets (TIME_WAIT) holds none of the generator's ports. One that is to be reset does not say it: the
    /// reset is to be what ends it.
    pub fn sent(&self) -> Vec<WeightedRequest> {
        let mut requests = self.requests.clone();
        if self.lifetime == Lifetime::Request && self.close == Close::Fin {
            for weighted in &mut requests {
                weighted.request.add_field("Connection", "close");
            }
        }
        requests
    }

    /// When requests are due, in the engine's words. `rate` is the rate in requests per second where
    /// that is decided elsewhere; `None`: the description's own. A trace's length is told by its file.
    pub fn resolved(&self, rate: Option<f64>) -> Arrivals {
        let segments = match &self.arrivals {
            ArrivalsSpec::Closed => return Arrivals::Closed,
            ArrivalsSpec::Held => return Arrivals::Held,
            ArrivalsSpec::Trace(trace) => {
                return Arrivals::Trace {
                    file: trace.file.clone(),
                    arrivals: 0,
                    length_ns: 0,
                    every_ns: None,
                    left_out: Vec::new(),
                };
            }
            ArrivalsSpec::Varied(segments) => segments.clone(),
            ArrivalsSpec::Constant(_) | ArrivalsSpec::ShareOfSlowest(_) => {
                let rate = rate.or(self.rate()).unwrap_or_default();
                if self.spacing == Spacing::Even {
                    return Arrivals::Constant { rate };
                }
                vec![Segment::flat(rate)]
            }
        };
        Arrivals::Varied {
            segments,
            spacing: self.spacing,
        }
    }
}
