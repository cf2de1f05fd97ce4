//! What the load engine has to do at one arm under one load, in one plain struct.
//!
//! [`flow`] puts it together from the study and the addresses of the arm; whoever makes the engine's
//! plan has to look nowhere else.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_http::request::encode;
use weir_load::tls::Connector;
use weir_load::{RequestSet, Route};
use weir_model::load::{Arrivals, Lifetime, RequestSpec};
use weir_model::study::{LoadSpec, TlsOffer};
use weir_model::tls::{TlsSpec, Trust};

use crate::LabError;

/// Host that all requests and handshakes name, and the certificate is for; the same length for every
/// arm, whatever its port.
pub(crate) const HOST: &str = "weir.test";

/// Source addresses at most: 127.0.0.1 to 127.0.0.254. The study's check counts on as many.
const MOST_SOURCES: u64 = 254;

/// Source addresses at least for connections that are renewed: ports of closed ones rest for a
/// while (TIME_WAIT, RFC 9293 §3.6.1), and the kernel looks for free ones the longer the fewer there
/// are.
const SOURCES_OF_RENEWED: u64 = 4;

/// One arm under one load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flow {
    /// Where the arm is asked in clear.
    pub(crate) address: SocketAddr,
    /// How it is asked over TLS; `None`: it is asked in clear.
    pub(crate) tls: Option<TlsFlow>,
    /// What is asked, as the engine's words.
    pub(crate) request: RequestSpec,
    /// What is asked, as it goes over the wire (inside TLS where there is TLS).
    pub(crate) bytes: Vec<u8>,
    /// Connections that ask.
    pub(crate) connections: u32,
    /// How long each of them is used.
    pub(crate) lifetime: Lifetime,
    /// Connections beside those, opened before the trial, never used, and opened again when the
    /// proxy closes them.
    pub(crate) held: u32,
    /// Addresses to connect from, in turn; empty: the kernel's choice is enough.
    pub(crate) sources: Vec<Ipv4Addr>,
}

/// How an arm is asked over TLS.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TlsFlow {
    /// Where.
    pub(crate) address: SocketAddr,
    /// What the client offers.
    pub(crate) offer: TlsOffer,
    /// Name for SNI, and that the certificate is for.
    pub(crate) server_name: &'static str,
    /// The one certificate to trust, a PEM file: self-signed, and the server's own.
    pub(crate) trust: PathBuf,
}

/// Where an arm can be asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doors<'a> {
    /// In clear.
    pub(crate) clear: SocketAddr,
    /// Over TLS, with the certificate that it shows.
    pub(crate) tls: Option<(SocketAddr, &'a Path)>,
}

/// All that the engine has to know about one arm under one load. `local_ports` is what the kernel
/// has for each source address.
///
/// # Errors
/// The request cannot be written, or the load wants TLS and the arm has no listener for it.
pub(crate) fn flow(load: &LoadSpec, doors: Doors<'_>, local_ports: u64) -> Result<Flow, LabError> {
    let wrong = |what: String| LabError::Request {
        load: load.name.clone(),
        what,
    };
    let tls = match (&load.tls, doors.tls) {
        (None, _) => None,
        (Some(offer), Some((address, trust))) => Some(TlsFlow {
            address,
            offer: offer.clone(),
            server_name: HOST,
            trust: trust.to_owned(),
        }),
        (Some(_), None) => return Err(wrong("the arm has no listener with TLS".to_owned())),
    };
    let request = request(load);
    Ok(Flow {
        address: doors.clear,
        tls,
        bytes: encode(&request, HOST).map_err(|error| wrong(error.to_string()))?,
        request,
        connections: load.connections,
        lifetime: load.lifetime,
        held: load.held,
        sources: sources(load, local_ports),
    })
}

/// The load's request. On a connection for one request it says so (RFC 9112 §9.6), so that the
/// server closes at once, as a client without keep-alive would have it.
fn request(load: &LoadSpec) -> RequestSpec {
    let mut request = load.request.clone();
    let is_connection = |(name, _): &(String, String)| name.eq_ignore_ascii_case("connection");
    if load.lifetime == Lifetime::Request && !request.fields.iter().any(is_connection) {
        let close = ("Connection".to_owned(), "close".to_owned());
        request.fields.push(close);
    }
    request
}

/// As many addresses that half of the ports of each are enough: others use ports too, and the last
/// free ones are found slowly.
fn sources(load: &LoadSpec, local_ports: u64) -> Vec<Ipv4Addr> {
    let connections = u64::from(load.connections) + u64::from(load.held);
    let enough = connections.div_ceil((local_ports / 2).max(1));
    let least = match load.lifetime {
        Lifetime::Kept => 1,
        _ => SOURCES_OF_RENEWED,
    };
    match enough.max(least).min(MOST_SOURCES) {
        1 => Vec::new(),
        count => (1..=count as u8)
            .map(|last| Ipv4Addr::new(127, 0, 0, last))
            .collect(),
    }
}

/// The engine's side of an arm: those that ask, and those that are held beside them.
///
/// # Errors
/// What the load wants of TLS cannot be.
pub(crate) fn plan(
    flow: Flow,
    arm: usize,
    load: &LoadSpec,
    arrivals: &Arrivals,
) -> Result<Vec<weir_load::Flow>, LabError> {
    let peer = flow.tls.as_ref().map_or(flow.address, |tls| tls.address);
    let tls = match &flow.tls {
        Some(tls) => Some(Arc::new(connector(tls, load)?)),
        None => None,
    };
    let requests = RequestSet::plain(flow.bytes, flow.request.method == "HEAD");
    let routes: Vec<Route> = match flow.sources.is_empty() {
        true => vec![Route::to(peer)],
        false => flow
            .sources
            .iter()
            .map(|&source| Route {
                source: Some(source.into()),
                ..Route::to(peer)
            })
            .collect(),
    };
    let of = |connections, arrivals: Arrivals| {
        let mut own = weir_load::Flow::new(peer, requests.clone(), connections, arrivals);
        own.arm = arm;
        own.routes.clone_from(&routes);
        own.tls.clone_from(&tls);
        own.timeout = load.timeout;
        own
    };
    let mut asking = of(flow.connections, arrivals.clone());
    asking.lifetime = flow.lifetime;
    let mut flows = vec![asking];
    if flow.held > 0 {
        flows.push(of(flow.held, Arrivals::Held));
    }
    Ok(flows)
}

fn connector(tls: &TlsFlow, load: &LoadSpec) -> Result<Connector, LabError> {
    let spec = TlsSpec {
        versions: tls.offer.versions.clone(),
        ciphers: tls.offer.ciphers.clone(),
        trust: Trust::Ca(tls.trust.display().to_string()),
        resumption: tls.offer.resumption,
        ..TlsSpec::default()
    };
    Connector::new(&spec, tls.server_name).map_err(|error| LabError::Request {
        load: load.name.clone(),
        what: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_model::study::StudyArrivals;

    use super::*;

    fn load() -> LoadSpec {
        LoadSpec {
            name: "l".to_owned(),
            arrivals: StudyArrivals::Closed,
            connections: 50,
            lifetime: Lifetime::Kept,
            tls: None,
            held: 0,
            request: RequestSpec::get("/"),
            size: None,
            duration: Duration::from_secs(60),
            timeout: Duration::from_secs(2),
        }
    }

    fn doors(tls: bool) -> Doors<'static> {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Doors {
            clear: at(1),
            tls: tls.then(|| (at(2), Path::new("certificate.pem"))),
        }
    }

    #[test]
    fn a_flow_over_tls_knows_where_and_whom_to_trust() {
        let mut load = load();
        let clear = flow(&load, doors(true), 28_232).unwrap();
        assert_eq!((clear.tls, clear.sources), (None, Vec::new()));
        load.tls = Some(TlsOffer::default());
        let tls = flow(&load, doors(true), 28_232).unwrap().tls.unwrap();
        assert_eq!(tls.address.port(), 2);
        assert_eq!(
            (tls.server_name, &*tls.trust),
            (HOST, Path::new("certificate.pem"))
        );
        assert!(flow(&load, doors(false), 28_232).is_err());
    }

    #[test]
    fn a_connection_for_one_request_says_that_it_is() {
        let mut load = load();
        let bytes = |load: &LoadSpec| {
            String::from_utf8(flow(load, doors(false), 28_232).unwrap().bytes).unwrap()
        };
        assert!(!bytes(&load).contains("Connection"));
        load.lifetime = Lifetime::Request;
        assert!(bytes(&load).contains("Connection: close\r\n"));
        load.request.fields = vec![("connection".to_owned(), "keep-alive".to_owned())];
        assert!(!bytes(&load).contains("close"));
    }

    #[test]
    fn there_are_source_addresses_for_all_connections() {
        let count = |held, lifetime, ports| {
            let load = LoadSpec {
                held,
                lifetime,
                ..load()
            };
            flow(&load, doors(false), ports).unwrap().sources.len()
        };
        assert_eq!(count(10_000, Lifetime::Kept, 28_232), 0);
        assert_eq!(count(100_000, Lifetime::Kept, 28_232), 8);
        assert_eq!(count(1_000_000, Lifetime::Kept, 5_000), 254);
        assert_eq!(count(0, Lifetime::Request, 28_232), 4);
    }
}
