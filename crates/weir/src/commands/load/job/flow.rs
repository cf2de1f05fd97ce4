//! Conversion of one flow's description to the engine's plan.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use weir_lab::FlowTarget;
use weir_load::request_set::SetError;
use weir_load::template::Files;
use weir_load::tls::Connector;
use weir_load::{Flow, RequestSet, Route, Trace, TraceError};
use weir_model::flow::{ArrivalsSpec, FlowSpec, SourceSpec, TraceSpec};
use weir_model::load_report::Target;
use weir_model::quantity::format_duration;

use super::describe::{self, Described};
use super::{LONGEST, Named, room};
use crate::engine;
use crate::failure::Failure;
use crate::{other_tools, terminal};

/// A flow, ready to run.
pub(super) struct Prepared {
    pub(super) plan: Flow,
    pub(super) named: Named,
    pub(super) asked: FlowTarget,
    /// Length of the flow if the load has no `-d`; `None` if the flow sets none.
    pub(super) length: Option<Duration>,
    /// Remark on the time that a trace takes.
    pub(super) note: Option<String>,
}

/// A pause that is longer, and longer than all the rest of a trace, is most likely a time that is wrong.
const PAUSE_TOLD: Duration = Duration::from_secs(600);

/// Reads the files that a flow names, and selects its server addresses from `addresses`. If requests come from this
/// host, checks that a server listens there.
pub(super) fn prepare(
    flow: &Described,
    addresses: Vec<SocketAddr>,
    is_here: bool,
) -> Result<Prepared, Failure> {
    let (spec, url) = (&flow.spec, &flow.url);
    let trace = read_trace(spec, is_here)?;
    let fault = trace.as_ref().and_then(|trace| engine::overridden(spec, trace));
    if let Some(fault) = fault {
        return Err(describe::refused(fault, url));
    }
    let mut files = Files::default();
    let requests =
        RequestSet::of_flow(spec, trace.as_ref(), &url.authority, &mut files).map_err(refused)?;
    let tls = spec.tls.as_ref().map(|tls| Connector::new(tls, &url.host)).transpose().map_err(
        |error| {
            let hint = error.hint();
            Failure::input(error).maybe_hint(hint)
        },
    )?;
    let peers = match &flow.to {
        Some(_) => addresses,
        None => vec![url.one_of(addresses, is_here.then_some(spec.timeout))?],
    };
    let (arrivals, note) = match (&trace, &spec.arrivals) {
        (Some(trace), ArrivalsSpec::Trace(named)) => {
            (trace.arrivals(&named.file), long_pause(&named.file, trace))
        }
        _ => (spec.resolved(None), None),
    };
    let routes = match (&spec.sources, is_here) {
        (SourceSpec::These(_), false) => {
            let message =
                "--source: generators on other hosts send from their hosts' own addresses";
            return Err(Failure::input(message));
        }
        (sources, _) => routes(&peers, sources)?,
    };
    let mut plan = Flow::described(spec, requests, routes, arrivals, trace.as_ref());
    plan.tls = tls.map(Arc::new);
    if is_here {
        room::enough_ports(&plan)?;
    }
    let request = spec.request();
    let target = Target {
        url: url.text.clone(),
        address: peers[0].to_string(),
        method: request.map_or_else(String::new, |request| request.method.clone()),
        content_bytes: request.map_or(0, |request| request.content.len() as u64),
    };
    // Until just after the last arrival of a trace.
    let length =
        trace.map(|trace| Duration::from_nanos(trace.length_ns()) + Duration::from_millis(1));
    Ok(Prepared {
        asked: FlowTarget { peers, authority: url.authority.clone(), name: url.host.clone() },
        length: spec.limit.map(|_| LONGEST).or(length).or(flow.steps),
        plan,
        note,
        named: Named { name: spec.name.clone(), target },
    })
}

/// Reads the trace of a flow, which may come from standard input, and prints what is left out of it.
fn read_trace(spec: &FlowSpec, is_here: bool) -> Result<Option<Trace>, Failure> {
    let ArrivalsSpec::Trace(TraceSpec { file, speed }) = &spec.arrivals else {
        return Ok(None);
    };
    let trace = if file == engine::STDIN && is_here {
        Trace::from_reader(io::stdin().lock(), "standard input", *speed).map(Some)
    } else {
        engine::trace(spec)
    }
    .map_err(|error| {
        if matches!(error, TraceError::Line { .. })
            && let Some(failure) = other_tools::recognised(file)
        {
            return failure;
        }
        Failure::input(format!("--trace {error}"))
    })?;
    for text in trace.iter().flat_map(|trace| engine::left_out(file, trace)) {
        terminal::tell(&format!("weir: {text}\n"));
    }
    Ok(trace)
}

/// Describes how long a trace takes, if it is more than a load lasts that nobody gives a duration, or most of it is a
/// pause.
fn long_pause(file: &str, trace: &Trace) -> Option<String> {
    let pause = trace.longest_pause?;
    let (length, longest) =
        (Duration::from_nanos(trace.length_ns()), Duration::from_nanos(pause.ns));
    let is_cut = length >= LONGEST;
    if !is_cut && (longest < PAUSE_TOLD || longest < length / 2) {
        return None;
    }
    let cut = if is_cut {
        format!(
            "; without -d a load ends after {}, and what is due later is not sent",
            format_duration(LONGEST)
        )
    } else {
        String::new()
    };
    let [length, longest] = [length, longest].map(format_duration);
    let line = pause.until_line;
    Some(format!(
        "`{file}`: the trace takes {length}, of which {longest} are a pause that ends at {file}:{line}{cut}"
    ))
}

/// Converts an error in the requests to a failure. Requests need no number here, as there is only one.
fn refused(error: SetError) -> Failure {
    let hint = error.hint();
    let failure = match error {
        SetError::Template { error, .. } => Failure::input(error),
        SetError::Expect { error, .. } => Failure::input(format!("--expect: {error}")),
        other => Failure::input(other),
    };
    failure.maybe_hint(hint)
}

/// Returns a route from every own address to every server address.
fn routes(peers: &[SocketAddr], sources: &SourceSpec) -> Result<Vec<Route>, Failure> {
    let SourceSpec::These(sources) = sources else {
        return Ok(peers.iter().copied().map(Route::to).collect());
    };
    for &source in sources {
        let mismatch = peers.iter().find(|peer| peer.is_ipv4() != source.is_ipv4());
        if let Some(peer) = mismatch {
            let message = format!("--source {source}: cannot reach {peer}, of the other family");
            return Err(Failure::input(message));
        }
        check_source(source)?;
    }
    let routes = sources.iter().flat_map(|&source| {
        peers.iter().copied().map(move |peer| Route { source: Some(source), ..Route::to(peer) })
    });
    Ok(routes.collect())
}

/// Checks that the kernel lets weir use an address as its own.
fn check_source(source: IpAddr) -> Result<(), Failure> {
    match std::net::TcpListener::bind(SocketAddr::new(source, 0)) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::input(format!("--source {source}: {error}"))
            .hint("an own address is one of this machine's: ip address show")),
    }
}
