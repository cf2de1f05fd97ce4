//! Requests that a browser has recorded (HAR), as a set of requests.

use std::collections::BTreeMap;

use weir_load::har::{self, Recorded};
use weir_model::load::RequestSpec;
use weir_model::request::{WeightedRequest, escape};

use crate::failure::Failure;
use crate::terminal;

/// Headers that belong to the recorded connection, or that weir writes itself.
#[rustfmt::skip]
const OF_CONNECTION: [&str; 7] = [
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "upgrade",
];

const SECRETS: [&str; 2] = ["cookie", "authorization"];

/// The requests to `host` in a HAR file, equal ones as one that is sent as often.
pub(crate) fn requests(
    file: &str,
    bytes: &[u8],
    host: &str,
) -> Result<Vec<WeightedRequest>, Failure> {
    let refused = |message: String| Failure::input(format!("{file}: {message}"));
    let recorded = har::parse(bytes)
        .map_err(|error| refused(format!("cannot be read as a HAR file: {error}")))?;
    let mut requests: Vec<WeightedRequest> = Vec::new();
    let mut others = BTreeMap::new();
    for one in &recorded {
        let Some((own, target)) = &one.destination else {
            continue;
        };
        if !own.eq_ignore_ascii_case(host) {
            *others.entry(own).or_insert(0_u64) += 1;
            continue;
        }
        let request = request(one, target);
        match requests.iter_mut().find(|known| known.request == request) {
            Some(known) => known.weight += 1.0,
            None => requests.push(WeightedRequest::single(request)),
        }
    }
    let mut list: Vec<String> = Vec::new();
    list.extend(
        others
            .iter()
            .map(|(host, count)| format!("{host} ({count})")),
    );
    let list = list.join(", ");
    if requests.is_empty() {
        let first = others.keys().next().map_or("HOST", |host| host);
        let hint = format!("weir load --request-set {file} --to ADDRESS:PORT http://{first}/");
        return Err(refused(format!("no request to {host}, but to {list}")).hint(hint));
    }
    if !others.is_empty() {
        terminal::tell(&format!(
            "weir: {file}: requests to other hosts are left out: {list}\n"
        ));
    }
    let mut headers = requests.iter().flat_map(|one| &one.request.fields);
    if headers.any(|(name, _)| SECRETS.contains(&&*name.to_ascii_lowercase())) {
        terminal::tell(&format!(
            "weir: {file}: Cookie and Authorization headers are sent as they were recorded\n"
        ));
    }
    Ok(requests)
}

/// What is recorded is sent as it is: it has no slots.
fn request(recorded: &Recorded, target: &str) -> RequestSpec {
    let plain = |text: &str| String::from_utf8_lossy(&escape(text.as_bytes())).into_owned();
    let headers = recorded.headers.iter().filter(|(name, _)| {
        !name.starts_with(':') && !OF_CONNECTION.contains(&&*name.to_ascii_lowercase())
    });
    RequestSpec {
        method: recorded.method.clone(),
        target: plain(target),
        fields: headers
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect(),
        content: escape(recorded.content.as_bytes()),
    }
}
