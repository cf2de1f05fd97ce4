//! Repeated readings of all counters of a host during a trial.
//!
//! The kernel's counters are read by the request's own thread. A thread for each arm, in the arm's network namespace,
//! queries the proxy: a busy proxy answers late, and nothing else waits for it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::time::{ClockId, clock_gettime};
use weir_host::Network;
use weir_model::sample::{MissingCounter, SampleRow};
use weir_probe::sample::{GENERATOR, Namespace, ORIGIN, PROXY, SampledRole, Sampler, Tasks};
use weir_probe::waits::Listens;

use super::arm::Arm;
use super::counting::CountingProxy;
use super::waits::WaitRows;
use super::watch::sleep_until;
use crate::message::{Failure, SampleEnd, SampleJob};

/// Accepted range of the time from one reading to the next.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);

/// Prefixes of the names of the load engine's threads and of the origin server's.
const GENERATOR_THREADS: &str = "weir-load";
const ORIGIN_THREADS: &str = "origin-";

/// Name of the table of proxies' own counters.
const TABLE: &str = "proxy";

/// Longest time that a proxy that weir did not start may take for all answers of a reading; and for those of the last
/// one, when it has no load any more and its figures are waited for.
const ANSWERS: Duration = Duration::from_secs(3);
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Name of the table of requests, and the time that proxies may take to write the last lines after the end of a load
/// (`WRITTEN`).
const REQUESTS: &str = "requests";
const WRITTEN: Duration = Duration::from_millis(250);

/// Readers of everything that is sampled on this host.
pub(super) struct Sampling {
    pub(super) sampler: Sampler,
    pub(super) proxies: Vec<CountingProxy>,
    /// Listeners of each proxy, if requests are sampled.
    pub(super) listens: Vec<(String, Listens)>,
    /// Levels of a proxy that weir did not start, and CPUs that its processes may use.
    pub(super) settings: BTreeMap<String, String>,
    pub(super) cpus: Vec<u64>,
}

/// Returns the generator's place for samples. `network` is `None` if the generator has no namespace of its own.
pub(super) fn generator(network: Option<&Network>) -> Result<SampledRole, Failure> {
    of_own_threads(GENERATOR, GENERATOR_THREADS, network)
}

/// Returns the origin server's place for samples. `network` is `None` if the origin server has no namespace of its own.
pub(super) fn origin(network: Option<&Network>) -> Result<SampledRole, Failure> {
    of_own_threads(ORIGIN, ORIGIN_THREADS, network)
}

fn of_own_threads(
    role: &'static str,
    prefix: &'static str,
    network: Option<&Network>,
) -> Result<SampledRole, Failure> {
    let namespace = match network {
        Some(network) => network.within(Namespace::of_this_thread)?,
        None => Namespace::of_this_thread(),
    };
    Ok(SampledRole {
        role,
        arm: String::new(),
        namespace: Some(namespace),
        tasks: Tasks::Threads(prefix),
    })
}

/// Returns an arm's place for samples: the processes of its proxy.
pub(super) fn arm(arm: &Arm) -> Result<SampledRole, Failure> {
    if let Some(external) = arm.external() {
        return external.place(arm.name());
    }
    Ok(SampledRole {
        role: PROXY,
        arm: arm.name().to_owned(),
        namespace: Some(arm.keeper().run(Namespace::of_this_thread)?),
        tasks: Tasks::Processes(arm.processes()),
    })
}

/// Checks that a job can be carried out.
pub(super) fn check(job: &SampleJob) -> Result<(), Failure> {
    if INTERVALS.contains(&job.interval) {
        Ok(())
    } else {
        Err(Failure::other(format!(
            "samples every {:?}, which is outside of {INTERVALS:?}",
            job.interval
        )))
    }
}

/// Nice value of the sampling threads, so that measured processes come first.
const POLITE: i32 = 10;

/// Reads until stopped, and once more then. The calling thread stays at a low priority, so it should not be used for
/// anything else afterwards.
pub(super) fn run(
    job: &SampleJob,
    sampling: Sampling,
    stop: &AtomicBool,
    tell: &(dyn Fn(&[SampleRow]) + Sync),
) -> Result<SampleEnd, Failure> {
    let Sampling { mut sampler, proxies, listens, settings, cpus } = sampling;
    let (mut waits, missing) = WaitRows::begin(listens, job.generator);
    let end = Mutex::new(SampleEnd { missing, settings, cpus, ..SampleEnd::default() });
    // A reading takes milliseconds at once, and the generator or the origin server may have the same CPU. Threads that this one
    // starts inherit it.
    let _ = setpriority_process(None, POLITE);
    thread::scope(|scope| {
        for proxy in proxies {
            let end = &end;
            scope.spawn(move || ask_again(job, proxy, stop, tell, end));
        }
        again(job.interval, stop, || {
            let mut rows = sampler.read(crate::monotonic_ns());
            rows.extend(waits.read(crate::monotonic_ns()));
            tell(&rows);
        });
        add(&end, sampler.missing());
    });
    Ok(end.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Queries a proxy repeatedly until stopped.
fn ask_again(
    job: &SampleJob,
    mut proxy: CountingProxy,
    stop: &AtomicBool,
    tell: &(dyn Fn(&[SampleRow]) + Sync),
    end: &Mutex<SampleEnd>,
) {
    // By table and column.
    let mut missing: BTreeMap<(&str, String), String> = BTreeMap::new();
    if let Some(Err(error)) = proxy.network.as_ref().map(Network::join) {
        missing.insert((TABLE, String::new()), error.to_string());
    } else {
        again(job.interval, stop, || {
            let at_ns = crate::monotonic_ns();
            let patience = if stop.load(Ordering::Relaxed) { LAST_ANSWERS } else { ANSWERS };
            let read = proxy.counters.read(patience, &mut |counter, why| {
                let column = (TABLE, counter.to_owned());
                missing.entry(column).or_insert(why);
            });
            tell(
                &read
                    .into_iter()
                    .map(|(counter, value)| SampleRow {
                        table: TABLE.to_owned(),
                        at_ns,
                        arm: proxy.arm.clone(),
                        keys: vec![counter],
                        values: vec![Some(value)],
                    })
                    .collect::<Vec<_>>(),
            );
            if job.requests
                && let Err(why) = tell_requests(&mut proxy, stop, tell)
            {
                let column = (REQUESTS, String::new());
                missing.entry(column).or_insert(why);
            }
        });
    }
    // A server that is observed is no arm of a study.
    let whose = if proxy.arm.is_empty() { String::new() } else { format!("arm {}: ", proxy.arm) };
    let counters = missing.into_iter().map(|((table, column), why)| MissingCounter {
        table: table.to_owned(),
        column,
        role: PROXY.to_owned(),
        why: format!("{whose}{why}"),
    });
    add(end, counters.collect());
}

/// Sends the requests that a proxy has logged since the last call. An error is the reason why requests cannot be read,
/// or not all of them.
fn tell_requests(
    proxy: &mut CountingProxy,
    stop: &AtomicBool,
    tell: &(dyn Fn(&[SampleRow]) + Sync),
) -> Result<(), String> {
    let none = "weir lets a proxy log its requests only where it writes the configuration";
    let log = proxy.requests.as_mut().ok_or(none)?;
    if stop.load(Ordering::Relaxed) {
        thread::sleep(WRITTEN);
    }
    let (requests, too_many) = log.read()?;
    let real = clock_gettime(ClockId::Realtime);
    let real_ns = real.tv_sec as u64 * 1_000_000_000 + real.tv_nsec as u64;
    let now_ns = crate::monotonic_ns();
    tell(
        &requests
            .iter()
            .map(|request| SampleRow {
                table: REQUESTS.to_owned(),
                at_ns: now_ns
                    .saturating_sub(real_ns.saturating_sub(request.end_us.saturating_mul(1000))),
                arm: proxy.arm.clone(),
                keys: Vec::new(),
                values: std::iter::once(Some(request.total_us))
                    .chain(request.parts_us)
                    .chain([Some(request.stands_for)])
                    .collect(),
            })
            .collect::<Vec<_>>(),
    );
    match too_many {
        0 => Ok(()),
        _ => {
            Err("it logged more in an interval than is read: some requests are left out".to_owned())
        }
    }
}

/// Runs `work` at the times of an interval, and once more when stopped. Times that pass during a run are skipped.
fn again(interval: Duration, stop: &AtomicBool, mut work: impl FnMut()) {
    let interval_ns = interval.as_nanos() as u64;
    let mut at_ns = crate::monotonic_ns();
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        work();
        if is_last {
            return;
        }
        let passed = crate::monotonic_ns().saturating_sub(at_ns) / interval_ns;
        at_ns += (passed + 1) * interval_ns;
        // Once more where it is stopped meanwhile: what happened since is known then.
        sleep_until(at_ns, stop);
    }
}

/// Adds counters that are missing, and the CPU time of the calling thread, which is about to end.
fn add(end: &Mutex<SampleEnd>, missing: Vec<MissingCounter>) {
    let mut total = end.lock().unwrap_or_else(PoisonError::into_inner);
    total.cpu_ns += crate::thread_cpu_ns();
    total.missing.extend(missing);
}
