//! Figures of the generator and the lab for a time, beside the samples.

use std::collections::BTreeMap;

use weir_limits::{Figure, Trial};
use weir_model::flow::FlowSpec;
use weir_model::load::{ErrorCount, Lifetime};
use weir_model::quantity::CpuSet;
use weir_model::record::{ProxyRecord, Record, SliceRecord, TrialRecord};
use weir_model::study::{Arm, LoadSpec};
use weir_parameters::Catalog;
use weir_record::Run;

use super::stretches::Span;
use crate::outcomes::{Answers, rate, sum};

/// Returns the settings of an arm by the catalog's ids: those read back of its newest instance, else the requested
/// ones, else the program's defaults if weir wrote its configuration.
pub(super) fn settings(run: &Run, arm: &Arm) -> BTreeMap<String, String> {
    let newest = run.records.iter().rev().find_map(|record| match record {
        Record::Proxy(proxy) if proxy.arm == arm.name => Some(proxy),
        _ => None,
    });
    let read = newest.map(|proxy: &ProxyRecord| proxy.effective.clone());
    let proxy = run.header.study.proxy_of(arm);
    // A configuration of the user's may say anything.
    let mut settings = if proxy.configuration.is_some() || proxy.controller.is_some() {
        arm.settings.clone()
    } else {
        let catalog = Catalog::builtin();
        let catalog = match newest {
            Some(proxy_record) => catalog.for_proxy(proxy.kind, &proxy_record.program),
            None => catalog,
        };
        catalog.complete(proxy.kind, &arm.settings)
    };
    settings.extend(read.unwrap_or_default());
    settings
}

/// Collects the figures for a time.
pub(super) fn of(run: &Run, span: &Span<'_>, settings: &BTreeMap<String, String>) -> Trial {
    let study = &run.header.study;
    let answers = Answers::of(span.iter(), study);
    Trial {
        figures: figures(run, span, settings),
        response_times: together(run, span),
        errors: Some(errors(&span.trials, answers.wrong)),
        requests: answers.complete + answers.failed + answers.never,
        settings: settings.clone(),
    }
}

pub(super) fn figures(
    run: &Run,
    span: &Span<'_>,
    settings: &BTreeMap<String, String>,
) -> BTreeMap<Figure, f64> {
    let study = &run.header.study;
    let measured_s = sum(span.iter(), |slice| slice.measured_ns) / 1e9;
    let received = sum(span.iter(), |slice| slice.received_bytes);
    let whole_s = whole_ns(run, span) / 1e9;
    let load = study.loads.iter().find(|load| load.name == span.load);
    let opened = load.and_then(|load| opened_per_request(load.lifetime));
    let first = span.trials.first();
    let arm = first.and_then(|trial| study.arms.iter().find(|arm| arm.name == trial.arm));
    let kind = arm.map(|arm| study.proxy_of(arm).kind);
    let workers = kind.and_then(|kind| Catalog::builtin().workers(kind, settings));
    let times = span.iter().map(|trial| &trial.service_time).filter(|times| !times.is_empty());
    let count: u64 = times.clone().map(|times| times.count).sum();
    let mean = times.map(|times| times.mean * times.count as f64).sum::<f64>() / count as f64;
    let lags = span.iter().map(|trial| &trial.dispatch_lag).filter(|lag| !lag.is_empty());
    let lag = lags.map(|lag| lag.p99).max();
    let figures = [
        (Figure::RateIntended, span.rate),
        (Figure::RateOffered, Some(sum(span.iter(), |slice| slice.offered) / measured_s)),
        (Figure::RateCompleted, Some(rate(span.iter(), study))),
        (Figure::Saturated, Some(flag(span.saturated))),
        (Figure::Closed, Some(flag(span.rate.is_none()))),
        (Figure::ServiceTimeS, Some(mean / 1e9)),
        (Figure::DispatchLagS, lag.filter(|_| span.rate.is_some()).map(|ns| ns as f64 / 1e9)),
        (Figure::BytesPerS, Some(received / whole_s)),
        (Figure::NetworkBytesPerS, link(run)),
        (Figure::OpenedPerRequest, opened),
        (
            Figure::OpenedAgainPerRequest,
            opened_again(
                load.map(|load| load.lifetime),
                sum(span.iter(), |slice| slice.reconnects),
                sum(span.iter(), |slice| slice.completed_whole),
            ),
        ),
        (Figure::FullHandshakesPerS, handshakes(span)),
        (Figure::AsksCompressed, load.map(asks_compressed)),
        (Figure::Workers, workers.map(|workers| workers as f64)),
        (Figure::ProxyCpuCount, arm.and_then(|arm| cpu_count(run, arm))),
        (Figure::OthersCpu, others(run, span)),
    ];
    figures
        .into_iter()
        .filter_map(|(figure, value)| Some((figure, value.filter(|value| value.is_finite())?)))
        .collect()
}

/// Collects the figures of an arm that takes turns with others: rates over whole slices, like CPU times and bytes, and
/// the lab's readings of the arm itself when the load came and went.
pub(super) fn figures_of_turns(
    run: &Run,
    span: &Span<'_>,
    settings: &BTreeMap<String, String>,
) -> BTreeMap<Figure, f64> {
    let whole_s = whole_ns(run, span) / 1e9;
    let good = Answers::of(span.iter(), &run.header.study).good_share();
    let completed = good * sum(span.iter(), |slice| slice.completed_whole);
    let cpu_ns = own_cpu_ns(run, span);
    let of_arm = [
        (Figure::RateCompleted, Some(completed / whole_s)),
        (Figure::ProxyCpus, cpu_ns.map(|ns| ns / 1e9 / whole_s)),
        (Figure::ProxySockets, sockets(span)),
    ]
    .into_iter()
    .filter_map(|(figure, value)| Some((figure, value?)));
    let mut all = figures(run, span, settings);
    all.extend(of_arm.filter(|(_, value)| value.is_finite()));
    all
}

/// Returns 1 for true, 0 for false.
pub(super) fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

/// Returns 1 if requests of a load ask for compressed responses, else 0.
fn asks_compressed(load: &LoadSpec) -> f64 {
    flag(load.flows().any(FlowSpec::asks_compressed))
}

/// Returns the number of CPUs that an arm's proxy may use; `None` if weir did not start it.
fn cpu_count(run: &Run, arm: &Arm) -> Option<f64> {
    let is_started = run.header.study.proxy_of(arm).is_started();
    is_started.then(|| arm.cpus(&run.header.cpus).cpus().len() as f64)
}

/// Returns the connections per request that a load opens by its own policy; `None` if that depends on the rate.
pub(super) fn opened_per_request(lifetime: Lifetime) -> Option<f64> {
    match lifetime {
        Lifetime::Kept => Some(0.0),
        Lifetime::Request => Some(1.0),
        Lifetime::Requests(requests) => Some(1.0 / f64::from(requests.max(1))),
        Lifetime::Time(_) => None,
    }
}

/// Returns the connections per request that the generator opened beside the initial ones. This is its own count: if it
/// shares a network namespace with others, the kernel's counters include theirs.
pub(super) fn opened_again(lifetime: Option<Lifetime>, again: f64, requests: f64) -> Option<f64> {
    match lifetime {
        Some(Lifetime::Request) => Some(1.0),
        _ => Some(again / requests).filter(|opened| opened.is_finite()),
    }
}

/// Returns the bytes per second that the link from the proxy to the generator carried before the trial. `None` if there
/// are several generators, because the shared part of their links is unknown, and within one host: CPU time is the
/// limit there, and a moment before the trial says nothing about it.
fn link(run: &Run) -> Option<f64> {
    let places = &run.header.places;
    let surroundings = run.header.surroundings.as_ref();
    let is_one_link = places.generators() == 1 && places.generator != places.proxy;
    surroundings.filter(|_| is_one_link)?.proxy_to_generator_bytes_per_s()
}

/// Returns the total length of the slices, nanoseconds, unmeasured parts included.
fn whole_ns(run: &Run, span: &Span<'_>) -> f64 {
    let slices =
        span.trials.iter().filter_map(|trial| crate::evidence::evidence(trial, &run.header).slices);
    slices.map(|slices| slices.whole_ns).sum()
}

/// Returns the CPU time of the proxy's own processes while the arm had the load, nanoseconds; `None` if weir does not
/// see them.
fn own_cpu_ns(run: &Run, span: &Span<'_>) -> Option<f64> {
    let study = &run.header.study;
    let arm = &span.trials.first()?.arm;
    let arm = study.arms.iter().find(|known| known.name == *arm)?;
    let is_seen = study.proxy_of(arm).is_started();
    is_seen.then(|| sum(span.iter(), |slice| slice.proxy_cpu_ns.saturating_sub(slice.rest_cpu_ns)))
}

/// Returns the mean number of sockets in the arm's network namespace when the load moved on.
fn sockets(span: &Span<'_>) -> Option<f64> {
    let counts: Vec<u64> = span
        .trials
        .iter()
        .flat_map(|trial| &trial.slices)
        .filter_map(|slice| Some(slice.sockets_after.as_ref()?.in_use))
        .collect();
    Some(counts.iter().sum::<u64>() as f64 / counts.len() as f64)
}

/// Accessor of a recorded time of a slice, nanoseconds.
type Used = fn(&SliceRecord) -> u64;

/// Returns the share of the time of the proxy's CPUs that was neither idle nor stolen, nor used by interrupts, the
/// proxy, or a role of the trial that shares these CPUs. `None` if weir does not see the proxy's own time.
fn others(run: &Run, span: &Span<'_>) -> Option<f64> {
    let (study, cpus) = (&run.header.study, &run.header.cpus);
    let first = span.trials.first()?;
    let arm = study.arms.iter().find(|arm| arm.name == first.arm)?;
    let proxy = arm.cpus(cpus).cpus();
    if !study.proxy_of(arm).is_started() {
        return None;
    }
    let places = &run.header.places;
    let mut fields: Vec<Used> = vec![
        |slice| slice.proxy_cpu_ns,
        |slice| slice.proxy_irq_ns,
        |slice| slice.proxy_cpus_idle_ns,
        |slice| slice.proxy_steal_ns,
    ];
    // What each of several generators used is not told apart.
    let is_alone = places.generators() == 1;
    let peers: [(&CpuSet, bool, bool, Used); 2] = [
        (&cpus.generator, places.has_generator(&places.proxy), is_alone, |slice| {
            slice.generator_cpu_ns
        }),
        (&cpus.origin, places.origin == places.proxy, true, |slice| slice.origin_cpu_ns),
    ];
    for (peer, is_here, is_alone, used) in peers {
        let shared = peer.cpus().iter().filter(|cpu| proxy.contains(cpu)).count();
        match shared {
            0 => {}
            _ if !is_here => {}
            all if all == peer.cpus().len() && is_alone => fields.push(used),
            // How much of it was on which CPU is not known.
            _ => return None,
        }
    }
    let own_ns: f64 = fields.into_iter().map(|field| sum(span.iter(), field)).sum();
    let all_ns = whole_ns(run, span) * proxy.len() as f64;
    Some(((all_ns - own_ns) / all_ns).max(0.0))
}

/// Returns the full handshakes (without a resumed session) per second of the continuous trial, those of connections
/// opened before it included.
fn handshakes(span: &Span<'_>) -> Option<f64> {
    let arm = &span.trials.first()?.arm;
    let connections = span.part.arms.iter().find(|connections| connections.arm == *arm)?;
    let tls = connections.tls.as_ref()?;
    let answered = connections.answered as f64;
    // By request, because the arm may have had the load for a part of the trial alone.
    let full = tls.handshakes.saturating_sub(tls.resumed) as f64;
    span.completed.map(|rate| full / answered * rate)
}

/// Counts failed requests by the name of the error in records.
fn errors(trials: &[&TrialRecord], wrong: u64) -> BTreeMap<String, u64> {
    let mut errors = by_kind(trials.iter().flat_map(|trial| &trial.errors));
    errors.insert("unexpected".to_owned(), wrong);
    errors
}

/// Counts failed requests by kind. `no_port` counts those of `connect` once more for which no local port was free.
pub(super) fn by_kind<'e>(
    errors: impl IntoIterator<Item = &'e ErrorCount>,
) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for error in errors {
        let no_port = error.lacks_port().then_some("no_port");
        for kind in [Some(error.kind.name()), no_port].into_iter().flatten() {
            *counts.entry(kind.to_owned()).or_insert(0) += error.count;
        }
    }
    counts
}

/// Merges the response times of all trials: (nanoseconds, count).
fn together(run: &Run, span: &Span<'_>) -> Vec<(u64, u64)> {
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for trial in &span.trials {
        for (ns, count) in run.histogram(&trial.response_time) {
            *all.entry(*ns).or_insert(0) += count;
        }
    }
    all.into_iter().collect()
}
