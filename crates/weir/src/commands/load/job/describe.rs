//! Conversion of a flow's options to its description.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use weir_load::files::{LARGEST_DATA, read_at_most};
use weir_model::arrivals;
use weir_model::flow::words::{Fault, FlowSetting, Key, read};
use weir_model::flow::{ArrivalsSpec, CONNECTIONS, FlowSpec, SourceSpec};
use weir_model::load::RequestSpec;
use weir_model::request::{WeightedRequest, escape};

use super::url::Url;
use super::{DEFAULT_DURATION, addresses};
use crate::args::FlowArgs;
use crate::failure::Failure;
use crate::request_file;

/// A flow as it was typed: its description and its server.
pub(super) struct Described {
    pub(super) spec: FlowSpec,
    pub(super) url: Url,
    /// Addresses to connect to instead of the URL's.
    pub(super) to: Option<String>,
    /// Total time of the rate's steps, if each step states its own.
    pub(super) steps: Option<Duration>,
}

impl Described {
    /// Returns the addresses that the flow may connect to. A name is resolved only once: later it may have other
    /// addresses, which nobody has agreed to.
    pub(super) fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        match &self.to {
            Some(text) => addresses::targets(text),
            None => self.url.addresses(),
        }
    }
}

/// Stands for the rates of a search, which are not known yet, where options are checked that need a rate.
const ANY_RATE: ArrivalsSpec = ArrivalsSpec::Constant(1.0);

/// Reads the options of a flow. `duration` is that of the trial, if it was given.
pub(super) fn describe(
    name: &str,
    args: &FlowArgs,
    duration: Option<Duration>,
) -> Result<Described, Failure> {
    describe_with(name, args, duration, ArrivalsSpec::Closed)
}

/// Reads the options of a flow whose rate a search chooses.
pub(super) fn describe_for_search(name: &str, args: &FlowArgs) -> Result<Described, Failure> {
    describe_with(name, args, None, ANY_RATE)
}

/// Reads the options of a flow with these arrivals, unless the options give others.
fn describe_with(
    name: &str,
    args: &FlowArgs,
    duration: Option<Duration>,
    arrivals: ArrivalsSpec,
) -> Result<Described, Failure> {
    let url = args.url.as_deref().ok_or_else(|| {
        Failure::input("where are requests to be sent?").hint("weir load http://127.0.0.1:8080/")
    })?;
    let url = Url::parse(url)?;
    // What is wrong with a rate is a fault of the flow.
    let steps =
        args.rate.as_deref().and_then(|rate| arrivals::length_of_steps(rate).ok()).flatten();
    let base = FlowSpec {
        name: name.to_owned(),
        requests: requests(args, &url)?,
        sources: match &args.source {
            Some(text) => SourceSpec::These(addresses::sources(text)?),
            None => SourceSpec::Needed,
        },
        ..FlowSpec::new(CONNECTIONS, arrivals)
    };
    let length = duration.or(steps).unwrap_or(DEFAULT_DURATION);
    let (spec, faults) = read(&list_options(args, &url), base, length);
    if let Some(failure) = Failure::all(faults.into_iter().map(|fault| refused(fault, &url))) {
        return Err(failure);
    }
    Ok(Described { spec, url, to: args.to.clone(), steps })
}

/// Returns the given options as keys with their texts.
fn list_options(args: &FlowArgs, url: &Url) -> Vec<FlowSetting> {
    fn number<T: ToString>(value: Option<T>) -> Option<String> {
        value.map(|value| value.to_string())
    }
    fn choice<T: ValueEnum>(value: Option<T>) -> Option<String> {
        Some(value?.to_possible_value()?.get_name().to_owned())
    }
    fn file(path: &Option<std::path::PathBuf>) -> Option<String> {
        path.as_deref().map(text)
    }
    fn flag(is_set: bool) -> Option<String> {
        is_set.then(String::new)
    }
    let all = [
        (Key::Secure, flag(url.secure)),
        (Key::Connections, number(args.connections)),
        (Key::Connection, args.connection.clone()),
        (Key::Close, choice(args.close)),
        (Key::ConnectRate, args.connect_rate.clone()),
        (Key::Pipeline, number(args.pipeline)),
        (Key::Rate, args.rate.clone()),
        (Key::Arrivals, args.arrivals.clone()),
        (Key::Trace, file(&args.trace)),
        (Key::TraceSpeed, args.trace_speed.clone()),
        (Key::Schedule, choice(args.schedule)),
        (Key::Overflow, choice(args.overflow)),
        (Key::Limit, number(args.requests)),
        (Key::Timeout, args.timeout.clone()),
        (Key::Authorities, file(&args.ca)),
        (Key::Insecure, flag(args.insecure)),
        (Key::TlsVersion, args.tls.clone()),
        (Key::Ciphers, args.ciphers.clone()),
        (Key::Groups, args.groups.clone()),
        (Key::Alpn, args.alpn.clone()),
        (Key::ServerName, args.sni.clone()),
        (Key::Resumption, args.resumption.clone()),
        (Key::EarlyData, flag(args.early_data)),
        (Key::Certificate, file(&args.cert)),
        (Key::CertificateKey, file(&args.key)),
    ];
    let expect = args.expect.iter().cloned().map(Some);
    all.into_iter()
        .chain(expect.map(|text| (Key::Expect, text)))
        .filter_map(|(key, text)| Some(FlowSetting { key, text: text? }))
        .collect()
}

/// Converts a fault of a flow to a failure that names its option.
pub(super) fn refused(fault: Fault, url: &Url) -> Failure {
    let flag = fault.key.flag();
    if !url.secure && fault.is_about_tls() {
        let message = format!("{flag}: `{}` has no TLS", url.text);
        return Failure::input(message).hint("a URL over TLS begins with https://");
    }
    let suggestion = fault.nearest.map(|word| format!("did you mean {word}?"));
    Failure::input(format!("{flag}: {}", fault.message)).maybe_hint(suggestion.or(fault.hint))
}

/// Returns the requests of a file, or the one of the command line.
fn requests(args: &FlowArgs, url: &Url) -> Result<Vec<WeightedRequest>, Failure> {
    let fields = read_fields(args)?;
    if let Some(path) = &args.request_set {
        if !args.expect.is_empty() {
            let message =
                "--expect: with --request-set, each request of the set has its own expectations";
            return Err(Failure::input(message));
        }
        // A session that was recorded elsewhere is found by the name that is sent.
        let named = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host =
            named.map_or(&*url.host, |(_, value)| value.split(':').next().unwrap_or_default());
        // What a request says itself goes before what all of them say.
        return request_file::read(path, host, |request: &mut RequestSpec| {
            fields.iter().for_each(|(name, value)| request.add_field(name, value));
        });
    }
    Ok(vec![WeightedRequest::single(RequestSpec {
        method: args.method.clone().unwrap_or_else(|| "GET".to_owned()),
        target: url.target.clone(),
        fields,
        content: content(args)?,
    })])
}

/// Reads the header fields of `-H`.
fn read_fields(args: &FlowArgs) -> Result<Vec<(String, String)>, Failure> {
    args.fields.iter().map(|field| read_field(field)).collect()
}

fn read_field(field: &str) -> Result<(String, String), Failure> {
    let (name, value) = field.split_once(':').ok_or_else(|| {
        // The whole of it may be a secret.
        let name = field.split_whitespace().next().unwrap_or_default();
        let shown = if name.len() < field.trim().len() {
            format!("`{name} …`")
        } else {
            format!("({} characters)", field.chars().count())
        };
        Failure::input(format!("-H {shown}: a header is a name, a colon and a value"))
            .hint("for example -H 'Accept: text/html'")
    })?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn content(args: &FlowArgs) -> Result<Vec<u8>, Failure> {
    match (&args.content, &args.content_file) {
        (Some(text), _) if text.len() > 1 && text.starts_with('@') => {
            let message = "-b: the text itself is sent, so that `@` begins no file's name";
            Err(Failure::input(message).hint(format!("--content-file {}", &text[1..])))
        }
        (Some(text), _) => Ok(text.clone().into_bytes()),
        // A file is sent as it is.
        (None, Some(path)) => {
            let content = read_at_most(path, LARGEST_DATA).map_err(|error| {
                Failure::input(format!("--content-file {}: {error}", path.display()))
            })?;
            Ok(escape(&content))
        }
        (None, None) => Ok(Vec::new()),
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
