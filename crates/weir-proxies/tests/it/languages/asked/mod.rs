//! Lookup of the listener, server and location that answer, as each proxy chooses them.

mod documents;
mod haproxy;
mod nginx;

use weir_configuration::{ConfigurationError, RequestOutcome};
use weir_model::study::{AskSpec, RequestedSpec};

/// Parses the short form of a load: `tls`, `cert` for a client with a certificate, `:8080` for a port, `shop.example`
/// for a host, `/path`, `HEAD`, `name=value` for a field; every part may be missing.
pub(crate) fn ask(text: &str) -> AskSpec {
    let mut ask = AskSpec::default();
    let mut requested = RequestedSpec { target: "/".to_owned(), ..RequestedSpec::default() };
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match word.split_at(1) {
            (":", port) => ask.port = port.parse().ok(),
            ("/", _) => requested.target = word.to_owned(),
            _ if word == "HEAD" => requested.method = word.to_owned(),
            _ if word.contains('=') => {
                let (name, value) = word.split_once('=').unwrap();
                requested.fields.push((name.to_owned(), value.to_owned()));
            }
            _ if word == "tls" => ask.tls = true,
            _ if word == "cert" => (ask.tls, ask.certified) = (true, true),
            _ if word == "files" => ask.files = true,
            _ => ask.host = Some(word.to_owned()),
        }
    }
    ask.requests = vec![requested];
    ask
}

/// Formats an answer: `*:80 | server shop | location / | passes it on`; parts on the way stand before the server.
fn shown(asked: &RequestOutcome) -> String {
    let RequestOutcome { listener, past, through, server, location, answer, .. } = asked;
    let past: String = past.iter().map(|it| format!("past {}: ", it.name)).collect();
    let through: String = through.iter().map(|it| format!("{} → ", it.name)).collect();
    format!(
        "{} | {past}{through}{} | {} | {answer}",
        listener.address,
        name_of(server),
        name_of(location)
    )
}

fn name_of(spot: &Option<weir_configuration::Spot>) -> &str {
    spot.as_ref().map_or("-", |spot| &spot.name)
}

type LookUp<'a> = &'a dyn Fn(&AskSpec) -> Result<Vec<RequestOutcome>, ConfigurationError>;

/// Checks the answer of each load, or the place and words of its error; `…` stands for the rest.
#[track_caller]
fn must_be(look_up: LookUp<'_>, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let report = match look_up(&ask(text)) {
            Ok(asked) => shown(&asked[0]),
            Err(error) => format!("{}:{} {}", error.line, error.column, error.what),
        };
        match expected.strip_suffix('…') {
            Some(begin) => assert!(report.starts_with(begin), "{text}: {report}"),
            None => assert_eq!(report, *expected, "{text}"),
        }
    }
}

/// Checks a table with a line for each load: `tls shop.example => 443 | server shop | location / | passes it on`. `#`
/// begins a comment.
#[track_caller]
fn all_must_be(look_up: LookUp<'_>, table: &str) {
    let cases = table
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once("=> ").expect(line));
    must_be(look_up, &cases.collect::<Vec<_>>());
}
