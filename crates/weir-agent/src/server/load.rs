//! A load, from the job as it came over the wire to the engine's plan.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_host::Network;
use weir_load::engine::{FlowTotals, TlsCounts};
use weir_load::template::Files;
use weir_load::tls::Connector;
use weir_load::{
    Appointment, Control, Errors, Flow, Io, LoadError, Outcome, Plan, RequestSet, Route, SliceData,
    Trace, Watch,
};
use weir_model::flow::words::DEEPEST;
use weir_model::load::Lifetime;
use weir_model::load_report::TlsReport;
use weir_model::record::ConnectionCounts;
use weir_model::room::most_threads;
use weir_model::tls::{TlsSpec, Trust};

use super::failure::unwritable;
use crate::message::{
    Bytes, Failure, FailureKind, FlowEnd, FlowJob, LoadEnd, LoadEvent, LoadJob, SliceJob, WholeEnd,
};

/// Environment of a load.
pub(super) struct LoadEnvironment {
    /// Network namespace of the generator.
    pub(super) network: Option<Network>,
    /// Folder for files that the engine reads.
    pub(super) folder: PathBuf,
}

/// Checks that the engine can carry out a job.
pub(super) fn check(job: &LoadJob) -> Result<(), Failure> {
    let in_order =
        |slice: &SliceJob| slice.start <= slice.measure_from && slice.measure_from <= slice.end;
    let ends = job.slices.iter().map(|slice| slice.end);
    let most = rustix::thread::CpuSet::MAX_CPU;
    let cpus = weir_probe::allowed_cpus().map_or(1, |allowed| allowed.cpus().len());
    // Those of others too: what fell to a thread without a connection would never be sent.
    let all = job.deal().all();
    #[rustfmt::skip]
    let faults = [
        (job.flows.is_empty(), "without flows"),
        (job.slices.is_empty(), "without slices"),
        (job.threads.is_empty(), "without threads"),
        (job.threads.len() > most_threads(cpus), "with more threads than this host can use"),
        (job.flows.iter().any(|flow| flow.every_ns == Some(0)),
         "with arrivals that begin anew all the time"),
        (!job.slices.iter().all(|slice| job.flows.iter().any(|flow| flow.arm == slice.arm)),
         "with a slice of an arm that has no flow"),
        (!job.slices.iter().all(in_order) || !ends.is_sorted(),
         "with slices that are not in the order of time"),
        (!job.flows.iter().all(|flow| flow.spec.pipeline <= DEEPEST),
         "with more requests in flight on a connection than it can have"),
        (!job.threads.iter().flatten().all(|cpu| (*cpu as usize) < most),
         "with a thread on a CPU that there cannot be"),
        (!job.flows.iter().all(|flow| flow.spec.is_held() || u64::from(flow.spec.connections) >= all), "with more threads than connections"),
        (job.is_whole && job.slices.len() > 1, "with slices of its own, of which a load test has none"),
    ];
    match faults.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, what)) => Err(Failure::other(format!("a load {what}"))),
        None => Ok(()),
    }
}

/// Carries out a load on the calling thread, which stays in the load's namespace afterwards. `appointment` is used to
/// wait for other generators.
pub(super) fn run(
    job: &LoadJob,
    place: &LoadEnvironment,
    (stop, appointment): (Arc<AtomicBool>, Option<Appointment>),
    tell: &(dyn Fn(&LoadEvent<&SliceData>) + Sync),
) -> Result<LoadEnd, Failure> {
    // The engine's threads come from this one, and are where it is.
    if let Some(network) = &place.network {
        network.join()?;
    }
    // What is missing shows as connections that cannot be opened; the asking side has done the sums.
    let _ = weir_load::descriptors::make_room(job.descriptors);
    let plan = build_plan(job, place)?;
    let mut watch = job.is_whole.then(|| Watch::begin(&plan));
    let control = Arc::new(Control { appointment, ..Control::new(plan.cpus.len(), stop) });
    let begun = Arc::clone(&control);
    let (send, started) = std::sync::mpsc::sync_channel(1);
    let hook = Box::new(move |slice: usize, _now: u64| {
        if slice == 0 {
            // Read by the thread below: the engine's has no time for messages.
            let _ = send.try_send(begun.started_at.load(Ordering::Relaxed));
        }
    });
    let mut held_errors = Errors::default();
    let mut outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Ok(at_ns) = started.recv() {
                tell(&LoadEvent::Started { at_ns });
            }
        });
        weir_load::run(&plan, &control, Some(hook), |slice, data| {
            if job.is_whole {
                data.iter().enumerate().for_each(|(flow, data)| {
                    tell(&LoadEvent::Slice { slice, flow, data });
                });
            } else {
                let data = &asking(job, slice, data, &mut held_errors);
                tell(&LoadEvent::Slice { slice, flow: 0, data });
            }
        })
    })
    .map_err(|error| Failure {
        kind: match error {
            LoadError::NoConnection(_) => FailureKind::NoConnection,
            _ => FailureKind::Other,
        },
        ..Failure::other(error)
    })?;
    outcome.errors.add(&held_errors);
    let whole_end = watch.as_mut().map(|watch| WholeEnd {
        ended_at: outcome.ended_at,
        flows: outcome.flows.clone(),
        cpu_ns: outcome.cpu_ns.clone(),
        generator: watch.end(&outcome),
    });
    Ok(LoadEnd { whole: whole_end.map(Box::new), ..end(job, &outcome) })
}

fn build_plan(job: &LoadJob, place: &LoadEnvironment) -> Result<Plan, Failure> {
    let traces: Vec<Trace> = job.traces.iter().map(Trace::from).collect();
    let flows = job.flows.iter().map(|flow| {
        let trace = flow.trace.and_then(|place| traces.get(place));
        engine_flow(job, flow, trace, place)
    });
    Ok(Plan {
        flows: flows.collect::<Result<_, _>>()?,
        slices: job.engine_slices(),
        ramp_up: job.ramp_up,
        drain: job.drain,
        spin: job.spin,
        io: Io::Auto,
        cpus: job.threads.clone(),
        others: job.others,
    })
}

/// Converts a flow to the form that the engine takes.
fn engine_flow(
    of: &LoadJob,
    job: &FlowJob,
    trace: Option<&Trace>,
    place: &LoadEnvironment,
) -> Result<Flow, Failure> {
    let peers = std::iter::once(job.peer).chain(job.also.iter().copied());
    let routes = peers
        .flat_map(|peer| {
            // An arm may be reached through a sockmap.
            let to = Route { reuse: of.is_whole, ..Route::to(peer) };
            let from = job.sources.iter().map(move |&source| Route { source: Some(source), ..to });
            let any = job.sources.is_empty().then_some(to);
            from.chain(any)
        })
        .collect();
    let within = job.every_ns.and_then(|ns| Some(trace?.within(ns)));
    let trace = within.as_ref().or(trace);
    let arrivals = match job.every_ns {
        Some(every) => {
            let end = of.slices.last().map_or(0, |slice| slice.end);
            job.arrivals.clone().repeated(every, end)
        }
        None => job.arrivals.clone(),
    };
    let requests = build_requests(job, trace, &of.files)?;
    let mut flow = Flow::described(&job.spec, requests, routes, arrivals, trace);
    flow.arm = job.arm;
    flow.keeps_content = job.keeps_content;
    flow.tls = match &job.spec.tls {
        Some(tls) => Some(Arc::new(connector(&of.files, job, tls, place)?)),
        None => None,
    };
    Ok(flow)
}

/// Builds the requests of a flow.
pub(super) fn build_requests(
    job: &FlowJob,
    trace: Option<&Trace>,
    texts: &BTreeMap<String, Bytes>,
) -> Result<RequestSet, Failure> {
    let mut files = Files::default();
    for (name, text) in texts {
        // Some of them fill no slots; those need not have lines.
        let _ = files.provide(Path::new(name), &text.0);
    }
    RequestSet::of_flow(&job.spec, trace, &job.host, &mut files).map_err(Failure::other)
}

/// Creates the TLS connector of a flow. The engine reads certificates from files, so certificates that came with the
/// job are written to the load's folder.
pub(super) fn connector(
    files: &BTreeMap<String, Bytes>,
    job: &FlowJob,
    tls: &TlsSpec,
    place: &LoadEnvironment,
) -> Result<Connector, Failure> {
    let mut spec = tls.clone();
    if !job.trust.is_empty() {
        spec.trust = Trust::Ca(write_file(place, ".trust.pem", job.trust.as_bytes())?);
    } else if let Trust::Ca(path) = &mut spec.trust
        && let Some(text) = files.get(path)
    {
        *path = write_file(place, ".trust.pem", &text.0)?;
    }
    if let Some(client) = &mut spec.client {
        for (path, name) in
            [(&mut client.certificate, ".client.pem"), (&mut client.key, ".key.pem")]
        {
            if let Some(text) = files.get(path) {
                *path = write_file(place, name, &text.0)?;
            }
        }
    }
    Ok(Connector::new(&spec, &job.host)?)
}

/// Writes a file beside those of the arms, with a dot before its name, as no arm is called; returns its path.
fn write_file(place: &LoadEnvironment, name: &str, text: &[u8]) -> Result<String, Failure> {
    let path = place.folder.join(name);
    weir_files::write(&path, text).map_err(unwritable(path.clone()))?;
    Ok(path.display().to_string())
}

/// Sums up the connections to each arm.
fn end(job: &LoadJob, outcome: &Outcome) -> LoadEnd {
    let mut arms: Vec<(usize, FlowEnd, TlsCounts)> = Vec::new();
    for (flow, totals) in job.flows.iter().zip(&outcome.flows) {
        let index = arms.iter().position(|(arm, ..)| *arm == flow.arm).unwrap_or_else(|| {
            arms.push((flow.arm, FlowEnd::default(), TlsCounts::default()));
            arms.len() - 1
        });
        let (_, end, tls) = &mut arms[index];
        let counts = if flow.spec.is_held() { &mut end.held } else { &mut end.asking };
        add(counts, totals, flow.spec.lifetime);
        if flow.spec.tls.is_some() && !flow.spec.is_held() {
            tls.add(&totals.tls);
            end.tls = Some(TlsReport::from(&*tls));
        }
    }
    LoadEnd {
        arms: arms.into_iter().map(|(_, end, _)| end).collect(),
        errors: outcome.errors.counts(),
        threads: outcome.cpu_ns.len() as u32,
        starved: outcome.starved,
        io: outcome.io.name().to_owned(),
        whole: None,
    }
}

/// Adds the totals of a flow. Connections that are opened for each request are not open between requests, so they count
/// as 0 there.
fn add(counts: &mut ConnectionCounts, totals: &FlowTotals, lifetime: Lifetime) {
    counts.wanted += totals.connections;
    if lifetime != Lifetime::Request {
        counts.open_at_start += totals.connected;
        counts.open_at_end += totals.open_at_end;
    }
    counts.opened += totals.connects;
    counts.lost_at_rest += totals.lost_at_rest;
}

/// Sums the counts of those flows of the slice's arm that send requests. Held connections have no requests: their
/// errors belong to no block, and go to `held_errors`.
fn asking<'d>(
    job: &LoadJob,
    slice: usize,
    data: &'d [SliceData],
    held_errors: &mut Errors,
) -> Cow<'d, SliceData> {
    let arm = job.slices[slice].arm;
    let flows = job.flows.iter().filter(|flow| flow.arm == arm);
    let mut sum: Option<Cow<'d, SliceData>> = None;
    for (flow, data) in flows.zip(data) {
        match &mut sum {
            _ if flow.spec.is_held() => held_errors.add(&data.errors),
            Some(sum) => sum.to_mut().add(data),
            None => sum = Some(Cow::Borrowed(data)),
        }
    }
    sum.unwrap_or_default()
}
