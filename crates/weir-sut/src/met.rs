//! Where loads meet a proxy's configuration.

use std::net::SocketAddr;

use weir_configuration::{Asked, Spot};

use crate::Configuration;

/// What one request of a load meets on its way in. Its spots are in the user's files with the arm's settings in them;
/// in the copy lines of nginx, names of HAProxy's sections and pointers are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Met {
    /// The listener.
    pub(crate) at: SocketAddr,
    /// Whether that one speaks TLS.
    pub(crate) is_secure: bool,
    /// nginx: the `server`; HAProxy: the `frontend` or `listen`; Envoy: the virtual host. `None`: not known.
    pub(crate) server: Option<Spot>,
    /// nginx: the innermost `location`; HAProxy: the `backend` or `listen`; Envoy: the route. `None`: not known.
    pub(crate) location: Option<Spot>,
}

/// Where loads meet a proxy that is somewhere else, and what they ask there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    /// The address that they are sent to, which may be that of a Service before the listener.
    pub at: SocketAddr,
    /// Whether all of them speak TLS.
    pub is_secure: bool,
    /// The host that the first one names.
    pub host: String,
    /// Its first target.
    pub target: String,
}

impl Met {
    /// What was looked up.
    pub(crate) fn of(at: SocketAddr, asked: &Asked) -> Met {
        Met {
            server: asked.server.clone(),
            location: asked.location.clone(),
            ..Met::at(at, asked.listener.tls)
        }
    }

    /// A listener of which no more is known.
    pub(crate) fn at(at: SocketAddr, is_secure: bool) -> Met {
        Met {
            at,
            is_secure,
            server: None,
            location: None,
        }
    }
}

impl Configuration {
    /// Where loads meet it, one for each different way; at least one.
    pub(crate) fn met(&self) -> Vec<Met> {
        if !self.met.is_empty() {
            return self.met.clone();
        }
        let (clear, tls) = (self.listen(), self.tls_listen());
        let in_clear = (Some(clear) != tls).then(|| Met::at(clear, false));
        let secure = tls.map(|tls| Met::at(tls, true));
        in_clear.into_iter().chain(secure).collect()
    }
}
