//! One trial: threads started, pinned and released together; their slices merged as they end.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use hdrhistogram::Histogram;
use rustix::io::Errno;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use weir_model::load::{Arrivals, ErrorCount};

use crate::engine::slots::{Delivery, Outlet};
use crate::engine::{Engine, Progress, SliceHook, ThreadTotals};
use crate::ledger::{Errors, SliceData, new_histogram};
use crate::plan::Plan;
use crate::reactor::epoll::{Epoll, monotonic_ns};

/// How long connections may take to open before the trial begins without the missing ones.
const OPENING: Duration = Duration::from_secs(30);

/// Between all threads being ready and the start, so that each has come back from the barrier.
const LEAD_NS: u64 = 2_000_000;

/// Nice value of an open loop's threads.
const PUNCTUAL: i32 = -15;

/// Finished slices that may wait for whoever merges them.
const DELIVERIES: usize = 1024;

/// What others may see and do while a trial runs.
#[derive(Debug)]
pub struct Control {
    /// Set it to end the trial: what was measured is reported.
    pub stop: Arc<AtomicBool>,
    /// One for each thread.
    pub progress: Vec<Progress>,
    /// Start of the trial, CLOCK_MONOTONIC nanoseconds; 0 while connections are being opened.
    pub started_at: AtomicU64,
}

impl Control {
    /// For a trial of `threads` threads that ends early when `stop` is set.
    pub fn new(threads: usize, stop: Arc<AtomicBool>) -> Control {
        let progress = std::iter::repeat_with(Progress::default)
            .take(threads)
            .collect();
        Control {
            stop,
            progress,
            started_at: AtomicU64::new(0),
        }
    }
}

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Not one connection could be opened.
    #[error("no connection could be opened: {}", words(.0))]
    NoConnection(Vec<ErrorCount>),
    /// The kernel refused something before the trial.
    #[error("cannot prepare the load engine: {0}")]
    Setup(#[from] Errno),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

fn words(errors: &[ErrorCount]) -> String {
    errors
        .first()
        .map_or_else(|| "interrupted".to_owned(), |error| error.words.clone())
}

/// What a trial leaves beside its slices.
#[derive(Debug)]
pub struct Outcome {
    /// When the measuring ended, nanoseconds since the start: the end of the last slice unless the
    /// trial was stopped or had sent all it should.
    pub ended_at: u64,
    /// Connections asked for.
    pub connections: usize,
    /// Connections open when the trial began.
    pub connected: usize,
    /// Connections opened over the whole trial, the first time or again.
    pub connects: u64,
    /// Time to open a connection, nanoseconds.
    pub connect_time: Histogram<u64>,
    /// Errors that belong to no slice.
    pub errors: Errors,
    /// CPU time of each thread, nanoseconds.
    pub cpu_ns: Vec<u64>,
}

/// Carries a plan out. `on_slice` is given each slice, merged over the threads, when it and all its
/// requests have ended; that may be out of order when requests take longer than slices.
///
/// # Errors
/// Nothing could be measured at all. Everything that happens after the start is part of the result.
pub fn run(
    plan: &Plan,
    control: &Control,
    hook: Option<SliceHook>,
    mut on_slice: impl FnMut(usize, &SliceData),
) -> Result<Outcome, LoadError> {
    let threads = plan.cpus.len();
    let (full, deliveries) = sync_channel(DELIVERIES);
    let mut outlets = Vec::new();
    let mut returns = Vec::new();
    for thread in 0..threads {
        let (back, empty) = channel();
        // A few to fill while others are on their way; made here, before anything is measured.
        (0..4).for_each(|_| drop(back.send(Box::default())));
        returns.push(back);
        outlets.push((
            Epoll::set()?,
            Outlet {
                thread,
                full: full.clone(),
                empty,
            },
        ));
    }
    drop(full);
    let gate = Gate::new(threads, &control.started_at);
    std::thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut hook = hook;
        for (thread, (set, outlet)) in outlets.into_iter().enumerate() {
            let builder = std::thread::Builder::new().name("weir-load".to_owned());
            let (gate, hook) = (&gate, hook.take());
            let handle = builder.spawn_scoped(scope, move || {
                settle(
                    plan.cpus[thread],
                    !matches!(plan.arrivals, Arrivals::Closed),
                );
                let reactor = Epoll::new(set, plan.connections_of(thread));
                let (progress, stop) = (&control.progress[thread], &*control.stop);
                work(
                    Engine::new(plan, thread, reactor, outlet, progress, stop, hook),
                    gate,
                )
            });
            handles.push(handle.map_err(LoadError::Thread)?);
        }
        merge(threads, &deliveries, &returns, &mut on_slice);
        let totals = handles.into_iter().map(|handle| match handle.join() {
            Ok(totals) => totals,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        outcome(totals.collect(), &gate)
    })
}

/// Where threads wait for each other before the start.
struct Gate<'a> {
    barrier: Barrier,
    start: &'a AtomicU64,
    connections: AtomicUsize,
    connected: AtomicUsize,
}

impl Gate<'_> {
    fn new(threads: usize, start: &AtomicU64) -> Gate<'_> {
        Gate {
            barrier: Barrier::new(threads),
            start,
            connections: AtomicUsize::new(0),
            connected: AtomicUsize::new(0),
        }
    }

    /// The common start; 0 when no connection is open anywhere.
    fn pass(&self, connections: usize, connected: usize) -> u64 {
        self.connections.fetch_add(connections, Ordering::Relaxed);
        self.connected.fetch_add(connected, Ordering::Relaxed);
        if self.barrier.wait().is_leader() && self.connected.load(Ordering::Relaxed) > 0 {
            self.start
                .store(monotonic_ns() + LEAD_NS, Ordering::Relaxed);
        }
        self.barrier.wait();
        self.start.load(Ordering::Relaxed)
    }
}

/// Makes the calling thread fit for measuring.
///
/// An open loop is to be punctual: its thread goes before others of its CPU, where that is allowed
/// (CAP_SYS_NICE). An ordinary thread waits for up to a scheduler's slice, some milliseconds, when
/// the origin server happens to run there. A closed loop has no appointments, and gets no favours.
fn settle(cpu: Option<u32>, punctual: bool) {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        // The CPUs were checked against those allowed; if one has gone since, anywhere will do.
        let _ = sched_setaffinity(None, &set);
    }
    if punctual {
        // Not being allowed shows as dispatch lag, which every result tells.
        let _ = setpriority_process(None, PUNCTUAL);
    }
    // Timers of ordinary threads may be up to 50 µs late to save wakeups; ours are arrivals.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
}

fn work(mut engine: Engine<'_, Epoll>, gate: &Gate<'_>) -> ThreadTotals {
    let connected = engine.open(OPENING.as_nanos() as u64);
    match gate.pass(engine.connections(), connected) {
        0 => engine.abandon(),
        start => engine.run(start).0,
    }
}

/// Merges the threads' data of each slice and hands it on, until all threads have ended.
fn merge(
    threads: usize,
    deliveries: &Receiver<Delivery>,
    returns: &[Sender<Box<SliceData>>],
    on_slice: &mut impl FnMut(usize, &SliceData),
) {
    let mut waiting: Vec<(usize, usize, Box<SliceData>)> = Vec::new();
    let give_back = |thread: usize, mut data: Box<SliceData>| {
        data.clear();
        // The thread may have ended.
        let _ = returns[thread].send(data);
    };
    for (thread, slice, data) in deliveries {
        match waiting.iter_mut().find(|(other, _, _)| *other == slice) {
            Some((_, missing, merged)) => {
                merged.add(&data);
                *missing -= 1;
                give_back(thread, data);
            }
            None if threads == 1 => {
                on_slice(slice, &data);
                give_back(thread, data);
                continue;
            }
            None => {
                let mut merged: Box<SliceData> = Box::default();
                merged.add(&data);
                waiting.push((slice, threads - 1, merged));
                give_back(thread, data);
            }
        }
        if let Some(done) = waiting.iter().position(|(_, missing, _)| *missing == 0) {
            let (slice, _, merged) = waiting.swap_remove(done);
            on_slice(slice, &merged);
        }
    }
    // A thread that had sent its share early never came to the last slices.
    waiting.sort_by_key(|(slice, _, _)| *slice);
    for (slice, _, merged) in waiting {
        on_slice(slice, &merged);
    }
}

fn outcome(totals: Vec<ThreadTotals>, gate: &Gate<'_>) -> Result<Outcome, LoadError> {
    let mut errors = Errors::default();
    let mut connect_time = new_histogram();
    for thread in &totals {
        errors.add(&thread.errors);
        connect_time
            .add(&thread.connect_time)
            .expect("all histograms have the same bounds");
    }
    let connected = gate.connected.load(Ordering::Relaxed);
    if connected == 0 {
        return Err(LoadError::NoConnection(errors.counts()));
    }
    Ok(Outcome {
        ended_at: totals
            .iter()
            .map(|thread| thread.ended_at)
            .max()
            .unwrap_or(0),
        connections: gate.connections.load(Ordering::Relaxed),
        connected,
        connects: totals.iter().map(|thread| thread.connects).sum(),
        connect_time,
        errors,
        cpu_ns: totals.iter().map(|thread| thread.cpu_ns).collect(),
    })
}
