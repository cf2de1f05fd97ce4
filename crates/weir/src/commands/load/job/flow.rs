//! One flow: from its options to the engine's plan.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weir_load::{Flow, Route, Trace};
use weir_model::arrivals::{self, parse_arrivals};
use weir_model::load::{Arrivals, Assignment, Lifetime, Overflow};
use weir_model::load_report::Target;
use weir_model::quantity::{parse_duration, parse_rate};

use super::requests::{Requests, requests};
use super::url::Url;
use super::{DEFAULT_DURATION, LONGEST, Named, addresses, room, tls};
use crate::args::{FlowArgs, OverflowChoice, ScheduleChoice};
use crate::commands::flag;
use crate::failure::Failure;

/// Connections where nobody says how many.
pub(super) const CONNECTIONS: u32 = 50;

/// Most requests in flight on one connection: beyond, a server's buffers are what is measured.
const DEEPEST: u16 = 1024;

/// A flow, ready to run.
pub(super) struct Prepared {
    pub(super) plan: Flow,
    pub(super) named: Named,
    /// How long it takes when nobody says for how long.
    pub(super) length: Option<Duration>,
}

/// Checks what was typed of a flow. `duration` is that of the trial, if it was given.
pub(super) fn prepare(
    name: &str,
    args: &FlowArgs,
    duration: Option<Duration>,
) -> Result<Prepared, Failure> {
    let url = args.url.as_deref().ok_or_else(|| {
        Failure::input("where are requests to be sent?").hint("weir load http://127.0.0.1:8080/")
    })?;
    let url = Url::parse(url)?;
    let connections = connections(args)?;
    if args.requests == Some(0) {
        return Err(Failure::input("-n 0: at least one request is needed"));
    }
    let policy = policy(args)?;
    let steps = length_of_steps(args)?;
    let duration = duration.or(steps);
    let timeout = timeout(args)?;
    let trace = trace(args)?;
    let Requests {
        set,
        first: request,
    } = requests(args, &url, policy.lifetime, trace.as_ref())?;
    let tls = tls::connector(args, &url)?;
    let peers = peers(args, &url, timeout)?;
    let address = peers[0];
    let length = trace.as_ref().map(trace_length).or(steps);
    let arrivals = match (&trace, &args.trace) {
        (Some(trace), Some(path)) => trace.arrivals(&path.display().to_string()),
        _ => timed(args, &policy, connections, duration)?,
    };
    let mut plan = Flow::new(address, set, connections, arrivals);
    plan.routes = routes(&peers, args)?;
    plan.tls = tls;
    plan.lifetime = policy.lifetime;
    plan.connect_rate = match &args.connect_rate {
        Some(text) => Some(flag("--connect-rate", parse_rate(text))?),
        None => None,
    };
    plan.assignment = match args.schedule {
        Some(ScheduleChoice::PerConnection) => Assignment::PerConnection,
        Some(ScheduleChoice::Global) | None => Assignment::Global,
    };
    plan.overflow = match args.overflow {
        Some(OverflowChoice::Drop) => Overflow::Drop,
        Some(OverflowChoice::Queue) | None => Overflow::Queue,
    };
    plan.pipeline = depth(args, &plan)?;
    in_vain(&plan)?;
    plan.timeout = timeout;
    plan.limit = args.requests;
    plan.trace = trace.map(|trace| trace.times);
    room::enough_ports(&plan)?;
    let target = Target {
        url: url.text.clone(),
        address: address.to_string(),
        method: request.method,
        content_bytes: request.content.len() as u64,
    };
    Ok(Prepared {
        length: args.requests.map(|_| LONGEST).or(length),
        plan,
        named: Named {
            name: name.to_owned(),
            target,
        },
    })
}

/// How many connections a flow has.
pub(super) fn connections(args: &FlowArgs) -> Result<u32, Failure> {
    match args.connections.unwrap_or(CONNECTIONS) {
        0 => Err(Failure::input("-c 0: at least one connection is needed")),
        connections => Ok(connections),
    }
}

/// What `--connection` says.
struct Policy {
    lifetime: Lifetime,
    /// Connections are held; with a time, one request is sent on each so often.
    held: Option<Option<Duration>>,
}

fn policy(args: &FlowArgs) -> Result<Policy, Failure> {
    let text = args.connection.as_deref().unwrap_or("keep-alive");
    let bad = || {
        Failure::input(format!("--connection {text}: is no policy")).hint(
            "keep-alive, per-request, a number of requests (1000), a time (30s), hold, or hold:10s",
        )
    };
    let lifetime = |lifetime| Policy {
        lifetime,
        held: None,
    };
    let some_time = |text: &str| {
        let time = parse_duration(text).ok();
        time.filter(|time| !time.is_zero()).ok_or_else(bad)
    };
    Ok(match text {
        "keep-alive" => lifetime(Lifetime::Kept),
        "per-request" | "close" => lifetime(Lifetime::Request),
        "hold" => Policy {
            lifetime: Lifetime::Kept,
            held: Some(None),
        },
        _ => {
            if let Some(every) = text.strip_prefix("hold:") {
                return Ok(Policy {
                    lifetime: Lifetime::Kept,
                    held: Some(Some(some_time(every)?)),
                });
            }
            match text.parse::<u32>() {
                Ok(0) => return Err(bad()),
                Ok(1) => lifetime(Lifetime::Request),
                Ok(requests) => lifetime(Lifetime::Requests(requests)),
                Err(_) => lifetime(Lifetime::Time(some_time(text)?.as_nanos() as u64)),
            }
        }
    })
}

fn timed(
    args: &FlowArgs,
    policy: &Policy,
    connections: u32,
    duration: Option<Duration>,
) -> Result<Arrivals, Failure> {
    if let Some(held) = policy.held {
        if args.rate.is_some() || args.trace.is_some() {
            let message = "--connection hold: held connections are not given a rate or a trace";
            return Err(
                Failure::input(message).hint("one request each 10 s: --connection hold:10s")
            );
        }
        return Ok(match held {
            None => Arrivals::Held,
            Some(every) => Arrivals::Constant {
                rate: f64::from(connections) / every.as_secs_f64(),
            },
        });
    }
    let Some(rate) = &args.rate else {
        return Ok(Arrivals::Closed);
    };
    let spacing = args.arrivals.as_deref().unwrap_or("even");
    let duration = duration.unwrap_or(DEFAULT_DURATION);
    parse_arrivals(rate, spacing, duration).map_err(|error| Failure::input(format!("-R: {error}")))
}

/// How long the steps of a rate last, when each says so itself.
fn length_of_steps(args: &FlowArgs) -> Result<Option<Duration>, Failure> {
    match &args.rate {
        Some(text) => {
            arrivals::length_of_steps(text).map_err(|error| Failure::input(format!("-R: {error}")))
        }
        None => Ok(None),
    }
}

/// The recorded arrivals of `--trace`.
fn trace(args: &FlowArgs) -> Result<Option<Trace>, Failure> {
    let Some(path) = &args.trace else {
        return Ok(None);
    };
    let speed = args.trace_speed.unwrap_or(1.0);
    if !(speed.is_finite() && speed > 0.0) {
        let message = format!("--trace-speed {speed}: must be above zero");
        return Err(Failure::input(message));
    }
    let trace =
        Trace::read(path, speed).map_err(|error| Failure::input(format!("--trace {error}")))?;
    Ok(Some(trace))
}

/// Until just after the last arrival.
fn trace_length(trace: &Trace) -> Duration {
    Duration::from_nanos(trace.length_ns()) + Duration::from_millis(1)
}

fn depth(args: &FlowArgs, plan: &Flow) -> Result<u16, Failure> {
    let depth = args.pipeline.unwrap_or(1);
    if depth == 0 || depth > DEEPEST {
        let message = format!("--pipeline {depth}: from 1 to {DEEPEST}");
        return Err(Failure::input(message));
    }
    if depth > 1 && plan.lifetime == Lifetime::Request {
        let message = "--pipeline: a connection per request cannot have several in flight";
        return Err(Failure::input(message));
    }
    Ok(depth)
}

/// Options that another one leaves without effect.
fn in_vain(plan: &Flow) -> Result<(), Failure> {
    let message = match plan {
        Flow {
            lifetime: Lifetime::Request,
            connect_rate: Some(_),
            ..
        } => "--connect-rate: each request opens its own connection; -R is their rate",
        flow if flow.overflow == Overflow::Drop && !flow.is_open_loop() => {
            "--overflow drop: without a rate nothing is due that could be dropped"
        }
        flow if flow.assignment == Assignment::PerConnection && !flow.is_open_loop() => {
            "--schedule per-connection: without a rate there is no schedule"
        }
        flow if flow.pipeline > 1 && flow.is_held() => "--pipeline: held connections send nothing",
        _ => return Ok(()),
    };
    Err(Failure::input(message))
}

fn timeout(args: &FlowArgs) -> Result<Duration, Failure> {
    let text = args.timeout.as_deref().unwrap_or("2s");
    let timeout = flag("-T", parse_duration(text))?;
    if timeout < Duration::from_millis(1) {
        return Err(Failure::input(format!("-T {text}: at least 1ms")));
    }
    Ok(timeout)
}

/// The server's addresses: those of `--to`, or the first of the URL's that answers.
fn peers(args: &FlowArgs, url: &Url, timeout: Duration) -> Result<Vec<SocketAddr>, Failure> {
    match &args.to {
        Some(text) => addresses::targets(text),
        None => Ok(vec![url.reachable(timeout)?]),
    }
}

/// Every own address to every server address.
fn routes(peers: &[SocketAddr], args: &FlowArgs) -> Result<Vec<Route>, Failure> {
    let Some(text) = &args.source else {
        return Ok(peers.iter().copied().map(Route::to).collect());
    };
    let sources = addresses::sources(text)?;
    for &source in &sources {
        let other = peers.iter().find(|peer| peer.is_ipv4() != source.is_ipv4());
        if let Some(peer) = other {
            let message = format!("--source {source}: cannot reach {peer}, of the other family");
            return Err(Failure::input(message));
        }
        usable(source)?;
    }
    let routes = sources.iter().flat_map(|&source| {
        let peers = peers.iter().copied();
        peers.map(move |peer| Route {
            source: Some(source),
            ..Route::to(peer)
        })
    });
    Ok(routes.collect())
}

/// Whether the kernel lets us use an address as our own.
fn usable(source: IpAddr) -> Result<(), Failure> {
    match std::net::TcpListener::bind(SocketAddr::new(source, 0)) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::input(format!("--source {source}: {error}"))
            .hint("an own address is one of this machine's: ip address show")),
    }
}
