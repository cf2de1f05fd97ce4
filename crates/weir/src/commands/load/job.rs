//! From what was typed to a plan: everything is checked here, before anything is sent.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use http::Uri;
use weir_http::request::encode;
use weir_load::descriptors::make_room;
use weir_load::{Group, Plan};
use weir_model::load::{Arrivals, RequestSpec};
use weir_model::load_report::Target;
use weir_model::quantity::{CpuSet, parse_duration, parse_rate};

use crate::args::LoadArgs;
use crate::commands::flag;
use crate::failure::Failure;

/// Longest trial when only a number of requests was asked for.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Descriptors that weir needs beside its connections.
const OTHER_DESCRIPTORS: u64 = 32;

/// A load test, ready to run.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) target: Target,
    pub(crate) connections: u32,
}

impl Job {
    pub(crate) fn new(args: &LoadArgs) -> Result<Job, Failure> {
        let url = Url::parse(&args.url)?;
        let request = request(args, &url)?;
        let bytes = encode(&request, &url.authority).map_err(Failure::input)?;
        let cpus = cpus(args)?;
        if args.connections == 0 {
            return Err(Failure::input("-c 0: at least one connection is needed"));
        }
        if (cpus.len() as u64) > u64::from(args.connections) {
            let message = format!("-c {}: fewer connections than threads", args.connections);
            return Err(Failure::input(message).hint(format!("use -t {}", args.connections)));
        }
        enough_descriptors(args.connections)?;
        let ramp_up = flag("--ramp-up", parse_duration(&args.ramp_up))?;
        let timeout = flag("-T", parse_duration(&args.timeout))?;
        if timeout < Duration::from_millis(1) {
            return Err(Failure::input(format!("-T {}: at least 1ms", args.timeout)));
        }
        let address = url.reachable(timeout)?;
        let group = Group {
            address,
            head: request.method == "HEAD",
            request: bytes,
            connections: args.connections,
        };
        let plan = Plan {
            groups: vec![group],
            slices: Plan::seconds(ramp_up, duration(args)?),
            arrivals: arrivals(args)?,
            ramp_up,
            timeout,
            drain: timeout,
            requests: args.requests,
            cpus,
        };
        let target = Target {
            url: args.url.clone(),
            address: address.to_string(),
            method: request.method,
            content_bytes: request.content.len() as u64,
        };
        Ok(Job {
            plan,
            target,
            connections: args.connections,
        })
    }
}

fn duration(args: &LoadArgs) -> Result<Duration, Failure> {
    if args.requests == Some(0) {
        return Err(Failure::input("-n 0: at least one request is needed"));
    }
    match (&args.duration, args.requests) {
        (Some(text), _) => {
            let duration = flag("-d", parse_duration(text))?;
            if duration < Duration::from_millis(1) {
                return Err(Failure::input(format!("-d {text}: at least 1ms")));
            }
            Ok(duration.min(LONGEST))
        }
        (None, Some(_)) => Ok(LONGEST),
        (None, None) => Ok(Duration::from_secs(10)),
    }
}

fn arrivals(args: &LoadArgs) -> Result<Arrivals, Failure> {
    match &args.rate {
        None => Ok(Arrivals::Closed),
        Some(text) => Ok(Arrivals::Constant {
            rate: flag("-R", parse_rate(text))?,
        }),
    }
}

/// The CPU of each thread.
fn cpus(args: &LoadArgs) -> Result<Vec<Option<u32>>, Failure> {
    let allowed = weir_probe::allowed_cpus()
        .map_err(|error| Failure::failed(format!("cannot read the CPUs allowed: {error}")))?;
    if let Some(text) = &args.cpus {
        let set: CpuSet = flag("--cpus", text.parse())?;
        let missing: Vec<_> = set
            .cpus()
            .iter()
            .filter(|&cpu| !allowed.cpus().contains(cpu))
            .collect();
        if let Some(cpu) = missing.first() {
            let message = format!("--cpus {text}: CPU {cpu} is not one that weir may use");
            return Err(Failure::input(message).hint(format!("weir may use {allowed}")));
        }
        return Ok(set.cpus().iter().copied().map(Some).collect());
    }
    match args.threads {
        Some(0) => Err(Failure::input("-t 0: at least one thread is needed")),
        // More threads than CPUs share them evenly.
        Some(threads) => Ok(allowed
            .cpus()
            .iter()
            .copied()
            .cycle()
            .take(threads as usize)
            .map(Some)
            .collect()),
        None => {
            let most = args.connections.max(1) as usize;
            Ok(allowed
                .cpus()
                .iter()
                .copied()
                .take(most)
                .map(Some)
                .collect())
        }
    }
}

fn enough_descriptors(connections: u32) -> Result<(), Failure> {
    let needed = u64::from(connections) + OTHER_DESCRIPTORS;
    make_room(needed).map_err(|limit| {
        let message = format!(
            "-c {connections}: needs {needed} open descriptors, but this process may have {limit}"
        );
        Failure::input(message).hint(format!("raise the limit: ulimit -n {needed}"))
    })
}

fn request(args: &LoadArgs, url: &Url) -> Result<RequestSpec, Failure> {
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
    let content = match (&args.content, &args.content_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) => std::fs::read(path).map_err(|error| {
            Failure::input(format!("--content-file {}: {error}", path.display()))
        })?,
        (None, None) => Vec::new(),
    };
    Ok(RequestSpec {
        method: args.method.clone(),
        target: url.target.clone(),
        fields,
        content,
    })
}

/// The parts of an http URL.
struct Url {
    text: String,
    host: String,
    port: u16,
    /// As the Host field wants it.
    authority: String,
    target: String,
}

impl Url {
    fn parse(text: &str) -> Result<Url, Failure> {
        let bad = |message: &str| {
            Failure::input(format!("`{text}` {message}"))
                .hint("a URL looks like http://127.0.0.1:8080/index.html")
        };
        let uri: Uri = text
            .parse()
            .map_err(|error| bad(&format!("is not a URL: {error}")))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                let message = "asks for TLS, which this version of weir does not speak";
                return Err(bad(message).hint("ask a port that serves http in clear"));
            }
            Some(other) => return Err(bad(&format!("has the scheme {other}; weir speaks http"))),
            None => return Err(bad("has no scheme")),
        }
        let authority = uri.authority().ok_or_else(|| bad("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad(
                "has a user name in it; send it with -H 'Authorization: …'",
            ));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(bad("has no host"));
        }
        // The http crate takes a port above 65535 for none.
        let after_host = authority.as_str().rsplit(']').next().unwrap_or_default();
        let port = match after_host.split_once(':') {
            None | Some((_, "")) => 80,
            Some((_, port)) => port
                .parse()
                .map_err(|_| bad(&format!("has no port `{port}`: they go from 0 to 65535")))?,
        };
        Ok(Url {
            text: text.to_owned(),
            host,
            port,
            authority: authority.as_str().to_owned(),
            target: uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }

    /// The first of the name's addresses that a connection can be opened to.
    fn reachable(&self, patience: Duration) -> Result<SocketAddr, Failure> {
        let addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| {
                Failure::input(format!("{}: the name does not resolve: {error}", self.host))
                    .hint("an address does not need resolving: http://127.0.0.1:8080/")
            })?;
        let mut refused = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, patience) {
                Ok(_) => return Ok(address),
                Err(error) => refused = Some((address, error)),
            }
        }
        Err(match refused {
            Some((address, error)) => Failure::input(format!("{}: {address}: {error}", self.text))
                .hint("is a server listening there?"),
            None => Failure::input(format!("{}: the name has no address", self.host)),
        })
    }
}
