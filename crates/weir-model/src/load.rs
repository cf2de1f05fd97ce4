//! Types that describe a load to the engine: requests, their times, and the use of connections.

use serde::{Deserialize, Serialize};

/// Times at which requests are due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Closed loop: a connection sends again as soon as its response is complete.
    Closed,
    /// Open loop: one global schedule of `rate` requests per second, independent of responses. A due request waits if
    /// no connection is idle, and its response time includes the wait.
    Constant {
        /// Requests per second over all connections and threads; above zero.
        rate: f64,
    },
    /// Open loop with a rate that changes, or arrivals that are not evenly spaced.
    Varied {
        /// The rate over time, one segment after the other; the rate at the end of the last one continues for ever.
        segments: Vec<Segment>,
        /// Spacing of arrivals at a given rate.
        spacing: Spacing,
    },
    /// Open loop: arrivals at recorded times.
    Trace {
        /// File that the times were read from.
        file: String,
        /// Number of arrivals.
        arrivals: u64,
        /// Time from the first arrival to the last, in nanoseconds.
        length_ns: u64,
        /// Period in nanoseconds after which the arrivals restart; arrivals later than that are left out. `None`: they
        /// come once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every_ns: Option<u64>,
        /// Lines of the file that are not replayed, by kind.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOut>,
    },
    /// No requests: connections are opened and held.
    Held,
}

impl Arrivals {
    /// Repeats the arrivals every `every_ns`, until `until_ns` after the start. A rate that is given for less than
    /// `every_ns` keeps its last value for the rest. Closed loops, constant rates and held connections stay as they
    /// are.
    #[must_use]
    pub fn repeated(self, every_ns: u64, until_ns: u64) -> Arrivals {
        match self {
            Arrivals::Varied { mut segments, spacing } => {
                let length_ns: u64 = segments.iter().map(|segment| segment.ns).sum();
                if let Some(last) = segments.last()
                    && length_ns < every_ns
                {
                    let ns = every_ns - length_ns;
                    segments.push(Segment { ns, ..Segment::flat(last.to) });
                }
                let times = until_ns.div_ceil(every_ns.max(1)) as usize;
                Arrivals::Varied { segments: segments.repeat(times), spacing }
            }
            Arrivals::Trace { file, arrivals, length_ns, left_out, .. } => {
                Arrivals::Trace { file, arrivals, length_ns, left_out, every_ns: Some(every_ns) }
            }
            other => other,
        }
    }
}

/// Lines of one kind in a recorded trace that are not replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Description of these lines' content, which is not a request that can be sent.
    pub what: String,
    /// Number of lines.
    pub lines: u64,
    /// Number of the first such line, from 1; in a HAR file the number of its entry.
    pub first: u64,
}

impl LeftOut {
    /// Counts a line of a kind, by its number from 1.
    pub fn count(all: &mut Vec<LeftOut>, what: &str, number: u64) {
        match all.iter_mut().find(|kind| kind.what == what) {
            Some(kind) => kind.lines += 1,
            None => all.push(LeftOut { what: what.to_owned(), lines: 1, first: number }),
        }
    }

    /// Returns the total number of lines of all kinds, and a list of the kinds as text.
    pub fn told(all: &[LeftOut]) -> (u64, String) {
        let list: Vec<String> = all
            .iter()
            .map(|one| format!("{} {} (first: {})", one.lines, one.what, one.first))
            .collect();
        (all.iter().map(|one| one.lines).sum(), list.join("; "))
    }
}

/// A period in which the rate changes linearly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segment {
    /// Requests per second at the start of the segment; zero or more.
    pub from: f64,
    /// Requests per second at the end of the segment; zero or more.
    pub to: f64,
    /// Length of the segment in nanoseconds.
    pub ns: u64,
}

impl Segment {
    /// Creates a segment with a constant rate, 1 s long. As the last segment it may have any length, since its rate
    /// continues for ever.
    pub fn flat(rate: f64) -> Segment {
        Segment { from: rate, to: rate, ns: 1_000_000_000 }
    }
}

/// Spacing of arrivals at a given rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// Equal gaps between arrivals.
    #[default]
    Even,
    /// A Poisson process: independent users. The same seed gives the same arrivals.
    Poisson {
        /// Seed of the random numbers.
        seed: u64,
    },
    /// Bursts: `size` requests at the same moment, then none until the rate calls for the next `size`.
    Burst {
        /// Arrivals in a burst; at least 1.
        size: u32,
    },
}

/// Rule that assigns due requests to connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// Any idle connection.
    #[default]
    Global,
    /// Connection `k` modulo the number of connections for arrival `k`, which waits for that connection, as in wrk2.
    PerConnection,
}

/// Treatment of a request that is due when no connection is idle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The request waits its turn, and its response time includes the wait.
    #[default]
    Queue,
    /// The request is not sent, and counted as dropped.
    Drop,
}

/// Lifetime of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// Until the server closes it.
    #[default]
    Kept,
    /// One request; the response time includes opening the connection.
    Request,
    /// This number of requests, then the connection is renewed; opening it is part of no response time.
    Requests(u32),
    /// This time in nanoseconds, then the connection is renewed once it is idle.
    Time(u64),
}

/// Way to close a connection at the end of its lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// Close in order (FIN), as clients do; the side that closes first keeps the port for a while (TIME_WAIT).
    #[default]
    Fin,
    /// Reset (RST, RFC 9293 §3.5.2), which leaves TIME_WAIT on neither side; real clients do not put this load on a
    /// server.
    Reset,
}

/// A request that is sent repeatedly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestSpec {
    /// Method token (RFC 9110 §9), for example `GET`.
    pub method: String,
    /// Request target in origin form (RFC 9112 §3.2.1), for example `/index.html?x=1`.
    pub target: String,
    /// Fields in the order given; `Host` is among them only if the user set it.
    pub fields: Vec<(String, String)>,
    /// Content; a Content-Length field is added if there is any or the method expects one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<u8>,
}

impl RequestSpec {
    /// Creates a GET of `target` with no fields of its own.
    pub fn get(target: &str) -> RequestSpec {
        RequestSpec {
            method: "GET".to_owned(),
            target: target.to_owned(),
            fields: Vec::new(),
            content: Vec::new(),
        }
    }

    /// Adds a field unless a field of this name exists.
    pub fn add_field(&mut self, name: &str, value: &str) {
        let mut names = self.fields.iter().map(|(own, _)| own);
        if !names.any(|own| own.eq_ignore_ascii_case(name)) {
            self.fields.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// Kind of an error, as far as it can be distinguished without the error's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The connection could not be opened; the kernel's error number says why.
    Connect,
    /// Sending failed; the kernel's error number says why.
    Send,
    /// Receiving failed; the kernel's error number says why.
    Receive,
    /// The peer closed the connection in the middle of a response.
    ClosedEarly,
    /// The peer closed the connection after the request was sent and before any byte of a response.
    ClosedUnanswered,
    /// The bytes received are not a response (RFC 9112).
    Malformed,
    /// The head of the response exceeded the limit.
    HeadTooLarge,
    /// Bytes arrived without a request.
    Unsolicited,
    /// No complete response within the timeout.
    Timeout,
    /// The TLS handshake failed, or a TLS record could not be read; the error's text says why.
    Tls,
    /// The response is complete, but does not meet the expectations.
    Unexpected,
}

impl ErrorKind {
    /// Name of the kind in records, for example `connect`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::Send => "send",
            ErrorKind::Receive => "receive",
            ErrorKind::ClosedEarly => "closed_early",
            ErrorKind::ClosedUnanswered => "closed_unanswered",
            ErrorKind::Malformed => "malformed",
            ErrorKind::HeadTooLarge => "head_too_large",
            ErrorKind::Unsolicited => "unsolicited",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Tls => "tls",
            ErrorKind::Unexpected => "unexpected",
        }
    }
}

impl ErrorKind {
    /// Returns true if the request with this error was completely answered nevertheless, so that it counts as a
    /// response.
    pub fn is_answered(self) -> bool {
        matches!(self, ErrorKind::Unexpected | ErrorKind::Unsolicited)
    }
}

/// Counts of requests that ended, answered or not. Each request counts once, however many errors it had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// All requests that ended.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
}

impl Ended {
    /// Computes the counts from `answered` complete responses, `wrong` of which had an unexpected status, and these
    /// errors. A failure to open a connection counts as a request even if no request waited for the connection.
    pub fn of(
        answered: u64,
        wrong: u64,
        errors: impl IntoIterator<Item = (ErrorKind, u64)>,
    ) -> Ended {
        let (mut requests, mut failed) = (answered, wrong);
        for (kind, count) in errors {
            failed += count;
            requests += if kind.is_answered() { 0 } else { count };
        }
        Ended { requests, failed: failed.min(requests) }
    }
}

/// Number of errors with the same kind and text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorCount {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Message of the kernel or the parser, word for word: `Connection refused (os error 111)`.
    pub words: String,
    /// The kernel's error number, if the kernel reported the error (errno(3)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// Number of errors.
    pub count: u64,
}

/// Error number of connect(2) and bind(2) if all local ports of an address are taken.
const EADDRNOTAVAIL: i32 = 99;

impl ErrorCount {
    /// Returns true if a connection could not be opened because the generator had no local port left.
    pub fn lacks_port(&self) -> bool {
        self.errno == Some(EADDRNOTAVAIL)
    }
}

/// Requests that had not ended when the trial did. They are part of the result: leaving them out would make a stalled
/// server look fast.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Censored {
    /// Requests sent but not answered by the end of `drain`, or given up at the timeout.
    pub in_flight: u64,
    /// Requests that were due but found no idle connection before the end.
    pub queued: u64,
    /// Response time that the oldest of these requests had reached, in nanoseconds.
    pub oldest_ns: u64,
}
