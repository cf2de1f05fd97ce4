//! Checks by the load engine of loads that people describe, in studies and as options.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use weir_load::expect::Expectation;
use weir_load::request_set::RequestSet;
use weir_load::template::{self, Files, Part};
use weir_load::{Trace, TraceError};
use weir_model::flow::words::{Fault, Key};
use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::load::LeftOut;
use weir_model::request::WeightedRequest;
use weir_study::{Engine, RequestFault, read_small};

use crate::name_lookup;

/// Engine for checking studies.
pub(crate) const ENGINE: Engine = Engine { read: read_small, resolve, requests, flow };

/// Returns the first address of `name:port`.
fn resolve(text: &str) -> io::Result<SocketAddr> {
    let all = name_lookup::addresses(text)?;
    all.into_iter().next().ok_or_else(|| io::Error::other("the name has no address"))
}

/// Placeholder authority: the length of a Host header does not matter here.
const HOST: &str = "weir.test";

/// Returns all faults that prevent the requests from being sent.
fn requests(specs: &[WeightedRequest]) -> Vec<RequestFault> {
    let mut files = Files::default();
    let mut faults = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        for (part, error) in template::faults(&spec.request, HOST, &mut files) {
            let (key, header) = match part {
                None => (None, None),
                Some(Part::Target) => (Some("path"), None),
                Some(Part::Field(name)) => (Some("fields"), Some(name)),
                Some(Part::Content) => (Some("content"), None),
            };
            let hint = error.hint();
            faults.push(RequestFault { header, ..fault(index, key, error, hint) });
        }
        if let Some(Err(error)) = spec.expect.as_ref().map(Expectation::new) {
            faults.push(fault(index, Some("expect"), error, None));
        }
    }
    if faults.is_empty()
        && !specs.is_empty()
        && let Err(error) = RequestSet::weighted(specs, HOST, &mut files)
    {
        let (number, hint) = (error.number(), error.hint());
        let index = number.map_or(0, |number| number - 1);
        faults.push(fault(index, number.map(|_| "weight"), error, hint));
    }
    faults
}

fn fault(
    index: usize,
    key: Option<&'static str>,
    error: impl ToString,
    hint: Option<String>,
) -> RequestFault {
    RequestFault { index, key, header: None, message: error.to_string(), hint }
}

/// Returns all faults in the files that a flow names.
fn flow(spec: &FlowSpec) -> Vec<Fault> {
    let trace = match trace(spec) {
        Ok(trace) => trace.and_then(|trace| overridden(spec, &trace)),
        Err(error) => Some(Fault::new(Key::Trace, error)),
    };
    let client = spec.tls.as_ref().and_then(|tls| tls.client.as_ref());
    let files = client.map(|client| {
        [(Key::Certificate, &client.certificate), (Key::CertificateKey, &client.key)]
    });
    let unreadable = files.into_iter().flatten().filter_map(|(key, path)| {
        let error = read_small(Path::new(path)).err()?;
        Some(Fault::new(key, format!("cannot read `{path}`: {error}")))
    });
    trace.into_iter().chain(unreadable).collect()
}

/// Name of standard input.
pub(crate) const STDIN: &str = "-";

/// Reads the recorded arrivals of a flow; `None` if it does not replay any.
pub(crate) fn trace(spec: &FlowSpec) -> Result<Option<Trace>, TraceError> {
    match &spec.arrivals {
        // What is read only once.
        ArrivalsSpec::Trace(named) if named.file == STDIN => Err(TraceError::Read {
            file: STDIN.to_owned(),
            source: io::Error::other("studies and generators on other hosts need a file"),
        }),
        ArrivalsSpec::Trace(named) => Trace::read(Path::new(&named.file), named.speed).map(Some),
        _ => Ok(None),
    }
}

/// Describes what is not sent of a log, in a sentence each: lines that are left out, and bodies that it lacks.
pub(crate) fn left_out(file: &str, trace: &Trace) -> Vec<String> {
    let (lines, kinds) = LeftOut::told(&trace.left_out);
    let (all, bodies) = (trace.times.len() as u64 + lines, trace.with_content());
    let lines_left_out = format!("`{file}`: {lines} of {all} lines are left out: {kinds}");
    let without_body = format!(
        "`{file}`: requests by POST, PUT or PATCH: {bodies}. A trace has no bodies: they are sent with the one that -b \
         gives for all requests, or with none"
    );
    [(lines, lines_left_out), (bodies, without_body)]
        .into_iter()
        .filter_map(|(count, text)| (count > 0).then_some(text))
        .collect()
}

/// Returns a fault if the trace's own requests would replace those that were given.
pub(crate) fn overridden(spec: &FlowSpec, trace: &Trace) -> Option<Fault> {
    trace.which.as_ref()?;
    if let [one] = &spec.requests[..]
        && one.request.target == "/"
        && one.request.method == "GET"
    {
        return None;
    }
    let fault = Fault::new(
        Key::Trace,
        "the trace has its own methods and paths, which would replace yours",
    );
    Some(fault.hint("omit the method and use the path /, or replay a trace that has only times"))
}
