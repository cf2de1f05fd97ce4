//! The description of a load: the input of the engine from `weir load` and from studies, and the message that goes to
//! the generator.
//!
//! A load has flows that send at the same time, the main one first. A flow's requests are specifications until the
//! engine renders them for a protocol. The module [`words`] reads arguments and study files into this description.

use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::load::{Arrivals, Assignment, Close, Lifetime, Overflow, RequestSpec, Segment, Spacing};
use crate::request::{ExpectSpec, WeightedRequest};
use crate::spin::Spin;
use crate::study::MatrixCell;
use crate::tls::TlsSpec;

pub mod words;

/// Default number of connections of a flow.
pub const CONNECTIONS: u32 = 50;

/// Default time limit for a response.
pub const TIMEOUT: Duration = Duration::from_secs(2);

/// Name of a load's own flow, if there are several.
pub const MAIN: &str = "main";

/// Name of the flow of a load's held connections.
pub const HELD: &str = "held";

/// One load. In a study, every arm is measured under every load.
///
/// It derefs to its main flow: "the connections of a load" are those of the main flow, and code that means all flows
/// uses [`LoadSpec::flows`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadSpec {
    /// Short name, unique in the study.
    pub name: String,
    /// Main flow of the load.
    pub main: FlowSpec,
    /// Other flows that run at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<FlowSpec>,
    /// Measured time; in a study, the total length of the slices of all arms.
    pub duration: Duration,
    /// Time in which the load grows to its full rate, not measured; zero in a study.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub ramp_up: Duration,
    /// Time before each arrival for which the generator's thread stays awake.
    #[serde(default, skip_serializing_if = "Spin::is_off")]
    pub spin: Spin,
    /// Size in bytes of the requested file, whose name then is the request's target
    /// ([`file_target`](crate::study::file_target)); `None`: the target is the study's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Position in a matrix of loads; `None` if the load is not part of one.
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
    /// Creates a load of one flow.
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

    /// Iterates over all flows, the main one first.
    pub fn flows(&self) -> impl Iterator<Item = &FlowSpec> {
        std::iter::once(&self.main).chain(&self.beside)
    }

    /// Flows of the load, the main one first, to be changed.
    pub fn flows_mut(&mut self) -> impl Iterator<Item = &mut FlowSpec> {
        std::iter::once(&mut self.main).chain(&mut self.beside)
    }

    /// Number of connections that send requests, in all flows together.
    pub fn asking(&self) -> u64 {
        self.flows().filter(|flow| !flow.is_held()).map(|flow| u64::from(flow.connections)).sum()
    }

    /// Number of connections that are opened and never used, in all flows together.
    pub fn held(&self) -> u64 {
        self.flows().filter(|flow| flow.is_held()).map(|flow| u64::from(flow.connections)).sum()
    }

    /// Returns true if at least one flow uses TLS.
    pub fn is_secure(&self) -> bool {
        self.flows().any(|flow| flow.tls.is_some())
    }

    /// Requests per second of all flows together, if the description gives them; `None` in a closed loop, and if a rate
    /// depends on measurements.
    pub fn rate(&self) -> Option<f64> {
        self.flows().filter(|flow| !flow.is_held()).map(FlowSpec::rate).sum()
    }

    /// Returns true if every request names the status codes that it expects.
    pub fn expects_status(&self) -> bool {
        let mut requests =
            self.flows().filter(|flow| !flow.is_held()).flat_map(|flow| &flow.requests);
        requests
            .all(|request| request.expect.as_ref().is_some_and(|expect| !expect.status.is_empty()))
    }

    /// Longest response timeout of all flows.
    pub fn longest_timeout(&self) -> Duration {
        self.flows().map(|flow| flow.timeout).max().unwrap_or_default()
    }
}

/// Connections that send the same mix of requests to the same server in the same manner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSpec {
    /// Short name, unique in the load.
    pub name: String,
    /// Number of connections, opened before the trial unless each serves one request.
    pub connections: u32,
    /// Times at which requests are due.
    pub arrivals: ArrivalsSpec,
    /// Spacing of arrivals at a given rate.
    pub spacing: Spacing,
    /// Lifetime of a connection.
    pub lifetime: Lifetime,
    /// Way to close a connection at the end of its lifetime.
    pub close: Close,
    /// Maximum number of connections opened per second; `None` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_rate: Option<f64>,
    /// Maximum number of requests in flight on one connection; at least 1.
    #[serde(default = "one")]
    pub pipeline: u16,
    /// Rule that assigns due requests to connections.
    pub assignment: Assignment,
    /// Treatment of a request that is due when no connection is idle.
    pub overflow: Overflow,
    /// Maximum number of requests; `None` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Time limit for a response, and for opening a connection.
    pub timeout: Duration,
    /// TLS settings of the connections; `None` means no TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
    /// Port of the listener to connect to, as in the user's configuration of the proxy; `None`: the proxy's own, or the
    /// first that passes requests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Server name for handshakes and for Host fields of requests that have none; `None`: the sender chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Requests to send, mixed by weight; at least one. If a trace has requests of its own, they take their fields,
    /// content and expectations from the first of these.
    pub requests: Vec<WeightedRequest>,
    /// Local addresses of the connections.
    pub sources: SourceSpec,
}

fn one() -> u16 {
    1
}

/// Times at which the requests of a flow are due, as far as they are known before a measurement.
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
    /// Open loop at such a share, or at a half, a quarter or an eighth of it if the generator is not punctual at more.
    UpToShareOfSlowest(f64),
    /// Open loop at a rate that changes; in a study, the rate restarts in every slice.
    Varied(Vec<Segment>),
    /// Open loop at recorded times; in a study, the recording restarts in every slice.
    Trace(TraceSpec),
    /// No requests: connections are opened and held.
    Held,
}

/// Recorded arrivals and their replay speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceSpec {
    /// Path of the file of timestamps or the access log.
    pub file: String,
    /// Factor by which the replay is faster than the recording.
    pub speed: f64,
}

/// Local addresses that connections come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SourceSpec {
    /// The number of addresses that the connections need.
    #[default]
    Needed,
    /// This number of the available addresses.
    Count(u8),
    /// Exactly these addresses.
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

    /// Creates a flow of kept connections without TLS that requests `/`.
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

    /// Creates a flow of connections that are opened beside others and never used.
    pub fn held(connections: u32) -> FlowSpec {
        FlowSpec { name: HELD.to_owned(), ..FlowSpec::new(connections, ArrivalsSpec::Held) }
    }

    /// Returns true if the flow's connections are opened and never used.
    pub fn is_held(&self) -> bool {
        self.arrivals == ArrivalsSpec::Held
    }

    /// Returns true for an open loop: requests are due at times that do not depend on responses.
    pub fn is_open(&self) -> bool {
        !matches!(self.arrivals, ArrivalsSpec::Closed | ArrivalsSpec::Held)
    }

    /// Returns true if the rate varies or is recorded, so that the flow must restart in every slice.
    pub fn changes(&self) -> bool {
        matches!(self.arrivals, ArrivalsSpec::Varied(_) | ArrivalsSpec::Trace(_))
    }

    /// Requests per second; `None` if the description does not give a constant rate.
    pub fn rate(&self) -> Option<f64> {
        match &self.arrivals {
            ArrivalsSpec::Constant(rate) => Some(*rate),
            _ => None,
        }
    }

    /// First of the flow's requests.
    pub fn request(&self) -> Option<&RequestSpec> {
        self.requests.first().map(|weighted| &weighted.request)
    }

    /// Expectations on the response to the first of the flow's requests.
    pub fn expect(&self) -> Option<&ExpectSpec> {
        self.requests.first()?.expect.as_ref()
    }

    /// Requests in the form in which they are sent. If a connection serves one request and closes in order, the request
    /// says `Connection: close` (RFC 9112 §9.6). The server then closes first, as for a client without keep-alive, and
    /// TIME_WAIT holds none of the generator's ports. The field is left out if the connection is to be reset, since the
    /// reset is to end it.
    pub fn sent(&self) -> Vec<WeightedRequest> {
        let mut requests = self.requests.clone();
        if self.lifetime == Lifetime::Request && self.close == Close::Fin {
            for weighted in &mut requests {
                weighted.request.add_field("Connection", "close");
            }
        }
        requests
    }

    /// Returns the arrivals in the engine's form. `rate` is the rate in requests per second if it is decided elsewhere;
    /// `None`: the description's own. The length of a trace is not filled in; it is known from the trace's file.
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
            ArrivalsSpec::Constant(_)
            | ArrivalsSpec::ShareOfSlowest(_)
            | ArrivalsSpec::UpToShareOfSlowest(_) => {
                let constant = rate.or(self.rate()).unwrap_or_default();
                if self.spacing == Spacing::Even {
                    return Arrivals::Constant { rate: constant };
                }
                vec![Segment::flat(constant)]
            }
        };
        Arrivals::Varied { segments, spacing: self.spacing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{Resumption, TlsVersion};

    #[test]
    fn loads_are_written_and_read_back() {
        let flow = FlowSpec {
            spacing: Spacing::Burst { size: 100 },
            lifetime: Lifetime::Requests(10),
            close: Close::Reset,
            assignment: Assignment::PerConnection,
            pipeline: 4,
            tls: Some(TlsSpec {
                versions: vec![TlsVersion::V1_2],
                resumption: Resumption::Ratio(0.8),
                ..TlsSpec::default()
            }),
            ..FlowSpec::new(100, ArrivalsSpec::ShareOfSlowest(0.6))
        };
        let load = LoadSpec {
            beside: vec![FlowSpec::held(1000)],
            spin: Spin::For(Duration::from_micros(50)),
            size: Some(1024),
            ..LoadSpec::new("c100-r300", flow, Duration::from_secs(60))
        };
        let text = serde_json::to_string(&load).unwrap();
        assert_eq!(serde_json::from_str::<LoadSpec>(&text).unwrap(), load);
        let without_main = text.replace("\"main\"", "\"other\"");
        assert!(serde_json::from_str::<LoadSpec>(&without_main).is_err());
    }
}
