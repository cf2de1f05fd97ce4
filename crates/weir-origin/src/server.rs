//! A running server: its threads, from start to stop.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{gettid, set_current_timer_slack};

use crate::connection::Service;
use crate::counters::Tally;
use crate::delay::{Delays, Line};
use crate::listener::{self, Listeners, MOST_LISTENERS};
use crate::responses::Responses;
use crate::stall::{FirstRequest, Stalls};
use crate::worker::Worker;
use crate::{Counters, OriginConfig};

/// Size of a read in bytes.
const BUFFER: usize = 64 * 1024;

/// A running origin server. It stops when it is dropped.
#[derive(Debug)]
pub struct Origin {
    addresses: Vec<SocketAddr>,
    backlog: u32,
    /// Listeners of each thread.
    listeners: Vec<Arc<Listeners>>,
    /// Counters of each thread, by listener.
    tallies: Vec<Arc<[Tally]>>,
    thread_ids: Vec<u32>,
    threads: Vec<JoinHandle<()>>,
    wake: Arc<OwnedFd>,
    taken: Arc<[AtomicU32]>,
}

/// Initial state of all threads of a server.
struct Shared {
    config: OriginConfig,
    responses: Arc<Responses>,
    first: Arc<FirstRequest>,
    line: Option<Arc<Line>>,
    /// Reduction of each listener's speed, per cent.
    taken: Arc<[AtomicU32]>,
    clock: Instant,
    wake: Arc<OwnedFd>,
}

impl Origin {
    /// Starts a server and returns once it listens.
    ///
    /// # Errors
    /// Fails if the configuration is invalid ([`io::ErrorKind::InvalidInput`]), an address cannot be listened on, or a
    /// thread cannot be started or pinned.
    pub fn start(config: OriginConfig) -> io::Result<Origin> {
        let cpus: Vec<Option<u32>> = match &config.cpus[..] {
            [] => vec![None],
            cpus => cpus.iter().copied().map(Some).collect(),
        };
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let mut origin = Origin {
            backlog: config.backlog,
            listeners: Vec::new(),
            tallies: Vec::new(),
            thread_ids: Vec::new(),
            threads: Vec::new(),
            addresses: Vec::new(),
            wake: Arc::clone(&wake),
            taken: (0..MOST_LISTENERS).map(|_| AtomicU32::new(0)).collect(),
        };
        let shared = Arc::new(Shared {
            responses: Arc::new(Responses::new(&config)?),
            first: Arc::new(FirstRequest::new()),
            line: config.concurrency.map(|at_once| Arc::new(Line::new(at_once))),
            taken: Arc::clone(&origin.taken),
            clock: Instant::now(),
            config,
            wake,
        });
        // What was started before an error is stopped when `origin` is dropped.
        for (cpu, index) in cpus.into_iter().zip(0_u64..) {
            origin.start_thread(&shared, cpu, index)?;
        }
        for (place, wanted) in shared.config.listen.iter().enumerate() {
            let address = origin.open(place, *wanted)?;
            origin.addresses.push(address);
        }
        Ok(origin)
    }

    /// Listens on an additional address, at an unused position from 0 to 255. Returns the address with the actual port.
    /// The socket belongs to the network namespace of the calling thread.
    ///
    /// # Errors
    /// Fails if the position is used or out of range ([`io::ErrorKind::InvalidInput`]), or the address cannot be
    /// listened on.
    pub fn open(&self, place: usize, wanted: SocketAddr) -> io::Result<SocketAddr> {
        let mut address = wanted;
        let shared = self.listeners.len() > 1;
        let mut opened = Vec::new();
        for _ in &self.listeners {
            let socket = listener::listen(address, self.backlog, shared)
                .map_err(|error| listen_error(error, address))?;
            // The first thread learns the port when any will do; the others share it.
            address = listener::address(&socket)?;
            opened.push(socket);
        }
        let mut pairs = self.listeners.iter().zip(opened);
        match pairs.try_for_each(|(of_thread, socket)| of_thread.open(place, socket)) {
            Ok(()) => Ok(address),
            Err(error) => Err(listen_error(error, address)),
        }
    }

    /// Reduces the speed of the listener at a position by this percentage, 90 at most: its delays are lengthened so
    /// that it answers that many fewer requests in the same time.
    pub fn take(&self, place: usize, percent: u32) {
        if let Some(taken) = self.taken.get(place) {
            taken.store(percent, Ordering::Relaxed);
        }
    }

    /// Stops listening at a position. Connections accepted there go on.
    pub fn close(&self, place: usize) {
        self.listeners.iter().for_each(|of_thread| of_thread.close(place));
    }

    fn start_thread(
        &mut self,
        shared: &Arc<Shared>,
        cpu: Option<u32>,
        index: u64,
    ) -> io::Result<()> {
        let tallies: Arc<[Tally]> = (0..MOST_LISTENERS).map(|_| Tally::default()).collect();
        self.tallies.push(Arc::clone(&tallies));
        let listeners = Arc::new(Listeners::new()?);
        self.listeners.push(Arc::clone(&listeners));
        let (started, start) = mpsc::sync_channel(1);
        let shared = Arc::clone(shared);
        let builder = thread::Builder::new().name(format!("origin-{index}"));
        let thread = builder.spawn(move || {
            let worker = prepare(cpu).and_then(|()| {
                let seed =
                    shared.config.seed.wrapping_add(index.wrapping_mul(0x5851_f42d_4c95_7f2d));
                let service = Service {
                    responses: Arc::clone(&shared.responses),
                    tallies,
                    first: Arc::clone(&shared.first),
                    delays: Delays::new(shared.config.delay, seed, shared.line.clone()),
                    taken: Arc::clone(&shared.taken),
                    clock: shared.clock,
                    buffer: vec![0; BUFFER],
                };
                let stalls = Stalls::new(&shared.config.stalls);
                Worker::new(listeners, Arc::clone(&shared.wake), stalls, service)
            });
            let (worker, result) = match worker {
                Ok(worker) => (Some(worker), Ok(gettid().as_raw_nonzero().get() as u32)),
                Err(error) => (None, Err(error)),
            };
            // Whoever waits for this is there: it blocks in `start_thread`.
            let _ = started.send(result);
            if let Some(worker) = worker {
                worker.run();
            }
        })?;
        self.threads.push(thread);
        self.thread_ids.push(
            start
                .recv()
                .map_err(|_| io::Error::other("the thread ended before it had begun to serve"))??,
        );
        Ok(())
    }

    /// Returns the addresses listened on, in the order of [`OriginConfig::listen`], with the actual ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the counters of the listeners at a position ([`Origin::open`], or the index in [`Origin::addresses`]),
    /// summed over all threads. Zeros if there never was one.
    pub fn counters(&self, index: usize) -> Counters {
        let mut sum = Counters::default();
        for tally in self.tallies.iter().filter_map(|tallies| tallies.get(index)) {
            tally.add_to(&mut sum);
        }
        sum
    }

    /// Returns the kernel's ids of the serving threads, as in `/proc/self/task/ID/schedstat`.
    pub fn thread_ids(&self) -> &[u32] {
        &self.thread_ids
    }

    /// Stops the server. Its connections are closed and its ports free when this returns.
    pub fn stop(self) {}
}

fn listen_error(error: io::Error, address: SocketAddr) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
}

impl Drop for Origin {
    fn drop(&mut self) {
        // It cannot fail: nobody else writes to it, so its count does not overflow.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        for thread in self.threads.drain(..) {
            // A panic was reported by the thread itself, on standard error.
            let _ = thread.join();
        }
    }
}

/// Pins the calling thread to a CPU and sets its timer slack.
fn prepare(cpu: Option<u32>) -> io::Result<()> {
    if let Some(cpu) = cpu {
        weir_probe::keep_to(None, &[cpu]).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot run on CPU {cpu}: {error}"))
        })?;
    }
    // The default, 50 us, would be added to every delay.
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}
