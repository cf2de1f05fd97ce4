//! What a load is, in the engine's words: who sends what, when, until when.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// When the next request is due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
}

/// One request, sent again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// What went wrong, as far as it can be told apart without looking at the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
}

/// How often one kind of error happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// The kind.
    pub kind: ErrorKind,
    /// What the kernel or the parser said, word for word: `Connection refused (os error 111)`.
    pub words: String,
    /// How often.
    pub count: u64,
}

/// Work that had not ended when the trial did. It is part of the result: leaving it out would make
/// a stalled server look quick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Censored {
    /// Requests sent and not answered at the end of `drain`, or given up at the timeout.
    pub in_flight: u64,
    /// Requests that were due and never found an idle connection.
    pub queued: u64,
    /// Response time that the oldest of them had reached, in nanoseconds.
    pub oldest_ns: u64,
}

/// The phases of a trial (RFC 9411 §4.3.4). Figures come from `sustain` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// Load grows from nothing to its full height.
    pub ramp_up: Duration,
    /// Load stays; this is what is measured.
    pub sustain: Duration,
    /// At most this long is waited for requests still in flight.
    pub drain: Duration,
}
