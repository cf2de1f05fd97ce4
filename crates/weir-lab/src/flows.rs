//! Jobs of the load engine for one arm under one load.
//!
//! [`Flows::of_arm`] builds them from the description of the load and the addresses of the arm; the engine's plan needs
//! nothing else.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use weir_agent::message::{Bytes, FlowJob, TraceJob};
use weir_load::files::{LARGEST_DESCRIPTION, read_at_most};
use weir_load::template::Files;
use weir_load::{RequestSet, Trace};
use weir_model::flow::{ArrivalsSpec, FlowSpec, SourceSpec};
use weir_model::room;
use weir_model::study::{LoadSpec, OwnRequests, authority, server_name};
use weir_model::tls::{TlsSpec, Trust};
use weir_proposers::arrivals::{self, When};

use crate::LabError;

/// Addresses of an arm's listeners.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doors<'a> {
    /// Address for requests in clear text.
    pub(crate) clear: SocketAddr,
    /// Further addresses of the same arm.
    pub(crate) also: &'a [SocketAddr],
    /// Requests of the arm that differ from those of the load.
    pub(crate) requests: Option<&'a OwnRequests>,
    /// Address for requests over TLS, with the certificate presented there, PEM; the certificate is empty if the load
    /// says which to trust.
    pub(crate) tls: Option<(SocketAddr, &'a str)>,
    /// Address at which each flow of the load asks a copy of a user's configuration; empty: at `clear` or `tls`.
    pub(crate) asked: &'a [SocketAddr],
}

/// Source addresses and ports of the generator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct From<'a> {
    /// Source addresses; empty: the kernel's choice.
    pub(crate) addresses: &'a [Ipv4Addr],
    /// Number of local ports for each source address.
    pub(crate) ports: u64,
}

/// Flows of a load, with the files that they name read and their requests checked.
pub(crate) struct Flows<'a> {
    pub(crate) load: &'a LoadSpec,
    /// Arrivals of traces.
    pub(crate) traces: Vec<TraceJob>,
    /// Index of each flow's trace in `traces`.
    trace_of: Vec<Option<usize>>,
    /// Files that fill slots of requests, and the client's certificates, by path.
    pub(crate) files: BTreeMap<String, Bytes>,
}

impl<'a> Flows<'a> {
    /// Reads all files that the load's flows name; of traces, only the part that fits into a slice.
    ///
    /// # Errors
    /// A file cannot be read, or a request cannot be written.
    pub(crate) fn read(load: &'a LoadSpec, slice: Option<Duration>) -> Result<Flows<'a>, LabError> {
        let mut flows =
            Flows { load, traces: Vec::new(), trace_of: Vec::new(), files: BTreeMap::new() };
        for flow in load.flows() {
            flows
                .read_one(flow, slice)
                .map_err(|what| LabError::Request { load: load.name.clone(), what })?;
        }
        Ok(flows)
    }

    fn read_one(&mut self, flow: &FlowSpec, slice: Option<Duration>) -> Result<(), String> {
        let mut files = Files::default();
        let trace = arrivals::trace(flow).map_err(|error| error.to_string())?;
        RequestSet::of_flow(flow, trace.as_ref(), authority(flow), &mut files)
            .map_err(|error| error.to_string())?;
        let texts = files.texts().map(|(path, text)| (path.display().to_string(), Bytes(text)));
        self.files.extend(texts);
        for path in flow.tls.iter().flat_map(named_files) {
            let text = read_at_most(Path::new(path), LARGEST_DESCRIPTION)
                .map_err(|error| format!("cannot read {path}: {error}"))?;
            self.files.insert(path.clone(), Bytes(text));
        }
        self.trace_of.push(trace.map(|trace| {
            let within: Option<Trace> = slice.map(|slice| trace.within(slice.as_nanos() as u64));
            self.traces.push(TraceJob::from(within.as_ref().unwrap_or(&trace)));
            self.traces.len() - 1
        }));
        Ok(())
    }

    /// Returns the paths of the load's traces.
    pub(crate) fn trace_files(&self) -> impl Iterator<Item = &'a str> {
        self.load.flows().filter_map(|flow| match &flow.arrivals {
            ArrivalsSpec::Trace(trace) => Some(&*trace.file),
            _ => None,
        })
    }

    /// Builds the engine's jobs for one arm. `when` has the arrivals of each flow.
    ///
    /// # Errors
    /// The load needs TLS and the arm has no listener for it.
    pub(crate) fn of_arm(
        &self,
        arm: usize,
        when: &[When],
        doors: Doors<'_>,
        from: From<'_>,
    ) -> Result<Vec<FlowJob>, LabError> {
        let sources = room::sources(self.load, from.ports);
        let sources = match sources {
            1 => &[],
            wanted => &from.addresses[..from.addresses.len().min(usize::from(wanted))],
        };
        let flows = self.load.flows().zip(when).zip(&self.trace_of).enumerate();
        flows
            .map(|(index, ((flow, when), trace))| {
                let address = doors.asked.get(index).copied();
                let (peer, trust) = match (&flow.tls, doors.tls) {
                    (None, _) => (address.unwrap_or(doors.clear), ""),
                    (Some(_), Some((door, pem))) => (address.unwrap_or(door), pem),
                    (Some(_), None) => {
                        return Err(LabError::Request {
                            load: self.load.name.clone(),
                            what: "the arm has no listener with TLS".to_owned(),
                        });
                    }
                };
                Ok(FlowJob {
                    arm,
                    peer,
                    also: doors.also.to_vec(),
                    host: match doors.requests {
                        Some(own) => own.authority.clone(),
                        None => authority(flow).to_owned(),
                    },
                    trust: trust.to_owned(),
                    spec: match doors.requests {
                        Some(own) => own.flow(flow),
                        None => with_server_name(flow),
                    },
                    arrivals: when.arrivals.clone(),
                    every_ns: when.every_ns,
                    trace: *trace,
                    sources: match &flow.sources {
                        SourceSpec::These(own) => own.clone(),
                        _ => sources.iter().copied().map(IpAddr::V4).collect(),
                    },
                    keeps_content: false,
                })
            })
            .collect()
    }
}

/// Returns a copy of a flow whose TLS handshakes name its host without the port, if its Host fields have a port.
fn with_server_name(flow: &FlowSpec) -> FlowSpec {
    let mut spec = flow.clone();
    if let Some(tls) = &mut spec.tls
        && authority(flow) != server_name(flow)
    {
        tls.server_name.get_or_insert_with(|| server_name(flow).to_owned());
    }
    spec
}

/// Returns the paths of the files that a client needs for TLS: the certificates that it trusts, its own certificate and
/// its key.
fn named_files(tls: &TlsSpec) -> impl Iterator<Item = &String> {
    let trusted = match &tls.trust {
        Trust::Ca(path) => Some(path),
        Trust::System | Trust::Insecure => None,
    };
    let of_client = tls.client.iter().flat_map(|client| [&client.certificate, &client.key]);
    trusted.into_iter().chain(of_client)
}

#[cfg(test)]
mod tests {
    use weir_model::load::RequestSpec;
    use weir_model::request::WeightedRequest;
    use weir_model::study::HOST;

    use super::*;

    fn make_load() -> LoadSpec {
        let main = FlowSpec::new(50, ArrivalsSpec::Closed);
        LoadSpec::new("l", main, Duration::from_secs(60))
    }

    fn jobs(load: &LoadSpec, tls: bool) -> Result<Vec<FlowJob>, LabError> {
        let addresses: Vec<_> = (1..=253).map(|last| Ipv4Addr::new(127, 0, 0, last)).collect();
        let [clear, secure, also] = [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let doors = Doors {
            clear,
            also: &[also],
            requests: None,
            tls: tls.then_some((secure, "PEM")),
            asked: &[],
        };
        let from = From { addresses: &addresses, ports: 28_232 };
        let when: Vec<When> = load.flows().map(When::said).collect();
        Flows::read(load, None)?.of_arm(0, &when, doors, from)
    }

    #[test]
    fn a_server_is_asked_by_its_own_name_and_target() {
        let requests = OwnRequests {
            server_name: Some("new.example".to_owned()),
            authority: "new.example:8443".to_owned(),
            target: Some("/v2".to_owned()),
        };
        let mut flow = make_load().main;
        flow.host = Some("old.example:443".to_owned());
        flow.tls =
            Some(TlsSpec { server_name: Some("old.example".to_owned()), ..TlsSpec::default() });
        for (requests, expected) in [
            (requests.clone(), "new.example"),
            (OwnRequests { server_name: None, ..requests }, "old.example"),
        ] {
            let spec = requests.flow(&flow);
            assert_eq!(spec.tls.unwrap().server_name.as_deref(), Some(expected));
            assert_eq!(spec.host.as_deref(), Some("new.example:8443"));
            assert!(spec.requests.iter().all(|one| one.request.target == "/v2"));
        }
    }

    #[test]
    fn a_flow_over_tls_knows_where_and_whom_to_trust() {
        let mut load = make_load();
        let clear = jobs(&load, true).unwrap().remove(0);
        assert_eq!((&*clear.trust, clear.sources), ("", Vec::new()));
        load.main.tls = Some(TlsSpec::default());
        load.beside.push(FlowSpec::held(9));
        load.main.sources = SourceSpec::Count(3);
        let both = jobs(&load, true).unwrap();
        assert_eq!(both[0].peer.port(), 2);
        assert_eq!((&*both[0].host, &*both[0].trust), (HOST, "PEM"));
        assert_eq!(both[0].sources.len(), 3);
        assert_eq!((both[1].peer.port(), both[1].spec.is_held()), (1, true));
        assert_eq!(both[1].also[0].port(), 3);
        assert!(jobs(&load, false).is_err());
    }

    #[test]
    fn a_port_is_for_host_fields_and_not_for_handshakes() {
        let mut load = make_load();
        load.main.host = Some("shop.example:8443".to_owned());
        load.main.tls = Some(TlsSpec::default());
        let job = jobs(&load, true).unwrap().remove(0);
        assert_eq!(job.host, "shop.example:8443");
        let tls = job.spec.tls.unwrap();
        assert_eq!(tls.server_name.as_deref(), Some("shop.example"));
    }

    #[test]
    fn what_requests_name_goes_with_them_or_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a\nb\n").unwrap();
        let name = file.path().display().to_string();
        let mut load = make_load();
        let target = format!("/{{{{line:{name}}}}}");
        load.main.requests = vec![WeightedRequest::single(RequestSpec::get(&target))];
        let flows = Flows::read(&load, None).unwrap();
        assert_eq!(flows.files[&name].0, b"a\nb\n");
        load.main.requests = vec![WeightedRequest::single(RequestSpec::get("/{{lines}}"))];
        let error = jobs(&load, false).unwrap_err().to_string();
        assert!(error.contains("`lines` is not a slot"), "{error}");
    }
}
