//! What a load is, in the engine's words: who sends what, when, until when.

use serde::{Deserialize, Serialize};

/// When the next request is due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Closed loop: a connection sends again as soon as it was answered.
    Closed,
    /// Open loop: one global schedule, `rate` requests per second whatever the answers do.
    /// A due request that finds no idle connection waits, and its response time runs.
    Constant {
        /// Requests per second over all connections and threads; above zero.
        rate: f64,
    },
    /// Open loop with a rate that changes, or arrivals that are not evenly spaced.
    Varied {
        /// The rate over time, one segment after the other; the last one's end goes on for ever.
        segments: Vec<Segment>,
        /// How arrivals are spread at a given rate.
        spacing: Spacing,
    },
    /// Open loop: arrivals at recorded times.
    Trace {
        /// The file they were read from.
        file: String,
        /// How many there are.
        arrivals: u64,
        /// From the first to the last, in nanoseconds.
        length_ns: u64,
        /// They begin anew each time this many nanoseconds have passed, and those that come later
        /// are left out; `None`: they come once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every_ns: Option<u64>,
        /// Lines of the file that are not sent, by kind.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOut>,
    },
    /// No requests: connections are opened and held.
    Held,
}

impl Arrivals {
    /// The same, begun anew each time `every_ns` have passed, until `until_ns` after the start. A rate
    /// that is said for less than that stays what it is at its end.
    #[must_use]
    pub fn repeated(self, every_ns: u64, until_ns: u64) -> Arrivals {
        match self {
            Arrivals::Varied {
                mut segments,
                spacing,
            } => {
                let said: u64 = segments.iter().map(|segment| segment.ns).sum();
                if let Some(last) = segments.last()
                    && said < every_ns
                {
                    let ns = every_ns - said;
                    segments.push(Segment {
                        ns,
                        ..Segment::flat(last.to)
                    });
                }
                let times = until_ns.div_ceil(every_ns.max(1)) as usize;
                Arrivals::Varied {
                    segments: segments.repeat(times),
                    spacing,
                }
            }
            Arrivals::Trace {
                file,
                arrivals,
                length_ns,
                left_out,
                ..
            } => Arrivals::Trace {
                file,
                arrivals,
                length_ns,
                left_out,
                every_ns: Some(every_ns),
            },
            other => other,
        }
    }
}

/// Lines of one kind that a recorded trace has and a load does not send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// What they have instead of a request that can be sent, in words.
    pub what: String,
    /// How many.
    pub lines: u64,
    /// Number of the first one, from 1; of a HAR file the number of its entry.
    pub first: u64,
}

impl LeftOut {
    /// Counts a line of a kind, by its number from 1.
    pub fn count(all: &mut Vec<LeftOut>, what: &str, number: u64) {
        match all.iter_mut().find(|kind| kind.what == what) {
            Some(kind) => kind.lines += 1,
            None => all.push(LeftOut {
                what: what.to_owned(),
                lines: 1,
                first: number,
            }),
        }
    }

    /// How many lines all kinds have together, and their list in a sentence's words.
    pub fn told(all: &[LeftOut]) -> (u64, String) {
        let each = |one: &LeftOut| format!("{} {} (first: {})", one.lines, one.what, one.first);
        let list: Vec<String> = all.iter().map(each).collect();
        (all.iter().map(|one| one.lines).sum(), list.join("; "))
    }
}

/// A stretch of time in which the rate changes evenly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segment {
    /// Requests per second at its begin; zero or more.
    pub from: f64,
    /// Requests per second at its end; zero or more.
    pub to: f64,
    /// Length in nanoseconds.
    pub ns: u64,
}

impl Segment {
    /// A rate that stays. Any length will do where it is the last: its rate goes on for ever.
    pub fn flat(rate: f64) -> Segment {
        Segment {
            from: rate,
            to: rate,
            ns: 1_000_000_000,
        }
    }
}

/// How arrivals are spread at a given rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// All gaps equal.
    #[default]
    Even,
    /// A Poisson process: independent users. The same seed gives the same arrivals.
    Poisson {
        /// Seed.
        seed: u64,
    },
    /// So many at the same moment, then none until the rate asks for as many again.
    Burst {
        /// Arrivals in a burst; at least 1.
        size: u32,
    },
}

/// Which connection sends a request that is due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// Any that is idle.
    #[default]
    Global,
    /// Arrival k belongs to connection k modulo their number and waits for it, as wrk2 does it.
    PerConnection,
}

/// What becomes of a request that is due when no connection is idle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// It waits its turn, and its response time runs.
    #[default]
    Queue,
    /// It is not sent, and counted as dropped.
    Drop,
}

/// How long a connection is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// As long as the server keeps it.
    #[default]
    Kept,
    /// For one request: opening it is part of the request's response time.
    Request,
    /// For so many requests, then it is renewed; opening is part of no response time.
    Requests(u32),
    /// For so long (nanoseconds), then it is renewed once it is idle.
    Time(u64),
}

/// How a connection that has served its time is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// In order (FIN), as clients do; whoever closes first keeps the port for a while (TIME_WAIT).
    #[default]
    Fin,
    /// By a reset (RST, RFC 9293 §3.5.2), which leaves TIME_WAIT on neither side: another load than that of clients.
    Reset,
}

/// One request, sent again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestSpec {
    /// Method token (RFC 9110 §9), for example `GET`.
    pub method: String,
    /// Request target in origin form (RFC 9112 §3.2.1), for example `/index.html?x=1`.
    pub target: String,
    /// Fields in the order given, `Host` among them only when the user set it.
    pub fields: Vec<(String, String)>,
    /// Content; a Content-Length field is added when there is any or the method expects one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<u8>,
}

impl RequestSpec {
    /// A GET of `target` with no fields of its own.
    pub fn get(target: &str) -> RequestSpec {
        RequestSpec {
            method: "GET".to_owned(),
            target: target.to_owned(),
            fields: Vec::new(),
            content: Vec::new(),
        }
    }

    /// Adds a field unless there is one of this name.
    pub fn add_field(&mut self, name: &str, value: &str) {
        let mut names = self.fields.iter().map(|(own, _)| own);
        if !names.any(|own| own.eq_ignore_ascii_case(name)) {
            self.fields.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// What went wrong, as far as it can be told apart without looking at the words.
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
    /// What came is not a response (RFC 9112).
    Malformed,
    /// The head of the response passed the limit.
    HeadTooLarge,
    /// Bytes came that no request had asked for.
    Unsolicited,
    /// No complete response within the timeout.
    Timeout,
    /// The TLS handshake failed, or a TLS record could not be read; the words say why.
    Tls,
    /// The response is complete, but not what was expected.
    Unexpected,
}

impl ErrorKind {
    /// Its name in records: `connect`.
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
    /// Whether the request at which it happened was answered completely all the same: it is one of the responses.
    pub fn is_answered(self) -> bool {
        matches!(self, ErrorKind::Unexpected | ErrorKind::Unsolicited)
    }
}

/// Requests that ended, answered or not. Each is counted once, however much was wrong with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// All of them.
    pub requests: u64,
    /// Those that failed.
    pub failed: u64,
}

impl Ended {
    /// Of `answered` complete responses, of which `wrong` had a status that nobody asked for, beside these errors. An
    /// error of opening counts as a request, whether one waited for the connection or not.
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
        Ended {
            requests,
            failed: failed.min(requests),
        }
    }
}

/// How often one kind of error happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorCount {
    /// The kind.
    pub kind: ErrorKind,
    /// What the kernel or the parser said, word for word: `Connection refused (os error 111)`.
    pub words: String,
    /// The kernel's error number, where the kernel reported it (errno(3)). Records of weir before it was
    /// kept have it in `words` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// How often.
    pub count: u64,
}

/// What connect(2) and bind(2) give when all local ports of an address are taken.
const EADDRNOTAVAIL: i32 = 99;

impl ErrorCount {
    /// Whether a connection could not be opened because the generator had no local port left.
    pub fn lacks_port(&self) -> bool {
        self.errno == Some(EADDRNOTAVAIL)
    }
}

/// Work that had not ended when the trial did. It is part of the result: leaving it out would make
/// a stalled server look quick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Censored {
    /// Requests sent and not answered at the end of `drain`, or given up at the timeout.
    pub in_flight: u64,
    /// Requests that were due and never found an idle connection, and waited for one to the end.
    pub queued: u64,
    /// Response time that the oldest of them had reached, in nanoseconds.
    pub oldest_ns: u64,
}
