//! Which of a document's listeners a copy is asked at.

use super::pointer::Pointer;
use crate::place::about;
use crate::{ConfigurationError, Source, Surroundings};

/// A place where a document has its program listen.
pub(super) struct Listening {
    /// The value that says where.
    pub(super) at: Pointer,
    /// What it belongs to: addresses of one server share what it does.
    pub(super) server: Pointer,
    /// The address as messages have it.
    pub(super) address: String,
    pub(super) port: Option<u16>,
    pub(super) tls: bool,
    pub(super) udp: bool,
}

/// How a dialect says that a listener is missing.
pub(super) struct Missing {
    /// Of one in clear: `no listener is in clear`.
    pub(super) clear: &'static str,
    pub(super) tls: &'static str,
    /// What to do where there is none at all.
    pub(super) hint: &'static str,
}

/// The listeners under load, by their places among those found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    pub(super) clear: Option<usize>,
    pub(super) tls: Option<usize>,
}

impl Chosen {
    /// The one in clear on the port that is asked for, or the first that has a port; and where TLS is
    /// asked for, the one with TLS on that port, else of the same server, else the first.
    ///
    /// # Errors
    /// There is none as asked for.
    pub(super) fn of(
        found: &[Listening],
        source: &Source,
        surroundings: &Surroundings<'_>,
        missing: &Missing,
    ) -> Result<Chosen, ConfigurationError> {
        let wanted = surroundings.port;
        let asked = |listening: &Listening| match wanted {
            Some(port) => listening.port == Some(port),
            None => listening.port.is_some(),
        };
        let find = |tls: bool, also: &dyn Fn(&Listening) -> bool| {
            found
                .iter()
                .position(|one| one.tls == tls && !one.udp && also(one))
        };
        let clear = find(false, &asked);
        let tls_asked = wanted.and_then(|_| find(true, &asked));
        let near = |one: &Listening| clear.is_some_and(|index| found[index].server == one.server);
        let wants_tls = surroundings.tls_listen.is_some();
        let tls = tls_asked
            .or_else(|| find(true, &near))
            .or_else(|| find(true, &|_| true))
            .filter(|_| wants_tls);
        let refuse = |what: &str| {
            let hint = match found.is_empty() {
                true => missing.hint.to_owned(),
                false => format!("the configuration listens on {}", all(found)),
            };
            Err(about(&source.files[0].path, what).hint(hint))
        };
        if wants_tls && tls.is_none() {
            return refuse(missing.tls);
        }
        if clear.is_none() && (tls.is_none() || (wanted.is_some() && tls_asked.is_none())) {
            return match wanted {
                Some(port) => refuse(&format!("{} on port {port}", missing.clear)),
                None => refuse(missing.clear),
            };
        }
        Ok(Chosen { clear, tls })
    }
}

fn all(found: &[Listening]) -> String {
    let name = |one: &Listening| format!("{}{}", one.address, if one.tls { " (TLS)" } else { "" });
    found.iter().map(name).collect::<Vec<_>>().join(", ")
}
