//! Parts of a proxy's configuration that loads reach.

use std::net::SocketAddr;

use weir_configuration::{RequestOutcome, Spot};

use crate::Configuration;

/// Listener and blocks that one request of a load reaches. Spots are in the user's files with the arm's settings in
/// them; in the copy, the lines of nginx, the names of HAProxy's sections and the pointers are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteMatch {
    /// Address of the listener.
    pub at: SocketAddr,
    /// True if the listener speaks TLS.
    pub is_secure: bool,
    /// Block of the server: for nginx the `server`, for HAProxy the `frontend` or `listen`, for Envoy the virtual host.
    /// `None` if not known.
    pub server: Option<Spot>,
    /// Block of the location: for nginx the innermost `location`, for HAProxy the `backend` or `listen`, for Envoy the
    /// route. `None` if not known.
    pub location: Option<Spot>,
}

/// Address of a proxy elsewhere that loads reach, and their first request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRoute {
    /// Address that requests are sent to, which may be that of a Service before the listener.
    pub at: SocketAddr,
    /// True if all loads speak TLS.
    pub is_secure: bool,
    /// Host that the first load names.
    pub host: String,
    /// First target of the first load.
    pub target: String,
}

impl RouteMatch {
    /// Creates a value from the result of a look-up.
    pub fn of(at: SocketAddr, asked: &RequestOutcome) -> RouteMatch {
        RouteMatch {
            server: asked.server.clone(),
            location: asked.location.clone(),
            ..RouteMatch::at(at, asked.listener.tls)
        }
    }

    /// Creates a value for a listener of which nothing else is known.
    pub fn at(at: SocketAddr, is_secure: bool) -> RouteMatch {
        RouteMatch { at, is_secure, server: None, location: None }
    }
}

impl Configuration {
    /// Returns the ways of loads through the configuration, each different one once; at least one.
    pub fn route_matches(&self) -> Vec<RouteMatch> {
        if !self.route_matches.is_empty() {
            return self.route_matches.clone();
        }
        let (clear, tls) = (self.listen(), self.tls_listen());
        let in_clear = (Some(clear) != tls).then(|| RouteMatch::at(clear, false));
        let secure = tls.map(|tls| RouteMatch::at(tls, true));
        in_clear.into_iter().chain(secure).collect()
    }
}
