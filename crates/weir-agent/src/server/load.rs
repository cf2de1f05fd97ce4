//! A load, from the job as it came over the wire to the engine's plan.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_host::Network;
use weir_load::tls::Connector;
use weir_load::{
    Control, Errors, Flow, Io, LoadError, Outcome, Plan, RequestSet, Route, Slice, SliceData,
};
use weir_model::load::{Arrivals, Lifetime};
use weir_model::load_report::TlsReport;
use weir_model::record::ConnectionCounts;
use weir_model::tls::{TlsSpec, Trust};

use super::{told, unwritable};
use crate::message::{
    Failure, FailureKind, FlowEnd, FlowJob, LoadEnd, LoadEvent, LoadJob, SliceJob, TlsJob,
};

/// Where a load is made.
pub(super) struct Place {
    /// The generator's namespace.
    pub(super) network: Option<Network>,
    /// Where files may be put for the engine to read.
    pub(super) folder: PathBuf,
}

/// Whether the engine can make sense of a job.
pub(super) fn check(job: &LoadJob) -> Result<(), Failure> {
    let has_flow = |slice: &SliceJob| job.flows.iter().any(|flow| flow.arm == slice.arm);
    let in_order =
        |slice: &SliceJob| slice.start <= slice.measure_from && slice.measure_from <= slice.end;
    let ends = job.slices.iter().map(|slice| slice.end);
    let most = rustix::thread::CpuSet::MAX_CPU;
    let is_cpu = |cpu: &Option<u32>| cpu.is_none_or(|cpu| (cpu as usize) < most);
    let faults = [
        (job.flows.is_empty(), "without flows"),
        (job.slices.is_empty(), "without slices"),
        (job.threads.is_empty(), "without threads"),
        (
            !job.slices.iter().all(has_flow),
            "with a slice of an arm that has no flow",
        ),
        (
            !job.slices.iter().all(in_order) || !ends.is_sorted(),
            "with slices that are not in the order of time",
        ),
        (
            !job.threads.iter().all(is_cpu),
            "with a thread on a CPU that there cannot be",
        ),
    ];
    match faults.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, what)) => Err(Failure::other(format!("a load {what}"))),
        None => Ok(()),
    }
}

/// Carries a load out; the calling thread is the load's own, and stays in its namespace.
pub(super) fn run(
    job: &LoadJob,
    place: &Place,
    stop: Arc<AtomicBool>,
    tell: &(dyn Fn(&LoadEvent<&SliceData>) + Sync),
) -> Result<LoadEnd, Failure> {
    // The engine's threads come from this one, and are where it is.
    if let Some(network) = &place.network {
        network.join()?;
    }
    // What is missing shows as connections that cannot be opened; the asking side has done the sums.
    let _ = weir_load::descriptors::make_room(job.descriptors);
    let plan = plan(job, place)?;
    let control = Arc::new(Control::new(plan.cpus.len(), stop));
    let begun = Arc::clone(&control);
    let (send, started) = std::sync::mpsc::sync_channel(1);
    let hook = Box::new(move |slice: usize, _now: u64| {
        if slice == 0 {
            // Read by the thread below: the engine's has no time for messages.
            let _ = send.try_send(begun.started_at.load(Ordering::Relaxed));
        }
    });
    let mut of_held = Errors::default();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Ok(at_ns) = started.recv() {
                tell(&LoadEvent::Started { at_ns });
            }
        });
        weir_load::run(&plan, &control, Some(hook), |slice, data| {
            // Connections that are held have no requests: what fails there is no block's failure.
            let (asking, held) = (&data[0], &data[1..]);
            held.iter().for_each(|held| of_held.add(&held.errors));
            tell(&LoadEvent::Slice {
                slice,
                data: asking,
            });
        })
    });
    let mut outcome = outcome.map_err(|error| Failure {
        kind: match error {
            LoadError::NoConnection(_) => FailureKind::NoConnection,
            _ => FailureKind::Other,
        },
        ..told(error)
    })?;
    outcome.errors.add(&of_held);
    Ok(end(job, &outcome))
}

fn plan(job: &LoadJob, place: &Place) -> Result<Plan, Failure> {
    let mut flows = Vec::new();
    for flow in &job.flows {
        flows.extend(flows_of(flow, place)?);
    }
    // The flows that ask come first: their places among those of their arm are 0.
    flows.sort_by_key(Flow::is_held);
    let slices = job.slices.iter().map(|slice| Slice {
        arm: slice.arm,
        start: slice.start,
        measure_from: slice.measure_from,
        end: slice.end,
    });
    Ok(Plan {
        flows,
        slices: slices.collect(),
        ramp_up: Duration::ZERO,
        drain: job.drain,
        spin: Duration::ZERO,
        io: Io::Auto,
        cpus: job.threads.clone(),
    })
}

/// The engine's side of an arm: those that ask, and those that are held beside them.
fn flows_of(flow: &FlowJob, place: &Place) -> Result<Vec<Flow>, Failure> {
    let tls = match &flow.tls {
        Some(tls) => Some(Arc::new(connector(tls, place)?)),
        None => None,
    };
    let requests = RequestSet::plain(flow.request.0.clone(), flow.head);
    let routes: Vec<Route> = match flow.sources.is_empty() {
        true => vec![Route::to(flow.peer)],
        false => flow
            .sources
            .iter()
            .map(|&source| Route {
                source: Some(source.into()),
                ..Route::to(flow.peer)
            })
            .collect(),
    };
    let of = |connections, arrivals: Arrivals| {
        let mut own = Flow::new(flow.peer, requests.clone(), connections, arrivals);
        own.arm = flow.arm;
        own.routes.clone_from(&routes);
        own.tls.clone_from(&tls);
        own.timeout = flow.timeout;
        own.keeps_content = flow.keeps_content;
        own
    };
    let mut asking = of(flow.connections, flow.arrivals.clone());
    asking.lifetime = flow.lifetime;
    let mut flows = vec![asking];
    if flow.held > 0 {
        flows.push(of(flow.held, Arrivals::Held));
    }
    Ok(flows)
}

/// The engine reads what it trusts from a file.
fn connector(tls: &TlsJob, place: &Place) -> Result<Connector, Failure> {
    let path = place.folder.join("trust.pem");
    fs::write(&path, &tls.trust).map_err(unwritable(path.clone()))?;
    let spec = TlsSpec {
        versions: tls.offer.versions.clone(),
        ciphers: tls.offer.ciphers.clone(),
        trust: Trust::Ca(path.display().to_string()),
        resumption: tls.offer.resumption,
        ..TlsSpec::default()
    };
    Connector::new(&spec, &tls.server_name).map_err(told)
}

fn end(job: &LoadJob, outcome: &Outcome) -> LoadEnd {
    // The flows that ask come first, in the order of the arms; then those that are held.
    let asking = job.flows.len().min(outcome.flows.len());
    let (asking, held) = outcome.flows.split_at(asking);
    let mut held = held.iter();
    let arms = job.flows.iter().zip(asking).map(|(flow, totals)| FlowEnd {
        asking: counts(totals, flow.lifetime),
        held: match flow.held {
            0 => ConnectionCounts::default(),
            _ => held
                .next()
                .map_or_else(Default::default, |held| counts(held, Lifetime::Kept)),
        },
        tls: flow.tls.is_some().then(|| TlsReport::from(&totals.tls)),
    });
    LoadEnd {
        arms: arms.collect(),
        errors: outcome.errors.counts(),
        threads: outcome.cpu_ns.len() as u32,
        starved: outcome.starved,
        io: outcome.io.name().to_owned(),
    }
}

/// Connections that are opened for each request are not open when nothing is asked.
fn counts(totals: &weir_load::engine::FlowTotals, lifetime: Lifetime) -> ConnectionCounts {
    let kept = |open: u64| match lifetime {
        Lifetime::Request => 0,
        _ => open,
    };
    ConnectionCounts {
        wanted: totals.connections,
        open_at_start: kept(totals.connected),
        open_at_end: kept(totals.open_at_end),
        opened: totals.connects,
    }
}
