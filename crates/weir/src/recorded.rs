//! Sets of requests made from a browser's recording (HAR).

use std::collections::BTreeMap;
use std::slice;

use weir_load::RequestSet;
use weir_load::har::{self, Recorded};
use weir_load::request_set::SetError;
use weir_load::template::{Files, TemplateError};
use weir_model::load::{LeftOut, RequestSpec};
use weir_model::request::{WeightedRequest, escape};

use crate::failure::Failure;
use crate::terminal;

/// Headers that belong to the recorded connection, or that weir writes itself.
#[rustfmt::skip]
const OF_CONNECTION: [&str; 7] = [
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "upgrade",
];

const SECRETS: [&str; 2] = ["cookie", "authorization"];

/// Returns the requests to `host` in a HAR file. Equal ones become one with a weight.
pub(crate) fn requests(
    file: &str,
    bytes: &[u8],
    host: &str,
) -> Result<Vec<WeightedRequest>, Failure> {
    let recorded = har::parse(bytes)
        .map_err(|error| refused(file, format!("cannot be read as a HAR file: {error}")))?;
    let mut requests: Vec<WeightedRequest> = Vec::new();
    let mut other_hosts = BTreeMap::new();
    let mut left_out = Vec::new();
    for (entry, number) in recorded.iter().zip(1..) {
        let request = match &entry.destination {
            Ok((other, _)) if !other.eq_ignore_ascii_case(host) => {
                *other_hosts.entry(other).or_insert(0_u64) += 1;
                continue;
            }
            Ok((_, target)) => request(entry, target),
            Err(kind) => Err(*kind),
        };
        match request {
            Ok(request) => {
                let request = WeightedRequest::single(request);
                can_be_sent(&request, host)
                    .map_err(|error| refused(file, format!("entry {number}: {error}")))?;
                add(&mut requests, request);
            }
            Err(kind) => LeftOut::count(&mut left_out, kind, number),
        }
    }
    let list = other_hosts
        .iter()
        .map(|(host, count)| format!("{host} ({count})"))
        .collect::<Vec<_>>()
        .join(", ");
    let (_, kinds) = LeftOut::told(&left_out);
    if recorded.is_empty() {
        return Err(refused(file, "it has no requests".to_owned()));
    }
    if requests.is_empty() && !other_hosts.is_empty() {
        let first = other_hosts.keys().next().map_or("HOST", |host| host);
        let hint = format!("weir load --request-set {file} --to ADDRESS:PORT http://{first}/");
        return Err(refused(file, format!("no request to {host}, but to {list}")).hint(hint));
    }
    if requests.is_empty() {
        return Err(refused(file, format!("no request that can be sent: {kinds}")));
    }
    for (what, list) in [("requests to other hosts", list), ("requests", kinds)] {
        if !list.is_empty() {
            terminal::tell(&format!("weir: {file}: {what} are left out: {list}\n"));
        }
    }
    let mut headers = requests.iter().flat_map(|request| &request.request.fields);
    if headers.any(|(name, _)| SECRETS.contains(&&*name.to_ascii_lowercase())) {
        terminal::tell(&format!(
            "weir: {file}: Cookie and Authorization headers are sent as they were recorded\n"
        ));
    }
    Ok(requests)
}

fn refused(file: &str, message: String) -> Failure {
    Failure::input(format!("{file}: {message}"))
}

/// Checks that a request can be written as HTTP/1.1: a recording may have anything in its headers.
fn can_be_sent(request: &WeightedRequest, host: &str) -> Result<(), TemplateError> {
    match RequestSet::weighted(slice::from_ref(request), host, &mut Files::default()) {
        Err(SetError::Template { error, .. }) => Err(error),
        // Only a template can be wrong.
        _ => Ok(()),
    }
}

/// Adds a request, or makes the same one heavier.
fn add(requests: &mut Vec<WeightedRequest>, request: WeightedRequest) {
    match requests.iter_mut().find(|weighted| weighted.request == request.request) {
        Some(weighted) => weighted.weight += 1.0,
        None => requests.push(request),
    }
}

/// Converts a recorded request. It is sent as it is: characters that would be slots are escaped.
fn request(recorded: &Recorded, target: &str) -> Result<RequestSpec, &'static str> {
    let headers = recorded.headers.iter().filter(|(name, _)| {
        !name.starts_with(':') && !OF_CONNECTION.contains(&&*name.to_ascii_lowercase())
    });
    Ok(RequestSpec {
        method: recorded.method.clone(),
        target: escape_text(target),
        fields: headers.map(|(name, value)| (name.clone(), escape_text(value))).collect(),
        content: escape(recorded.content.as_ref().map_err(|kind| *kind)?),
    })
}

fn escape_text(text: &str) -> String {
    String::from_utf8_lossy(&escape(text.as_bytes())).into_owned()
}
