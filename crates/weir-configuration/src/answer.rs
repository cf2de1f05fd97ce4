//! The answers that a configuration can give to a request of a load.

use std::fmt;

use weir_model::record::FROM_FILES;

/// Answer of a configuration to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The request is passed on.
    Passes,
    /// The connection is passed on as it is; its contents are not inspected.
    Tunnels,
    /// The request is answered from files.
    Files,
    /// The request is answered with a 2xx status that the configuration sets.
    Fixed(u16),
    /// The client is redirected elsewhere.
    Redirects,
    /// The request is answered with another status that the configuration sets.
    Returns(u16),
    /// The request is answered with the proxy's own counters or health.
    Statistics,
    /// The connection, or the handshake, is refused.
    Closes,
    /// Nothing takes the request; the reason, as a clause.
    Nothing(String),
    /// No client of the load can be served at this place, whatever it requests.
    Bars(Barrier),
    /// The answer depends on something that the configuration alone does not say.
    Unknown,
}

/// Demand on clients that the clients of a load cannot meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Barrier {
    /// Position of the demand: index of the file, and byte offset in its text.
    pub at: (usize, usize),
    /// Description of the demand, as a clause.
    pub what: String,
    pub hint: &'static str,
}

impl Barrier {
    /// Returns the barrier for a demanded client certificate; `says` is the setting that demands it.
    pub fn certificate(at: (usize, usize), says: &str) -> Barrier {
        Barrier {
            at,
            what: format!("clients have to show a certificate (`{says}`), and the load has none"),
            hint: "give the load one: `tls: {cert: FILE, key: FILE}`",
        }
    }

    /// Returns the barrier for a server that speaks HTTP/2 only; `says` is the setting responsible.
    pub fn http2(at: (usize, usize), says: &str) -> Barrier {
        Barrier {
            at,
            what: format!("it speaks only HTTP/2 (`{says}`), and loads speak HTTP/1.1"),
            hint: "name another `port` or `host` in the load, or in the study a copy of your configuration \
                   without it",
        }
    }

    /// Returns the barrier for TLS that `by` passes on undecrypted.
    pub fn sealed(at: (usize, usize), by: &str) -> Barrier {
        Barrier {
            at,
            what: format!(
                "{by} passes TLS through, and the study's origin server does not speak TLS"
            ),
            hint: "name a `host` in the load whose TLS ends at the proxy",
        }
    }
}

impl Answer {
    /// Returns the answer for a status that a configuration sets.
    pub fn of_status(status: u16) -> Answer {
        match status {
            200..=299 => Answer::Fixed(status),
            300..=399 => Answer::Redirects,
            444 => Answer::Closes,
            _ => Answer::Returns(status),
        }
    }

    /// Returns how well the answer suits a load that names no port: the lower the better. None if it does not suit at
    /// all.
    pub(crate) fn rank(&self, files: bool) -> Option<u8> {
        match self {
            Answer::Passes => Some(u8::from(files)),
            Answer::Files => Some(u8::from(!files)),
            Answer::Tunnels | Answer::Unknown => Some(2),
            Answer::Fixed(_) => Some(3),
            _ => None,
        }
    }
}

/// Writes the answer as a clause: `passes it on`.
impl fmt::Display for Answer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Passes => to.write_str("passes it on"),
            Answer::Tunnels => to.write_str("passes the connection on as it is"),
            Answer::Files => to.write_str(FROM_FILES),
            Answer::Fixed(status) | Answer::Returns(status) => write!(to, "returns {status}"),
            Answer::Redirects => to.write_str("redirects"),
            Answer::Statistics => to.write_str("shows statistics or health"),
            Answer::Closes => to.write_str("closes the connection"),
            Answer::Nothing(why) => to.write_str(why),
            Answer::Bars(barrier) => to.write_str(&barrier.what),
            Answer::Unknown => to.write_str("does what the configuration alone does not say"),
        }
    }
}
