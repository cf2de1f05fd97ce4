//! Server side of the protocol: does the work on one host.
//!
//! There are three kinds of threads. The first reads requests, answers at once those that must not wait (ping, clock,
//! stop, start of a load), and hands on the rest. The second carries out requests in order and lives as long as the
//! server. The third kind: each load, each watch and each sampling has a thread of its own. When its input ends, for
//! whatever reason, a server ends everything that it started and puts back everything that it changed.
//!
//! No thread waits forever for a peer that does not read its answers.

mod arm;
mod arms;
mod counting;
mod external;
mod facts;
mod failure;
mod keeper;
mod kernel;
mod link;
mod load;
pub mod networks;
mod once;
mod samples;
mod settings;
mod taken;
mod transport;
mod waits;
mod watch;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::RawValue;
use weir_load::{Appointment, SliceData};
use weir_parameters::Catalog;
use weir_sut::{Launcher, WorkFolder};

use self::failure::in_a_line;
use crate::frame::{self, FrameError};
use crate::hello::{self, HelloError};
use crate::message::{
    Ask, Body, Description, Failure, Incoming, LoadEvent, LoadJob, Reply, Request, SampleJob,
    StartLoad, Stop, WatchJob, answered, raw,
};
use crate::patient::Patient;

/// Interval at which a server checks if its peer has gone silent.
const LOOK: Duration = Duration::from_millis(500);

/// Time limit for stopped loads and watches to end; after that, everything else ends first.
const LAST_LOAD: Duration = Duration::from_secs(5);

/// The same of samples, on which nothing depends by then.
const LAST_SAMPLES: Duration = Duration::from_secs(1);

/// Interval at which the server checks if stopped loads and watches have ended.
const LOOK_AT_LAST: Duration = Duration::from_millis(1);

/// Options of a server, besides its requests.
#[derive(Debug, Clone)]
pub struct Options {
    /// Exact version of weir.
    pub weir: String,
    /// Launcher of processes.
    pub launcher: Launcher,
    /// Catalog of all parameters that settings may name.
    pub catalog: Catalog,
    /// Silence of the peer after which the server ends. `None`: a peer that is gone is noticed only by the end of the
    /// input, which is reliable on one host.
    pub silence: Option<Duration>,
    /// Flag that ends the server when it is set.
    pub stop: Arc<AtomicBool>,
}

/// Serves until the input ends, then undoes everything. The calling thread is the one that starts
/// proxies. What is written is to go out at once: `writer` has no buffer.
///
/// # Errors
/// The peer is no weir of this protocol, or says nothing for as long as it may be silent.
pub fn serve(
    mut reader: impl Read + Send + 'static,
    writer: impl Write + AsFd + Send + 'static,
    options: Options,
) -> Result<(), HelloError> {
    let shared = Arc::new(Shared::default());
    let mut patient = Patient::new(writer, {
        let (shared, silence, stop) =
            (Arc::clone(&shared), options.silence, Arc::clone(&options.stop));
        move |_| !shared.is_over(silence, &stop)
    });
    let (send, requests) = channel();
    let (greeted, greeting) = channel();
    let (of_reader, weir) = (Arc::clone(&shared), options.weir.clone());
    // Not joined: after silence it may sit in a read that never ends.
    std::thread::spawn(move || {
        let hello = hello::greet(&mut reader, &mut patient, &weir);
        let outbox = Outbox(Arc::new(Mutex::new(Box::new(patient))));
        let is_weir = hello.is_ok();
        let _ = greeted.send(hello.map(|_| outbox.clone()));
        if is_weir {
            listen(reader, &outbox, &of_reader, &send);
        }
    });
    let (silence, stop) = (options.silence, Arc::clone(&options.stop));
    let Some(outbox) = next(&greeting, &shared, silence, &stop) else {
        shared.gone.store(true, Ordering::Relaxed);
        return if stop.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(HelloError::Late(silence.unwrap_or_default()))
        };
    };
    let mut server = Server::new(options, outbox?, Arc::clone(&shared));
    while let Some(request) = next(&requests, &shared, silence, &stop) {
        server.take(request);
    }
    shared.gone.store(true, Ordering::Relaxed);
    server.end();
    Ok(())
}

/// The next message, such as a request; `None` when there will be none.
fn next<T>(
    messages: &Receiver<T>,
    shared: &Shared,
    silence: Option<Duration>,
    stop: &AtomicBool,
) -> Option<T> {
    loop {
        match messages.recv_timeout(LOOK) {
            Ok(message) => return Some(message),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if shared.is_over(silence, stop) {
            return None;
        }
    }
}

/// State shared by the threads of a server.
struct Shared {
    /// Set when the peer has gone: everything ends.
    gone: Arc<AtomicBool>,
    heard: Mutex<Instant>,
    /// Stop flags of long-running requests, by number.
    going_on: Mutex<HashMap<u64, Arc<AtomicBool>>>,
    /// Start times of loads that wait for other generators, by request number; 0 until known.
    starts: Mutex<HashMap<u64, Arc<AtomicU64>>>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            gone: Arc::default(),
            heard: Mutex::new(Instant::now()),
            going_on: Mutex::default(),
            starts: Mutex::default(),
        }
    }
}

impl Shared {
    /// Returns true if the server should end: its peer is gone or silent, or `stop` is set.
    fn is_over(&self, silence: Option<Duration>, stop: &AtomicBool) -> bool {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_silent = silence.is_some_and(|limit| heard.elapsed() > limit);
        is_silent || stop.load(Ordering::Relaxed) || self.gone.load(Ordering::Relaxed)
    }

    /// Registers a long-running request and returns its stop flag; `None` if another running request has this number.
    fn begin(&self, id: u64) -> Option<Arc<AtomicBool>> {
        let mut going_on = self.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        if going_on.contains_key(&id) {
            return None;
        }
        let stop = Arc::new(AtomicBool::new(self.gone.load(Ordering::Relaxed)));
        going_on.insert(id, Arc::clone(&stop));
        Some(stop)
    }

    /// Returns the stop flag of a long-running request; a flag that is already set if the request was stopped before it
    /// began.
    fn flag(&self, id: u64) -> Arc<AtomicBool> {
        let going_on = self.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        going_on.get(&id).map(Arc::clone).unwrap_or_else(|| Arc::new(AtomicBool::new(true)))
    }

    /// Returns the place at which the start time of a load will appear.
    fn start_of(&self, id: u64) -> Arc<AtomicU64> {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(starts.entry(id).or_default())
    }

    /// Sets the start time of a load. Does nothing if the load does not wait for it.
    fn start(&self, StartLoad { load, at_ns }: StartLoad) {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(start) = starts.remove(&load) {
            start.store(at_ns, Ordering::Relaxed);
        }
    }

    fn stop(&self, id: u64) {
        let mut going_on = self.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stop) = going_on.remove(&id) {
            stop.store(true, Ordering::Relaxed);
        }
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        starts.remove(&id);
    }

    fn stop_all(&self) {
        self.gone.store(true, Ordering::Relaxed);
        let mut going_on = self.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, stop) in going_on.drain() {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Writer of replies.
#[derive(Clone)]
struct Outbox(Arc<Mutex<Box<dyn Write + Send>>>);

impl Outbox {
    fn send(&self, id: u64, body: Body) {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A peer that is gone is noticed by whoever reads.
        let _ = frame::write(&mut *writer, &Reply { id, body });
    }

    fn event(&self, id: u64, event: &impl Serialize) {
        if let Ok(raw) = raw(event) {
            self.send(id, Body::Event(raw));
        }
    }

    fn end(&self, id: u64, result: Result<Box<RawValue>, Failure>) {
        self.send(id, result.map_or_else(Body::Failed, Body::Done));
    }

    /// Lets the peer see the end, though a thread that still waits for something has this too.
    fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(std::io::sink());
    }
}

/// Reads requests until the input ends.
fn listen(mut reader: impl Read, outbox: &Outbox, shared: &Shared, to: &Sender<Request>) {
    loop {
        let incoming: Incoming = match frame::read(&mut reader) {
            Ok(Some(incoming)) => incoming,
            Ok(None) | Err(FrameError::Io(_)) => break,
            // What follows cannot be read: the same as if the peer had gone.
            Err(FrameError::TooLarge(_) | FrameError::Malformed(_)) => break,
        };
        *shared.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let id = incoming.id;
        match incoming.understand() {
            Err(failure) => outbox.end(id, Err(failure)),
            Ok(Ask::Ping(_)) => outbox.end(id, raw(&())),
            Ok(Ask::Clock(_)) => outbox.end(id, raw(&crate::monotonic_ns())),
            Ok(Ask::Stop(Stop(other))) => {
                shared.stop(other);
                outbox.end(id, raw(&()));
            }
            Ok(Ask::StartLoad(start)) => {
                shared.start(start);
                outbox.end(id, raw(&()));
            }
            Ok(ask) => {
                if let Ask::Settle(cpus) = &ask {
                    let _ = weir_probe::keep_to(None, cpus.0.cpus());
                }
                // Known before it is begun, so that a stop that follows at once finds it.
                let can_stop = matches!(
                    ask,
                    Ask::LoadJob(_) | Ask::WatchJob(_) | Ask::SampleJob(_) | Ask::OnceJob(_)
                );
                if can_stop && shared.begin(id).is_none() {
                    let evidence = format!("request {id} goes on already");
                    outbox.end(id, Err(Failure::other(evidence)));
                    continue;
                }
                if to.send(Request { id, ask }).is_err() {
                    break;
                }
            }
        }
    }
    shared.stop_all();
}

/// The thread of a server that carries out requests in order.
struct Server {
    outbox: Outbox,
    shared: Arc<Shared>,
    bench: arms::Bench,
    /// Threads of what goes on, and how long each is waited for in the end.
    threads: Vec<(Duration, JoinHandle<()>)>,
}

impl Server {
    fn new(options: Options, outbox: Outbox, shared: Arc<Shared>) -> Server {
        Server {
            outbox,
            shared,
            bench: arms::Bench::new(options.launcher, options.catalog),
            threads: Vec::new(),
        }
    }

    fn take(&mut self, request: Request) {
        weir_probe::fault::at("agent");
        let id = request.id;
        match request.ask {
            Ask::LoadJob(job) => self.load(id, *job),
            Ask::WatchJob(job) => self.watch(id, *job),
            Ask::SampleJob(job) => self.sample(id, *job),
            ask => {
                self.bench.stop = self.shared.flag(id);
                let result = answered(ask, &mut self.bench);
                self.shared.stop(id);
                self.outbox.end(id, result);
            }
        }
    }

    /// Runs a long-running request on a thread of its own.
    fn go_on(
        &mut self,
        (id, patience): (u64, Duration),
        work: impl FnOnce(&Outbox, Arc<AtomicBool>) -> Result<Box<RawValue>, Failure> + Send + 'static,
    ) {
        self.threads.retain(|(_, thread)| !thread.is_finished());
        let (outbox, shared) = (self.outbox.clone(), Arc::clone(&self.shared));
        let stop = shared.flag(id);
        let thread = std::thread::spawn(move || {
            let result = work(&outbox, stop);
            shared.stop(id);
            outbox.end(id, result);
        });
        self.threads.push((patience, thread));
    }

    fn load(&mut self, id: u64, job: LoadJob) {
        let environment = load::check(&job).and_then(|()| self.bench.generator_place());
        let appointment = job.is_shared().then(|| {
            let outbox = self.outbox.clone();
            Appointment {
                ready: Box::new(move || outbox.event(id, &LoadEvent::<&SliceData>::Ready)),
                start: self.shared.start_of(id),
            }
        });
        self.go_on((id, LAST_LOAD), move |outbox, stop| {
            raw(&load::run(&job, &environment?, (stop, appointment), &|event| {
                outbox.event(id, event);
            })?)
        });
    }

    fn watch(&mut self, id: u64, job: WatchJob) {
        let watcher = self.bench.watcher(&job);
        self.go_on((id, LAST_LOAD), move |outbox, stop| {
            raw(&watch::run(&job, watcher?, &stop, &|reading| {
                outbox.event(id, reading);
            })?)
        });
    }

    fn sample(&mut self, id: u64, job: SampleJob) {
        let sampling = self.bench.sampling(&job);
        self.go_on((id, LAST_SAMPLES), move |outbox, stop| {
            raw(&samples::run(&job, sampling?, &stop, &|rows| {
                outbox.event(id, &rows);
            })?)
        });
    }

    /// Ends everything that was started: loads and watches first, then the rest.
    fn end(self) {
        self.shared.stop_all();
        let begun = Instant::now();
        while (self.threads.iter()).any(|it| begun.elapsed() < it.0 && !it.1.is_finished()) {
            std::thread::sleep(LOOK_AT_LAST);
        }
        self.bench.end();
        self.outbox.close();
    }
}

pub(crate) fn describe() -> Result<Description, Failure> {
    let environment = weir_probe::environment();
    let temp_folder = WorkFolder::place()?;
    Ok(Description {
        most_descriptors: environment.nofile.1,
        environment,
        temp_free_bytes: weir_probe::free_disk_bytes(&temp_folder).map_err(Failure::other)?,
        temp_folder,
        cpus: weir_probe::allowed_cpus().map_err(Failure::other)?,
        local_ports: weir_probe::local_ports(),
        own_tables: weir_load::descriptors::tables_can_be_own(),
        no_networks: weir_host::may_have_networks()
            .err()
            .map(|error| in_a_line(&error, error.hint())),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    use super::*;
    use crate::local::HangUp;

    #[test]
    fn a_peer_sees_the_end_though_something_goes_on_for_ever() {
        let (mut own, theirs) = UnixStream::pair().unwrap();
        let outbox = Outbox(Arc::new(Mutex::new(Box::new(HangUp::new(theirs)))));
        let options = Options {
            weir: "test".to_owned(),
            launcher: Launcher::new(PathBuf::from("/nowhere/weir")),
            catalog: Catalog::builtin(),
            silence: None,
            stop: Arc::default(),
        };
        let mut server = Server::new(options, outbox, Arc::default());
        server.go_on((1, Duration::ZERO), |_, _| {
            std::thread::sleep(Duration::from_secs(3600));
            raw(&())
        });
        server.end();
        own.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(own.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_number_is_one_requests_at_a_time() {
        let shared = Shared::default();
        let stop = shared.begin(1).unwrap();
        assert!(shared.begin(1).is_none());
        shared.stop(1);
        assert!(stop.load(Ordering::Relaxed));
        let again = shared.begin(1).unwrap();
        shared.stop_all();
        assert!(again.load(Ordering::Relaxed));
        assert!(shared.begin(2).unwrap().load(Ordering::Relaxed), "it is over");
    }
}
