//! Conversion of a URL to a study: one arm that weir did not start, one load, and an objective.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use weir_hosts::{Options, Role};
use weir_model::flow::FlowSpec;
use weir_model::limit::Limit;
use weir_model::quantity::format_duration;
use weir_study::{ServerSearch, UnseenLimit};

use super::tuning::Tuning;
use crate::args::{CapacityArgs, FlowArgs};
use crate::commands::load::Server;
use crate::commands::study::StudyFile;
use crate::commands::{public, server, time};
use crate::failure::Failure;
use crate::name_lookup;

/// Default objective. It is fixed, and no multiple of what the server does at low rates, so that it is known beforehand
/// and the same tomorrow.
pub(super) const OBJECTIVE: &str = "p99 < 100ms, errors < 0.1%";

/// Default of the most connections that the search opens: four doublings of the usual number, and fewer than the 1,024
/// descriptors that a process may have nearly everywhere.
const MOST_CONNECTIONS: u32 = 16 * weir_model::flow::CONNECTIONS;

/// Number of handshakes by which the round trip to the server is measured.
const ROUND_TRIPS: u32 = 5;

/// A search at a URL, ready to run.
pub(super) struct Search {
    pub(super) read: StudyFile,
    /// Lines for the user, printed before the search begins.
    pub(super) said: Vec<String>,
}

/// Makes the study for a URL, checked as far as possible before a load is sent.
pub(super) fn search(args: &CapacityArgs, options: &Options) -> Result<Search, Failure> {
    refuse_idle(args, options)?;
    let is_here = options.places.sends_from_here();
    let tuning = Tuning::read(args)?;
    let limits = Limit::parse_all(args.objective.as_deref().unwrap_or(OBJECTIVE))
        .map_err(|error| Failure::input(format!("--objective: {error}")))?;
    let patience = limits.iter().filter_map(Limit::time).max();
    let flow = FlowArgs {
        timeout: args.flow.timeout.clone().or_else(|| timeout(patience)),
        to: match (&args.flow.to, &args.flow.url, &args.lab.pods.on) {
            (None, Some(url), Some(_)) => address_of(url),
            (to, ..) => to.clone(),
        },
        ..args.flow.clone()
    };
    let server = Server::of(&flow, is_here, |spec, all| {
        weir_study::check_timeout(&limits, spec.timeout).map_err(unseen)?;
        public::check_permission(all, args.lab.yes_this_is_mine)
    })?;
    if is_here {
        can_hold(&limits, server.addresses())?;
    }
    let mut remarks = vec![match &args.objective {
        Some(_) => format!("Objective: {}", objective(&limits)),
        None => format!("Objective: {} (the default; -O says another)", objective(&limits)),
    }];
    let most_connections = args.flow.connections.is_none().then_some(MOST_CONNECTIONS);
    remarks.push(describe_requests(&server, most_connections));
    remarks.push(wrong_answers(&server.spec, args));
    let cpus = server::choose_cpus(args.cpus.as_deref(), server.addresses(), options)?;
    let mut study =
        ServerSearch { flow: server.spec, server: server.named, limits, cpus, most_connections }
            .study()
            .map_err(unseen)?;
    tuning.apply(&mut study);
    remarks.extend(time::fit_search(&study)?);
    let text = server::command_line();
    Ok(Search { read: StudyFile { study, text }, said: remarks })
}

/// Refuses options of a load or of a study that have no effect in a search at a URL.
fn refuse_idle(args: &CapacityArgs, options: &Options) -> Result<(), Failure> {
    let (flow, lab) = (&args.flow, &args.lab);
    let mut started = [Role::Proxy, Role::Origin].into_iter();
    let is_placed = started.any(|role| options.places.host_of(role).is_some());
    let policy = flow.connection.as_deref();
    let is_held = policy.is_some_and(|policy| policy == "hold" || policy.starts_with("hold:"));
    let of_study = "for a URL nothing is started but generators; the option is for studies";
    #[rustfmt::skip]
    let all = [
        (flow.rate.is_some(), "-R", "the search chooses the rates"),
        (flow.trace.is_some(), "--trace", "a trace has its own rates, but the search chooses the rates"),
        (flow.requests.is_some(), "-n", "the search chooses how long it sends"),
        (args.duration.is_some(), "-d", "the search chooses how long it sends; --budget is the time for all of it, --hold that of a long trial"),
        (is_held, "--connection", "held connections send nothing"),
        (is_placed, "--place", "for a URL only generators are started: generator=HOST,HOST"),
        (lab.confirm, "--confirm", "weir did not start the server and cannot change it; the option is for studies"),
        (lab.allow_host_settings, "--allow-host-settings", of_study),
        (lab.node_sysctls, "--node-sysctls", of_study),
        (!lab.parameters.is_empty(), "--parameters", of_study),
    ];
    match all.into_iter().find(|(is_said, ..)| *is_said) {
        Some((_, option, why)) => Err(Failure::input(format!("{option}: {why}"))),
        None => Ok(()),
    }
}

/// Returns the address of a URL's server, which this host need not reach: pods connect to it. `None` if `url` is no URL
/// or its name does not resolve; the code that reads the URL reports that.
fn address_of(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    let port = uri.port_u16().or(match uri.scheme_str()? {
        "https" => Some(443),
        _ => Some(80),
    });
    let addresses = name_lookup::addresses(&format!("{}:{}", uri.host()?, port?)).ok()?;
    addresses.first().map(ToString::to_string)
}

/// Returns the default timeout of a response: twice the longest limit of the objective, if that is more than the usual
/// timeout, else `None`.
fn timeout(patience: Option<Duration>) -> Option<String> {
    let wanted = patience? * 2;
    (wanted > weir_model::flow::TIMEOUT).then(|| format_duration(wanted))
}

/// Converts a limit that no response can be seen to break to a failure that names the option.
fn unseen(UnseenLimit { limit, timeout }: UnseenLimit) -> Failure {
    let (limit, timeout) = (format_duration(limit), format_duration(timeout));
    let message =
        format!("-T {timeout}: requests that take longer fail, so no response can take {limit}");
    Failure::input(message).hint(format!("give a limit below {timeout}, or -T {limit}"))
}

/// Checks that the round trip to the server is shorter than every limit of the objective.
fn can_hold(limits: &[Limit], peers: impl Iterator<Item = SocketAddr>) -> Result<(), Failure> {
    let times = limits.iter().filter_map(|limit| Some((limit, limit.time()?)));
    let Some((limit, time)) = times.min_by_key(|(_, time)| *time) else {
        return Ok(());
    };
    for peer in peers {
        let elapsed = round_trip(peer).map_err(|error| {
            Failure::failed(format!("{peer}: {error}")).hint("is a server listening there?")
        })?;
        if elapsed >= time {
            let shortest = Duration::from_micros(elapsed.as_micros() as u64 + 1);
            let message = format!(
                "{limit} cannot hold at any rate: the round trip to {peer} alone takes {}",
                format_duration(shortest)
            );
            let nearest = format_duration(shortest * 2);
            return Err(Failure::input(message).hint(format!(
                "the nearest limit that may hold: -O '{} < {nearest}'",
                limit.subject()
            )));
        }
    }
    Ok(())
}

/// Returns the shortest of a few round trips, measured by handshakes (RFC 9293 §3.5), in which the server's program has
/// no part.
fn round_trip(peer: SocketAddr) -> std::io::Result<Duration> {
    let mut shortest = Duration::MAX;
    for _ in 0..ROUND_TRIPS {
        let begun = Instant::now();
        TcpStream::connect_timeout(&peer, weir_model::flow::TIMEOUT)?;
        shortest = shortest.min(begun.elapsed());
    }
    Ok(shortest)
}

fn objective(limits: &[Limit]) -> String {
    let texts: Vec<String> = limits.iter().map(Limit::to_string).collect();
    texts.join(", ")
}

/// Returns the line that names the server, its addresses and the number of connections.
fn describe_requests(server: &Server, most_connections: Option<u32>) -> String {
    let peers: Vec<String> = server.addresses().map(|peer| peer.to_string()).collect();
    let connections = server.spec.connections;
    let more = match most_connections {
        Some(most) => format!(", or up to {most} if they are the limit"),
        None => String::new(),
    };
    format!(
        "Asking {} at {}, over {connections} connections{more} (-c)",
        server.named.url,
        peers.join(", ")
    )
}

/// Returns the line that says what counts as an error.
fn wrong_answers(spec: &FlowSpec, args: &CapacityArgs) -> String {
    let timeout = format_duration(spec.timeout);
    let right = if args.flow.expect.is_empty() && args.flow.request_set.is_none() {
        "a status that is not 2xx (-e says another)"
    } else {
        "an answer that is not as expected"
    };
    format!("An error is {right}, none within {timeout} (-T), or a connection that fails")
}
