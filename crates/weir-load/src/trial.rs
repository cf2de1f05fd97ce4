//! Execution of one trial: its threads are started, pinned and released together, and their slices merged as they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use weir_model::load::ErrorCount;

use crate::engine::open_slices::{Delivery, FlowsData, Outlet, empty};
use crate::engine::{Engine, FlowTotals, Progress, Setup, SliceHook, ThreadTotals};
use crate::floor::{self, Floor};
use crate::gate::Gate;
use crate::ledger::{Errors, SliceData};
use crate::plan::{Flow, Plan};
use crate::reactor::epoll::{Epoll, monotonic_ns};
use crate::reactor::uring::{self, Uring};
use crate::reactor::{Io, Reactor};
use crate::sys::own_descriptor_table;

/// Time limit for opening connections; after it the trial begins without the missing ones.
pub const OPENING: Duration = Duration::from_secs(30);

/// Time between all threads being ready and the start, nanoseconds, so that each has passed the gate.
const LEAD_NS: u64 = 2_000_000;

/// Nice value of an open loop's threads.
const PUNCTUAL: i32 = -15;

/// Maximum number of finished slices that wait to be merged.
const DELIVERIES: usize = 1024;

/// Controls and progress of a trial, shared with other threads while it runs.
#[derive(Debug)]
pub struct Control {
    /// Flag that ends the trial; the figures up to that point are reported.
    pub stop: Arc<AtomicBool>,
    /// Progress of each thread.
    pub progress: Vec<Progress>,
    /// Start of the trial, CLOCK_MONOTONIC nanoseconds; 0 while connections are being opened.
    pub started_at: AtomicU64,
    /// Agreement on the start with other generators of the same load; `None` if there are no others.
    pub appointment: Option<Appointment>,
}

/// Agreement of a load's generators on a common start. Each reports when its connections are open, and a coordinator
/// that hears from all of them sets the start.
pub struct Appointment {
    /// Called once, when this generator is ready.
    pub ready: Box<dyn Fn() + Send + Sync>,
    /// Time of the start, CLOCK_MONOTONIC nanoseconds; 0 until it is set.
    pub start: Arc<AtomicU64>,
}

impl std::fmt::Debug for Appointment {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Appointment").field("start", &self.start).finish_non_exhaustive()
    }
}

/// Interval at which a generator that is ready checks whether the start has been set.
const LOOK: Duration = Duration::from_millis(1);

impl Control {
    /// Creates the controls of a trial of `threads` threads that ends early when `stop` is set.
    pub fn new(threads: usize, stop: Arc<AtomicBool>) -> Control {
        let progress = std::iter::repeat_with(Progress::default).take(threads).collect();
        Control { stop, progress, started_at: AtomicU64::new(0), appointment: None }
    }

    /// Returns the start, to be called when all threads are ready; 0 if the trial is stopped before a start is set.
    pub(crate) fn agreed_start(&self) -> u64 {
        let Some(appointment) = &self.appointment else {
            return monotonic_ns() + LEAD_NS;
        };
        (appointment.ready)();
        loop {
            match appointment.start.load(Ordering::Relaxed) {
                0 if self.stop.load(Ordering::Relaxed) => return 0,
                0 => std::thread::sleep(LOOK),
                // What is told too late is told of: the generators' starts are compared.
                start => return start.max(monotonic_ns() + LEAD_NS),
            }
        }
    }
}

/// Reason why a trial has no result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No connection could be opened.
    #[error("no connection could be opened: {}", words(.0))]
    NoConnection(Vec<ErrorCount>),
    /// io_uring was requested and cannot be used.
    #[error("io_uring cannot be used here: {0}")]
    Uring(uring::Unavailable),
    /// The kernel refused a system call before the trial.
    #[error("cannot prepare the load engine: {0}")]
    Setup(#[from] Errno),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

fn words(errors: &[ErrorCount]) -> String {
    errors.first().map_or_else(|| "interrupted".to_owned(), |error| error.words.clone())
}

/// Result of a trial apart from its slices.
#[derive(Debug)]
pub struct Outcome {
    /// End of the measurement, nanoseconds since the start: the end of the last slice unless the trial was stopped or
    /// had sent all its requests.
    pub ended_at: u64,
    /// Connections and handshakes by flow, in the plan's order.
    pub flows: Vec<FlowTotals>,
    /// Errors that belong to no slice.
    pub errors: Errors,
    /// CPU time of each thread, nanoseconds.
    pub cpu_ns: Vec<u64>,
    /// CPU time that each thread spun because a request was soon due, nanoseconds; part of `cpu_ns`.
    pub spun_ns: Vec<u64>,
    /// Recent lateness of wake-ups, median and p99, each the largest over all threads, in nanoseconds.
    pub woken_late: [u64; 2],
    /// Longest time in the measured part for which each thread did not run beyond the wait that it requested,
    /// nanoseconds.
    pub longest_gap_ns: Vec<u64>,
    /// Number of times that received bytes had to wait for a buffer.
    pub starved: u64,
    /// I/O backend that was used; never [`Io::Auto`].
    pub io: Io,
}

/// Runs a plan. Calls `on_slice` with each slice, merged over the threads, when the slice and all its requests have
/// ended; that may be out of order if requests take longer than slices. The figures are given by flow of the slice's
/// arm, in the order of [`Plan::places`].
///
/// # Errors
/// Nothing could be measured at all. Everything that happens after the start is part of the result.
pub fn run(
    plan: &Plan,
    control: &Control,
    hook: Option<SliceHook>,
    mut on_slice: impl FnMut(usize, &[SliceData]),
) -> Result<Outcome, LoadError> {
    let io = resolve(plan)?;
    let threads = plan.cpus.len();
    let (full, deliveries) = sync_channel(DELIVERIES);
    let mut outlets = Vec::new();
    let mut returns = Vec::new();
    for thread in 0..threads {
        // A bounded channel: an unbounded one frees its blocks on the thread that receives.
        let (back, cleared) = sync_channel(DELIVERIES);
        // A few to fill while others are on their way; made here, before anything is measured.
        (0..4).for_each(|_| drop(back.send(empty(plan.width()))));
        returns.push(back);
        outlets.push(Outlet { thread, full: full.clone(), empty: cleared });
    }
    drop(full);
    let gate = Gate::new(threads, control);
    let crew = Crew { plan, io, control, gate: &gate };
    std::thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut hook = hook;
        for outlet in outlets {
            if control.stop.load(Ordering::Relaxed) {
                gate.abandon(threads - handles.len());
                return Err(LoadError::NoConnection(Vec::new()));
            }
            let builder = std::thread::Builder::new().name("weir-load".to_owned());
            let (crew, hook) = (&crew, hook.take());
            let handle =
                builder.spawn_scoped(scope, move || crew.thread(outlet, hook)).map_err(|error| {
                    gate.abandon(threads - handles.len());
                    LoadError::Thread(error)
                });
            handles.push(handle?);
        }
        merge(plan, &deliveries, &returns, &mut on_slice);
        let totals = handles.into_iter().map(joined);
        outcome(totals.collect::<Result<_, _>>()?, io, &gate)
    })
}

/// Data shared by the threads of a trial.
struct Crew<'a> {
    plan: &'a Plan,
    io: Io,
    control: &'a Control,
    gate: &'a Gate<'a>,
}

impl Crew<'_> {
    /// Runs one thread of a trial, from its start to its end.
    fn thread(&self, outlet: Outlet, hook: Option<SliceHook>) -> Result<ThreadTotals, Errno> {
        let (plan, gate, thread) = (self.plan, self.gate, outlet.thread);
        settle(plan.cpus[thread], plan.flows.iter().any(Flow::is_open_loop));
        // A thread that shares the table after all has fewer descriptors; connections say so.
        let _ = own_descriptor_table();
        weir_probe::fault::at("load-thread");
        let setup = Setup {
            plan,
            progress: &self.control.progress[thread],
            stop: &self.control.stop,
            outlet,
            hook,
        };
        let connections = plan.connections_of(thread);
        let patience = patience_ns(plan);
        match self.io {
            Io::Uring => {
                let reactor = Uring::new(connections).inspect_err(|_| gate.give_up(1))?;
                Ok(work(Engine::new(reactor, setup), gate, patience))
            }
            Io::Auto | Io::Epoll => {
                let reactor = Epoll::new(connections).inspect_err(|_| gate.give_up(1))?;
                Ok(work(Engine::new(reactor, setup), gate, patience))
            }
        }
    }
}

/// Chooses the I/O backend.
///
/// With [`Io::Auto`], a closed loop uses io_uring, which costs less. An open loop uses epoll, whose receive times are a
/// little more accurate: it takes readiness events, stamps, and receives afterwards. io_uring has received before it
/// returns, so that in a burst the first bytes wait until the last ones have been received.
///
/// # Errors
/// io_uring was requested and cannot be used here.
fn resolve(plan: &Plan) -> Result<Io, LoadError> {
    let punctual = plan.flows.iter().any(Flow::is_open_loop);
    match plan.io {
        Io::Epoll => Ok(Io::Epoll),
        Io::Uring => uring::probe().map(|()| Io::Uring).map_err(LoadError::Uring),
        Io::Auto if punctual || uring::probe().is_err() => Ok(Io::Epoll),
        Io::Auto => Ok(Io::Uring),
    }
}

/// Runs the floor of a plan's first flow on a new thread: see [`crate::floor`].
///
/// # Errors
/// A thread or a reactor could not be created.
pub fn floor(plan: &Plan, duration: Duration, stop: &AtomicBool) -> Result<Floor, LoadError> {
    let flow = &plan.flows[0];
    let request = flow.requests.get(0).template.fixed().unwrap_or_default();
    let connections = plan.connections_of(0);
    let io = resolve(plan)?;
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("weir-floor".to_owned());
        let spawned = builder.spawn_scoped(scope, || -> Result<Floor, Errno> {
            settle(plan.cpus[0], false);
            let job = floor::Loop {
                route: &flow.routes[0],
                request,
                connections: connections as u32,
                duration,
            };
            Ok(match io {
                Io::Uring => floor::run(Uring::new(connections)?, job, stop),
                Io::Auto | Io::Epoll => floor::run(Epoll::new(connections)?, job, stop),
            })
        });
        Ok(joined(spawned.map_err(LoadError::Thread)?)?)
    })
}

/// Returns the result of a thread; resumes its panic, if there was one.
fn joined<T>(handle: std::thread::ScopedJoinHandle<'_, T>) -> T {
    let ended = handle.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Prepares the calling thread for measuring: CPU, priority and timer slack.
///
/// The thread of an open loop must be punctual: it gets priority over others on its CPU, if that is permitted
/// (CAP_SYS_NICE). An ordinary thread waits for up to a scheduler's slice, some milliseconds, if the origin server
/// happens to run there. A closed loop has no due times, and gets no priority.
fn settle(cpu: Option<u32>, punctual: bool) {
    if let Some(cpu) = cpu {
        // The CPUs were checked against those allowed; if one has gone since, anywhere will do.
        let _ = weir_probe::keep_to(None, &[cpu]);
    }
    if punctual {
        // Not being allowed shows as dispatch lag, which every result tells.
        let _ = setpriority_process(None, PUNCTUAL);
    }
    // Timers of ordinary threads may be up to 50 µs late to save wakeups; ours are arrivals.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
}

fn work<R: Reactor>(mut engine: Engine<'_, R>, gate: &Gate<'_>, patience_ns: u64) -> ThreadTotals {
    let connected = engine.open(patience_ns);
    engine.practise();
    match gate.pass(engine.connections(), connected) {
        0 => engine.abandon(),
        start => engine.run(start).0,
    }
}

/// Returns the time limit for opening connections, nanoseconds; longer if the connect rate is limited.
fn patience_ns(plan: &Plan) -> u64 {
    let longest = plan
        .flows
        .iter()
        .filter_map(|flow| {
            let seconds = f64::from(flow.connections) / flow.connect_rate?;
            Some((seconds * 1e9) as u64)
        })
        .max()
        .unwrap_or(0);
    OPENING.as_nanos() as u64 + longest + longest / 10
}

/// A slice that not all threads have delivered.
struct Partial {
    slice: usize,
    missing: usize,
    data: FlowsData,
}

/// Merges the threads' data of each slice and passes it on, until all threads have ended.
fn merge(
    plan: &Plan,
    deliveries: &Receiver<Delivery>,
    returns: &[SyncSender<FlowsData>],
    on_slice: &mut impl FnMut(usize, &[SliceData]),
) {
    let threads = plan.cpus.len();
    let mut waiting: Vec<Partial> = Vec::new();
    let mut spare: Vec<FlowsData> = Vec::new();
    for (thread, slice, mut data) in deliveries {
        if threads == 1 {
            on_slice(slice, &data);
        } else {
            let known_index = waiting.iter().position(|partial| partial.slice == slice);
            let index = known_index.unwrap_or_else(|| {
                waiting.push(Partial {
                    slice,
                    missing: threads,
                    data: spare.pop().unwrap_or_else(|| empty(plan.width())),
                });
                waiting.len() - 1
            });
            let partial = &mut waiting[index];
            partial.data.iter_mut().zip(&data).for_each(|(merged, data)| merged.add(data));
            partial.missing -= 1;
            if partial.missing == 0 {
                let mut complete = waiting.swap_remove(index);
                on_slice(slice, &complete.data);
                complete.data.iter_mut().for_each(SliceData::clear);
                spare.push(complete.data);
            }
        }
        data.iter_mut().for_each(SliceData::clear);
        // The thread may have ended.
        let _ = returns[thread].send(data);
    }
    // A thread that had sent its share early never came to the last slices.
    waiting.sort_by_key(|partial| partial.slice);
    for partial in waiting {
        on_slice(partial.slice, &partial.data);
    }
}

fn outcome(threads: Vec<ThreadTotals>, io: Io, gate: &Gate<'_>) -> Result<Outcome, LoadError> {
    let mut errors = Errors::default();
    for thread in &threads {
        errors.add(&thread.errors);
    }
    if gate.none_connected() {
        return Err(LoadError::NoConnection(errors.counts()));
    }
    let mut flows: Vec<FlowTotals> = Vec::new();
    for thread in &threads {
        for (place, flow) in thread.flows.iter().enumerate() {
            match flows.get_mut(place) {
                Some(sum) => sum.add(flow),
                None => flows.push(flow.clone()),
            }
        }
    }
    let ended_at = threads.iter().map(|thread| thread.ended_at).max();
    let woken_late =
        [0, 1].map(|at| threads.iter().map(|thread| thread.woken_late[at]).max().unwrap_or(0));
    Ok(Outcome {
        ended_at: ended_at.unwrap_or(0),
        flows,
        errors,
        cpu_ns: threads.iter().map(|thread| thread.cpu_ns).collect(),
        woken_late,
        spun_ns: threads.iter().map(|thread| thread.spun_ns).collect(),
        longest_gap_ns: threads.iter().map(|thread| thread.longest_gap_ns).collect(),
        starved: threads.iter().map(|thread| thread.starved).sum(),
        io,
    })
}
