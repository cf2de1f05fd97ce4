//! A running server: its threads, from start to stop.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{gettid, set_current_timer_slack};

use crate::connection::Service;
use crate::counters::Tally;
use crate::delay::Delays;
use crate::responses::Responses;
use crate::stall::{FirstRequest, Stalls};
use crate::worker::Worker;
use crate::{Counters, OriginConfig, listener};

/// Bytes read at once.
const BUFFER: usize = 64 * 1024;

/// A running origin server. It stops when it is dropped.
#[derive(Debug)]
pub struct Origin {
    addresses: Vec<SocketAddr>,
    /// The counts of each thread, by listener.
    tallies: Vec<Arc<[Tally]>>,
    thread_ids: Vec<u32>,
    threads: Vec<JoinHandle<()>>,
    wake: Arc<OwnedFd>,
}

/// What all threads of a server start from.
struct Shared {
    config: OriginConfig,
    responses: Arc<Responses>,
    first: Arc<FirstRequest>,
    clock: Instant,
    wake: Arc<OwnedFd>,
}

impl Origin {
    /// Starts a server and returns when it listens.
    ///
    /// # Errors
    /// The configuration is impossible ([`io::ErrorKind::InvalidInput`]), an address cannot be
    /// listened on, or a thread cannot be started or pinned.
    pub fn start(config: OriginConfig) -> io::Result<Origin> {
        if config.listen.is_empty() {
            let why = "there is no address to listen on";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let cpus: Vec<Option<u32>> = match &config.cpus[..] {
            [] => vec![None],
            cpus => cpus.iter().copied().map(Some).collect(),
        };
        let (addresses, listeners) = listen(&config, cpus.len())?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let mut origin = Origin {
            tallies: Vec::new(),
            thread_ids: Vec::new(),
            threads: Vec::new(),
            addresses,
            wake: Arc::clone(&wake),
        };
        let shared = Arc::new(Shared {
            responses: Arc::new(Responses::new(&config)?),
            first: Arc::new(FirstRequest::new()),
            clock: Instant::now(),
            config,
            wake,
        });
        for ((cpu, listeners), index) in cpus.into_iter().zip(listeners).zip(0_u64..) {
            // What was started before an error is stopped when `origin` is dropped.
            origin.start_thread(&shared, cpu, listeners, index)?;
        }
        Ok(origin)
    }

    fn start_thread(
        &mut self,
        shared: &Arc<Shared>,
        cpu: Option<u32>,
        listeners: Vec<OwnedFd>,
        index: u64,
    ) -> io::Result<()> {
        let tallies: Arc<[Tally]> = listeners.iter().map(|_| Tally::default()).collect();
        self.tallies.push(Arc::clone(&tallies));
        let (started, start) = mpsc::sync_channel(1);
        let shared = Arc::clone(shared);
        let body = move || {
            let worker = prepare(cpu).and_then(|()| {
                let seed = shared
                    .config
                    .seed
                    .wrapping_add(index.wrapping_mul(0x5851_f42d_4c95_7f2d));
                let service = Service {
                    responses: Arc::clone(&shared.responses),
                    tallies,
                    first: Arc::clone(&shared.first),
                    delays: Delays::new(shared.config.delay, seed),
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
        };
        let thread = thread::Builder::new()
            .name(format!("origin-{index}"))
            .spawn(body)?;
        self.threads.push(thread);
        let gone = |_| io::Error::other("the thread ended before it had begun to serve");
        self.thread_ids.push(start.recv().map_err(gone)??);
        Ok(())
    }

    /// The addresses listened on, in the order of [`OriginConfig::listen`], with the ports that
    /// were taken.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What the listener at `index` of [`Origin::addresses`] has done so far, over all threads. Zeros
    /// when there is none.
    pub fn counters(&self, index: usize) -> Counters {
        let mut sum = Counters::default();
        for tally in self.tallies.iter().filter_map(|tallies| tallies.get(index)) {
            tally.add_to(&mut sum);
        }
        sum
    }

    /// The kernel's ids of the serving threads, as in `/proc/self/task/ID/schedstat`.
    pub fn thread_ids(&self) -> &[u32] {
        &self.thread_ids
    }

    /// Stops the server: connections are closed and the ports are free when this returns.
    pub fn stop(self) {}
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

/// Opens the listeners of each thread. All threads listen on the same addresses.
fn listen(
    config: &OriginConfig,
    threads: usize,
) -> io::Result<(Vec<SocketAddr>, Vec<Vec<OwnedFd>>)> {
    let mut addresses = Vec::new();
    let mut listeners: Vec<Vec<OwnedFd>> = (0..threads).map(|_| Vec::new()).collect();
    for wanted in &config.listen {
        let mut address = *wanted;
        for listeners in &mut listeners {
            let why = |error: io::Error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            };
            let socket = listener::listen(address, config.backlog, threads > 1).map_err(why)?;
            // The first thread learns the port when any will do; the others share it.
            address = listener::address(&socket)?;
            listeners.push(socket);
        }
        addresses.push(address);
    }
    Ok((addresses, listeners))
}

/// Makes the calling thread one that serves.
fn prepare(cpu: Option<u32>) -> io::Result<()> {
    if let Some(cpu) = cpu {
        weir_probe::keep_to(None, &[cpu]).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot run on CPU {cpu}: {error}"))
        })?;
    }
    // The default, 50 us, would be added to every delay.
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}
