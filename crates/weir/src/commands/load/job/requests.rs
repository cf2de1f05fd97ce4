//! What a flow sends, and what it expects back.

use std::path::Path;

use weir_load::request_set::SetError;
use weir_load::template::Files;
use weir_load::{RequestSet, Trace};
use weir_model::load::{Lifetime, RequestSpec};
use weir_model::quantity::parse_bytes;
use weir_model::request::{ExpectSpec, FieldSpec, StatusSpec, WeightedRequest, escape};

use super::url::Url;
use crate::args::FlowArgs;
use crate::commands::flag;
use crate::failure::Failure;
use crate::request_file;

/// Requests ready to be sent, and the first of them for the report.
pub(super) struct Requests {
    pub(super) set: RequestSet,
    pub(super) first: RequestSpec,
}

/// The requests of a trace, of a file, or the one of the command line.
pub(super) fn requests(
    args: &FlowArgs,
    url: &Url,
    lifetime: Lifetime,
    trace: Option<&Trace>,
) -> Result<Requests, Failure> {
    let fields = fields(args, lifetime)?;
    let mut files = Files::default();
    let expect = expectation(args)?;
    if let Some(path) = &args.request_set {
        if expect.is_some() {
            let message = "--expect: with --request-set, each request says itself what it expects";
            return Err(Failure::input(message));
        }
        let add = |request: &mut RequestSpec| add_fields(request, &fields);
        let file = request_file::read(path, &url.authority, &mut files, add)?;
        let first = file.specs[0].request.clone();
        return Ok(Requests {
            set: file.set,
            first,
        });
    }
    let own = RequestSpec {
        method: args.method.clone().unwrap_or_else(|| "GET".to_owned()),
        target: url.target.clone(),
        fields,
        content: content(args)?,
    };
    let weighted = |request| WeightedRequest {
        expect: expect.clone(),
        ..WeightedRequest::single(request)
    };
    let recorded = trace.and_then(|trace| Some((&trace.requests, trace.which.clone()?)));
    let made = match recorded {
        Some((requests, which)) => {
            let specs = requests.iter().map(|(method, target)| {
                weighted(RequestSpec {
                    method: method.clone(),
                    target: String::from_utf8_lossy(&escape(target.as_bytes())).into_owned(),
                    ..own.clone()
                })
            });
            let specs: Vec<_> = specs.collect();
            RequestSet::by_arrival(&specs, which, &url.authority, &mut files)
        }
        None => {
            let spec = weighted(own.clone());
            RequestSet::weighted(&[spec], &url.authority, &mut files)
        }
    };
    let set = made.map_err(refused)?;
    Ok(Requests { set, first: own })
}

/// The only request needs no number.
fn refused(error: SetError) -> Failure {
    let hint = error.hint();
    let failure = match error {
        SetError::Template { error, .. } => Failure::input(error),
        SetError::Expect { error, .. } => Failure::input(format!("--expect: {error}")),
        other => Failure::input(other),
    };
    failure.maybe_hint(hint)
}

/// What `-H` says, and what the connection's policy adds.
fn fields(args: &FlowArgs, lifetime: Lifetime) -> Result<Vec<(String, String)>, Failure> {
    let mut fields = Vec::new();
    for field in &args.fields {
        let (name, value) = field.split_once(':').ok_or_else(|| {
            Failure::input(format!(
                "-H `{field}`: a field is a name, a colon and a value"
            ))
            .hint("for example -H 'Accept: text/html'")
        })?;
        fields.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    // Who sends one request on a connection says so (RFC 9112 §9.6): the server closes first, and
    // the wait for stray packets (TIME_WAIT) holds none of our ports.
    if lifetime == Lifetime::Request && !has(&fields, "connection") {
        fields.push(("Connection".to_owned(), "close".to_owned()));
    }
    Ok(fields)
}

fn has(fields: &[(String, String)], name: &str) -> bool {
    let mut names = fields.iter().map(|(own, _)| own);
    names.any(|own| own.eq_ignore_ascii_case(name))
}

/// What a request says itself goes before what all of them say.
fn add_fields(request: &mut RequestSpec, fields: &[(String, String)]) {
    for (name, value) in fields {
        if !has(&request.fields, name) {
            request.fields.push((name.clone(), value.clone()));
        }
    }
}

fn content(args: &FlowArgs) -> Result<Vec<u8>, Failure> {
    match (&args.content, &args.content_file) {
        (Some(text), _) => Ok(text.clone().into_bytes()),
        // A file is sent as it is.
        (None, Some(path)) => Ok(escape(&read(path)?)),
        (None, None) => Ok(Vec::new()),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::input(format!("--content-file {}: {error}", path.display())))
}

/// What every response must be; `None` when anything will do.
fn expectation(args: &FlowArgs) -> Result<Option<ExpectSpec>, Failure> {
    let mut all = ExpectSpec::default();
    for text in &args.expect {
        let bad = || {
            Failure::input(format!("--expect {text}: is nothing that can be expected")).hint(
                "status=200, status=2xx,304, size=1KiB, sha256=…, field=Name, or field=Name: value",
            )
        };
        let (what, value) = text.split_once('=').ok_or_else(bad)?;
        match what.trim() {
            "status" => {
                for code in value.split(',').map(str::trim) {
                    all.status.push(StatusSpec::parse(code).ok_or_else(bad)?);
                }
            }
            "size" => all.size = Some(flag("--expect size", parse_bytes(value.trim()))?),
            "sha256" => all.sha256 = Some(value.trim().to_owned()),
            "field" => {
                let field = match value.split_once(':') {
                    None => (value.trim(), FieldSpec::Present),
                    Some((name, value)) => (name.trim(), FieldSpec::Value(value.trim().to_owned())),
                };
                all.fields.push((field.0.to_owned(), field.1));
            }
            _ => return Err(bad()),
        }
    }
    Ok((!args.expect.is_empty()).then_some(all))
}
