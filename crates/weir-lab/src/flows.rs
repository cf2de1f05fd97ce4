//! What the load engine has to do at one arm under one load, in one plain struct.
//!
//! [`flow`] puts it together from the study and the addresses of the arm; whoever makes the engine's
//! plan has to look nowhere else.

use std::net::{Ipv4Addr, SocketAddr};

use weir_agent::message::{Bytes, FlowJob, TlsJob};
use weir_http::request::encode;
use weir_model::load::{Arrivals, Lifetime, RequestSpec};
use weir_model::study::LoadSpec;

use crate::LabError;

/// Host that all requests and handshakes name, and the certificate is for; the same length for every
/// arm, whatever its port.
pub(crate) const HOST: &str = "weir.test";

/// Source addresses at most: all of a network of 256 but its own, the broadcast's and the arm's. The
/// study's check counts on as many.
pub(crate) const MOST_SOURCES: u64 = 253;

/// Source addresses at least for connections that are renewed: ports of closed ones rest for a
/// while (TIME_WAIT, RFC 9293 §3.6.1), and the kernel looks for free ones the longer the fewer there
/// are.
const SOURCES_OF_RENEWED: u64 = 4;

/// Where an arm can be asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doors<'a> {
    /// In clear.
    pub(crate) clear: SocketAddr,
    /// Over TLS, with the certificate that it shows, PEM.
    pub(crate) tls: Option<(SocketAddr, &'a str)>,
}

/// All that the engine has to know about one arm under one load, but for when it asks: until that is
/// said, in a closed loop. `from` are the addresses that it can
/// be asked from (none: the kernel's choice), and `local_ports` is what the kernel has for each.
///
/// # Errors
/// The request cannot be written, or the load wants TLS and the arm has no listener for it.
pub(crate) fn flow(
    load: &LoadSpec,
    arm: usize,
    doors: Doors<'_>,
    from: &[Ipv4Addr],
    local_ports: u64,
) -> Result<FlowJob, LabError> {
    let wrong = |what: String| LabError::Request {
        load: load.name.clone(),
        what,
    };
    let (peer, tls) = match (&load.tls, doors.tls) {
        (None, _) => (doors.clear, None),
        (Some(offer), Some((address, trust))) => {
            let tls = TlsJob {
                offer: offer.clone(),
                server_name: HOST.to_owned(),
                trust: trust.to_owned(),
            };
            (address, Some(tls))
        }
        (Some(_), None) => return Err(wrong("the arm has no listener with TLS".to_owned())),
    };
    let request = request(load);
    let bytes = encode(&request, HOST).map_err(|error| wrong(error.to_string()))?;
    let sources = match sources_for(load, local_ports) {
        1 => &[],
        wanted => &from[..from.len().min(usize::from(wanted))],
    };
    Ok(FlowJob {
        arm,
        peer,
        tls,
        request: Bytes(bytes),
        head: request.method == "HEAD",
        connections: load.connections,
        arrivals: Arrivals::Closed,
        lifetime: load.lifetime,
        held: load.held,
        sources: sources.to_vec(),
        timeout: load.timeout,
        keeps_content: false,
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
pub(crate) fn sources_for(load: &LoadSpec, local_ports: u64) -> u8 {
    let connections = u64::from(load.connections) + u64::from(load.held);
    let enough = connections.div_ceil((local_ports / 2).max(1));
    let least = match load.lifetime {
        Lifetime::Kept => 1,
        _ => SOURCES_OF_RENEWED,
    };
    enough.max(least).min(MOST_SOURCES) as u8
}

#[cfg(test)]
mod tests {
    use weir_model::study::{StudyArrivals, TlsOffer};

    use super::*;

    fn load() -> LoadSpec {
        weir_model::fixture::load("l", StudyArrivals::Closed)
    }

    fn doors(tls: bool) -> Doors<'static> {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Doors {
            clear: at(1),
            tls: tls.then(|| (at(2), "PEM")),
        }
    }

    fn of(load: &LoadSpec, tls: bool) -> Result<FlowJob, LabError> {
        let from: Vec<_> = (1..=253)
            .map(|last| Ipv4Addr::new(127, 0, 0, last))
            .collect();
        flow(load, 0, doors(tls), &from, 28_232)
    }

    #[test]
    fn a_flow_over_tls_knows_where_and_whom_to_trust() {
        let mut load = load();
        let clear = of(&load, true).unwrap();
        assert_eq!((clear.tls, clear.sources), (None, Vec::new()));
        load.tls = Some(TlsOffer::default());
        let flow = of(&load, true).unwrap();
        let tls = flow.tls.unwrap();
        assert_eq!(flow.peer.port(), 2);
        assert_eq!((&*tls.server_name, &*tls.trust), (HOST, "PEM"));
        assert!(of(&load, false).is_err());
    }

    #[test]
    fn a_connection_for_one_request_says_that_it_is() {
        let mut load = load();
        let bytes =
            |load: &LoadSpec| String::from_utf8(of(load, false).unwrap().request.0).unwrap();
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
            sources_for(&load, ports)
        };
        assert_eq!(count(10_000, Lifetime::Kept, 28_232), 1);
        assert_eq!(count(100_000, Lifetime::Kept, 28_232), 8);
        assert_eq!(count(1_000_000, Lifetime::Kept, 5_000), 253);
        assert_eq!(count(0, Lifetime::Request, 28_232), 4);
    }
}
