//! What a configuration does with a request of a load.

use std::fmt;

use weir_model::record::FROM_FILES;

/// What is done with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is passed on.
    Passes,
    /// The connection is passed on as it is; what asks and answers is not looked into.
    Tunnels,
    /// It is answered from files.
    Files,
    /// It is answered with a status of the 2xx that the configuration says.
    Fixed(u16),
    /// It is sent elsewhere.
    Redirects,
    /// It is answered with another status that the configuration says.
    Returns(u16),
    /// It is answered with the proxy's own counters or health.
    Statistics,
    /// The connection, or the handshake, is refused.
    Closes,
    /// Nothing takes it; why, as a clause.
    Nothing(String),
    /// No client of the load can be served there, whatever it asks for.
    Bars(Barrier),
    /// What it depends on is not said by the configuration alone.
    Unknown,
}

/// What a configuration asks of clients and a load's do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Barrier {
    /// Where it says so: the index of the file, and a byte of its text.
    pub(crate) at: (usize, usize),
    /// As a clause.
    pub(crate) what: String,
    pub(crate) hint: &'static str,
}

impl Barrier {
    /// Clients are to show a certificate, because something says so.
    pub(crate) fn certificate(at: (usize, usize), says: &str) -> Barrier {
        Barrier {
            at,
            what: format!("clients have to show a certificate (`{says}`), and the load has none"),
            hint: "give the load one: `tls: {cert: FILE, key: FILE}`",
        }
    }

    /// HTTP/2 alone is spoken, because something says so.
    pub(crate) fn http2(at: (usize, usize), says: &str) -> Barrier {
        Barrier {
            at,
            what: format!("it speaks only HTTP/2 (`{says}`), and loads speak HTTP/1.1"),
            hint: "name another `port` or `host` in the load, or in the study a copy of your configuration \
                   without it",
        }
    }

    /// TLS is passed on as it is, by something.
    pub(crate) fn sealed(at: (usize, usize), by: &str) -> Barrier {
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
    /// The answer of a status that a configuration says.
    pub(crate) fn of_status(status: u16) -> Answer {
        match status {
            200..=299 => Answer::Fixed(status),
            300..=399 => Answer::Redirects,
            444 => Answer::Closes,
            _ => Answer::Returns(status),
        }
    }

    /// How well it suits a load that names no port: the lower the better; `None`: not at all.
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

/// As a clause: `passes it on`.
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
