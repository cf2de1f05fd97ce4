//! Conversion of the command line to a plan: everything is checked here, before anything is sent.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use weir_lab::FlowTarget;
use weir_load::{Io, Plan};
use weir_model::deal::OtherThreads;
use weir_model::flow::{ArrivalsSpec, CONNECTIONS, FlowSpec, LoadSpec, MAIN};
use weir_model::load::Spacing;
use weir_model::load_report::Target;
use weir_model::quantity::{CpuSet, parse_time};
use weir_model::room::most_threads;
use weir_report::number;

use crate::args::{FlowArgs, FlowText, IoChoice, LoadArgs};
use crate::commands::{flag, public};
use crate::failure::Failure;

mod addresses;
mod describe;
mod flow;
mod room;
mod server;
mod url;

use describe::{Described, describe};
use flow::Prepared;
pub(crate) use server::{Server, describe_requests};
pub(super) use url::without_secrets;

/// Longest trial if only a number of requests is given.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Default length of the measured time.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// A load test, ready to run.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    /// Names and targets of the plan's flows, for the report.
    pub(crate) flows: Vec<Named>,
    /// Description of the load, and the servers of each of its flows.
    pub(crate) spec: LoadSpec,
    pub(crate) asked: Vec<FlowTarget>,
    /// Remarks for the report's reader.
    pub(crate) notes: Vec<String>,
}

/// A flow's name and its target.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) target: Target,
}

impl Job {
    /// Makes the job from the arguments. `is_here` is true if this host sends the load; other hosts check themselves
    /// for enough room.
    pub(crate) fn new(args: &LoadArgs, is_here: bool) -> Result<Job, Failure> {
        let ramp_up = flag("--ramp-up", parse_time(&args.ramp_up))?;
        let spin = flag("--spin", args.spin.parse())?;
        let length = duration(args)?;
        let mut described = Vec::new();
        for (name, flow) in typed_flows(args)? {
            described.push(describe(&name, &flow, length).map_err(within(&name))?);
        }
        let load = build_load(&described, length);
        let cpus = if is_here { cpus(args, &load)? } else { vec![None] };
        if is_here {
            // Before a name is resolved or an address is tried.
            room::enough_for_each_thread(&load, cpus.len())?;
        }
        let asked_by = permitted(&mut described, args.yes_this_is_mine)?;
        let load = build_load(&described, length);
        let prepared: Vec<Prepared> = described
            .iter()
            .zip(asked_by)
            .map(|(flow, addresses)| {
                flow::prepare(flow, addresses, is_here).map_err(within(&flow.spec.name))
            })
            .collect::<Result<_, _>>()?;
        let sustain = length.unwrap_or_else(|| default_duration(&prepared));
        for flow in load.flows() {
            whole_burst(flow, ramp_up + sustain).map_err(within(&flow.name))?;
        }
        let (mut plans, mut flows, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        let mut notes = Vec::new();
        for flow in prepared {
            notes.extend(flow.note.filter(|_| length.is_none()));
            plans.push(flow.plan);
            flows.push(flow.named);
            asked.push(flow.asked);
        }
        let plan = Plan {
            others: OtherThreads::default(),
            flows: plans,
            slices: Plan::seconds(ramp_up, sustain),
            ramp_up,
            drain: load.longest_timeout(),
            spin,
            io: match args.io {
                IoChoice::Auto => Io::Auto,
                IoChoice::Uring => Io::Uring,
                IoChoice::Epoll => Io::Epoll,
            },
            cpus,
        };
        Ok(Job { plan, flows, spec: load, asked, notes })
    }
}

/// The addresses of each flow. Refused before anybody is asked, or kept to a little, if a public one is not spoken for.
fn permitted(flows: &mut [Described], is_agreed: bool) -> Result<Vec<Vec<SocketAddr>>, Failure> {
    let mut addresses = Vec::new();
    for flow in &*flows {
        addresses.push(flow.addresses().map_err(within(&flow.spec.name))?);
    }
    let hosts: Vec<Vec<SocketAddr>> =
        addresses.iter().map(|all| public::hosts(all.iter().copied())).collect();
    let flows =
        flows.iter_mut().zip(&hosts).map(|(flow, hosts)| (&mut flow.spec, &**hosts)).collect();
    public::permit(flows, is_agreed)?;
    Ok(addresses)
}

/// Refuses bursts of more requests than the whole load has: all of them would come at its begin, and no burst would be
/// whole.
fn whole_burst(flow: &FlowSpec, duration: Duration) -> Result<(), Failure> {
    let (Spacing::Burst { size }, Some(rate)) = (flow.spacing, flow.rate()) else {
        return Ok(());
    };
    let requests = rate * duration.as_secs_f64();
    if f64::from(size) <= requests {
        Ok(())
    } else {
        Err(Failure::input(format!(
            "--arrivals burst:{size}: the load has {} requests, so not one burst is whole",
            number::count(requests as u64)
        ))
        .hint("smaller bursts, a longer -d, or a higher -R"))
    }
}

/// Returns a function that adds the name of a `--flow` to its failures.
fn within(name: &str) -> impl Fn(Failure) -> Failure {
    move |failure| match name {
        MAIN => failure,
        other => failure.within(&format!("--flow {other}")),
    }
}

/// Combines all flows to one load.
fn build_load(flows: &[Described], duration: Option<Duration>) -> LoadSpec {
    let mut specs = flows.iter().map(|flow| flow.spec.clone());
    let main = specs.next().unwrap_or_else(|| FlowSpec::new(CONNECTIONS, ArrivalsSpec::Closed));
    LoadSpec {
        beside: specs.collect(),
        ..LoadSpec::new(MAIN, main, duration.unwrap_or(DEFAULT_DURATION))
    }
}

/// Returns the flow of the command line itself, and every `--flow`.
fn typed_flows(args: &LoadArgs) -> Result<Vec<(String, FlowArgs)>, Failure> {
    let mut flows = vec![(MAIN.to_owned(), args.flow.clone())];
    for text in &args.flows {
        let bad = |message: String| {
            Failure::input(format!("--flow `{text}`: {message}")).hint(
                "a flow is a name, a colon and options: --flow 'held: -c 10000 --connection hold'",
            )
        };
        let (label, options) = text.split_once(':').ok_or_else(|| bad("has no name".to_owned()))?;
        let name = label.trim().to_owned();
        let is_word =
            name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if name.is_empty() || !is_word {
            return Err(bad(format!("`{name}` is not a valid name: use letters, digits and -_.")));
        }
        if flows.iter().any(|(other, _)| *other == name) {
            return Err(bad(format!("there are two flows called {name}")));
        }
        let words = shlex::split(options)
            .ok_or_else(|| bad("a quotation mark is not closed".to_owned()))?;
        let parsed = FlowText::try_parse_from(words).map_err(|error| {
            let message = error.to_string();
            Failure::described(format!("--flow {name}: {}", message.trim_start_matches("error: ")))
        })?;
        flows.push((name, parsed.flow.inherit(&args.flow)));
    }
    Ok(flows)
}

/// Returns the given duration; `None` if other options determine it.
fn duration(args: &LoadArgs) -> Result<Option<Duration>, Failure> {
    let Some(text) = &args.duration else {
        return Ok(None);
    };
    let duration = flag("-d", parse_time(text))?;
    if duration < Duration::from_millis(1) {
        return Err(Failure::input(format!("-d {text}: at least 1ms")));
    }
    Ok(Some(duration))
}

/// Returns the length that the longest flow needs, or 10 s if no flow has one.
fn default_duration(flows: &[Prepared]) -> Duration {
    let longest = flows.iter().filter_map(|flow| flow.length).max();
    longest.unwrap_or(DEFAULT_DURATION).min(LONGEST)
}

/// Returns the CPU of each thread.
fn cpus(args: &LoadArgs, load: &LoadSpec) -> Result<Vec<Option<u32>>, Failure> {
    let allowed = weir_probe::allowed_cpus()
        .map_err(|error| Failure::failed(format!("cannot read the CPUs allowed: {error}")))?;
    if let Some(text) = &args.cpus {
        let set: CpuSet = flag("--cpus", text.parse())?;
        let missing: Vec<_> =
            set.cpus().iter().filter(|&cpu| !allowed.cpus().contains(cpu)).collect();
        if let Some(cpu) = missing.first() {
            let message = format!("--cpus {text}: CPU {cpu} is not one that weir may use");
            return Err(Failure::input(message).hint(format!("weir may use {allowed}")));
        }
        return Ok(set.cpus().iter().copied().map(Some).collect());
    }
    let all = allowed.cpus().iter().copied();
    let most = most_threads(all.len());
    let threads = match args.threads {
        Some(0) => return Err(Failure::input("-t 0: at least one thread is needed")),
        Some(threads) if threads as usize > most => {
            let message = format!("-t {threads}: more threads than are of use on this host");
            return Err(Failure::input(message).hint(format!("use -t {most} at most")));
        }
        Some(threads) => threads as usize,
        None => room::threads(load, all.len()),
    };
    // More threads than CPUs share them evenly.
    Ok(all.cycle().take(threads).map(Some).collect())
}
