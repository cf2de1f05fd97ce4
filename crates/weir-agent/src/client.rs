//! The asking side: requests with numbers, and replies that find who asked.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use weir_model::quantity::CpuSet;

use crate::frame::{self, FrameError};
use crate::hello::{self, Hello, HelloError};
use crate::message::{Body, Clock, Failure, Nothing, Ping, Question, Reply, Request, Stop};

mod error;
mod waiting;

pub use error::AgentError;
use error::understand;
use waiting::{RawPart, Waiting};

/// How often a distant agent is asked whether it lives.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// How often somebody who waits looks whether the question is to be stopped.
const LOOK: Duration = Duration::from_millis(50);

/// How long a distant agent may be silent before it is given up.
pub const SILENCE: Duration = Duration::from_secs(10);

/// How long a distant agent that lives may tell nothing of what it was asked. What takes longest is a slice,
/// ten minutes at most.
const PATIENCE: Duration = Duration::from_secs(1800);

/// The same once somebody has asked for an end: what takes longest is to end proxies and put settings back.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(30);

/// How long an agent may take to put everything back when its input has ended.
const FAREWELL: Duration = Duration::from_secs(20);

/// How long an agent that has been given up is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// A part of the answer to a question.
#[derive(Debug)]
pub enum Part<Q: Question> {
    /// More is to come.
    Event(Q::Event),
    /// This is all.
    End(Result<Q::Answer, AgentError>),
}

/// Who waits for what; nobody any more once the agent is gone.
struct Book {
    waiting: HashMap<u64, Waiting>,
    lost: Option<String>,
    heard: Instant,
    /// Since when an end is asked for, as far as anybody has looked.
    ending: Option<Instant>,
}

/// What the threads of a client share.
struct Line {
    place: String,
    /// The options of `weir restore` for what may be left there.
    restore: String,
    writer: Mutex<Option<Box<dyn Write + Send>>>,
    book: Mutex<Book>,
    next: AtomicU64,
    /// Whether it is another host's, so that a failure must say whose.
    is_distant: AtomicBool,
    /// Set when somebody asks for an end.
    stop: OnceLock<Arc<AtomicBool>>,
}

/// An agent that can be asked. When it is dropped the agent is told to end, and is waited for.
pub struct Client {
    hello: Hello,
    line: Arc<Line>,
    reader: Option<JoinHandle<()>>,
    reader_tid: Option<Pid>,
    /// Keeps an eye on a distant agent as long as the channel is open.
    watch: Option<(Sender<()>, JoinHandle<()>)>,
    /// Ends with the client: what the agent runs in.
    server: Option<Box<dyn Served>>,
}

/// What an agent runs in: a thread, a process.
pub trait Served: Send + Sync {
    /// Waits at most so long for the end of an agent whose input has ended, and makes sure of it.
    fn end(self: Box<Self>, at_most: Duration);

    /// What it said on its standard error last; empty when there is no such thing.
    fn words(&self) -> String {
        String::new()
    }

    /// The options of `weir restore` for what may be left there; `None`: `--host` and the place.
    fn restore(&self) -> Option<String> {
        None
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Client")
            .field("place", &self.line.place)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Greets an agent on this host and takes charge of it. `place` is what errors call it.
    ///
    /// # Errors
    /// What answers is no agent of this protocol.
    pub fn greet(
        place: &str,
        weir: &str,
        mut reader: impl Read + Send + 'static,
        mut writer: impl Write + Send + 'static,
        server: Box<dyn Served>,
    ) -> Result<Client, HelloError> {
        let hello = hello::greet(&mut reader, &mut writer, weir)?;
        Ok(Client::over(place, hello, reader, writer, server))
    }

    /// Takes charge of an agent that has been greeted.
    pub fn over(
        place: &str,
        hello: Hello,
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
        server: Box<dyn Served>,
    ) -> Client {
        let line = Arc::new(Line {
            place: place.to_owned(),
            restore: server
                .restore()
                .unwrap_or_else(|| format!("--host {place}")),
            writer: Mutex::new(Some(Box::new(writer))),
            book: Mutex::new(Book {
                waiting: HashMap::new(),
                lost: None,
                heard: Instant::now(),
                ending: None,
            }),
            next: AtomicU64::new(1),
            is_distant: AtomicBool::new(false),
            stop: OnceLock::new(),
        });
        let of_reader = Arc::clone(&line);
        let (send, tid) = channel();
        let listen = move || {
            let _ = send.send(rustix::thread::gettid());
            of_reader.listen(reader);
        };
        Client {
            hello,
            line,
            reader: Some(std::thread::spawn(listen)),
            reader_tid: tid.recv().ok(),
            watch: None,
            server: Some(server),
        }
    }

    /// Has an eye on an agent that may vanish without a word, as one on another host can: it is asked
    /// every two seconds whether it lives, and given up after [`SILENCE`]; after half an hour, too, in which it
    /// lives and tells nothing of what it was asked, and soon after the time that a load takes ([`Ask::longest`]).
    pub fn distant(self) -> Client {
        self.watched(HEARTBEAT, [PATIENCE, PATIENCE_AT_THE_END])
    }

    /// Waits half a minute at most for any answer of a distant agent from when `stop` is set.
    pub fn until(self, stop: &Arc<AtomicBool>) -> Client {
        let _ = self.line.stop.set(Arc::clone(stop));
        self
    }

    fn watched(mut self, heartbeat: Duration, patience: [Duration; 2]) -> Client {
        self.line.is_distant.store(true, Ordering::Relaxed);
        let (open, closed) = channel::<()>();
        let line = Arc::clone(&self.line);
        let watch = std::thread::spawn(move || {
            while closed.recv_timeout(heartbeat) == Err(RecvTimeoutError::Timeout) {
                line.heartbeat(patience);
            }
        });
        self.watch = Some((open, watch));
        self
    }

    /// What errors call it.
    pub fn place(&self) -> &str {
        &self.line.place
    }

    /// What the agent said of itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Keeps what reads the agent's messages on this host to some CPUs: slices take a while to read.
    pub fn keep_to(&self, cpus: &CpuSet) {
        if let Some(tid) = self.reader_tid {
            let _ = weir_probe::keep_to(Some(tid), cpus.cpus());
        }
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// The agent could not do it, or is gone.
    pub fn ask<Q: Question<Event = Nothing>>(&self, question: Q) -> Result<Q::Answer, AgentError> {
        self.ask_until(question, None)
    }

    /// The same of a question that is stopped once `stop` is set: it is answered with what it has come to.
    ///
    /// # Errors
    /// Those of [`Client::ask`].
    pub fn ask_until<Q: Question<Event = Nothing>>(
        &self,
        question: Q,
        mut stop: Option<&AtomicBool>,
    ) -> Result<Q::Answer, AgentError> {
        let (to, from) = channel();
        let id = self.begin(question, move |part| match part {
            Part::Event(nothing) => match nothing {},
            // Whoever asked is there: it waits.
            Part::End(end) => drop(to.send(end)),
        })?;
        let end = loop {
            match from.recv_timeout(stop.map_or(Duration::MAX, |_| LOOK)) {
                Ok(end) => break end,
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost("it ended")),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.take_if(|stop| stop.load(Ordering::Relaxed)).is_some() {
                self.stop(id);
            }
        };
        end.map_err(|error| self.with_words(error))
    }

    /// Asks for something that goes on; `to` is called with its parts by the thread that reads them. Gives the
    /// request's number, for [`Client::stop`].
    ///
    /// # Errors
    /// The agent is gone.
    pub fn begin<Q: Question>(
        &self,
        question: Q,
        mut to: impl FnMut(Part<Q>) + Send + 'static,
    ) -> Result<u64, AgentError> {
        let place = self.line.place.clone();
        let mut is_over = false;
        let listener = move |part| {
            if is_over {
                return;
            }
            let part = match part {
                RawPart::Event(event) => match understand(&place, &event) {
                    Ok(event) => Part::Event(event),
                    Err(error) => Part::End(Err(error)),
                },
                RawPart::Done(answer) => Part::End(understand(&place, &answer)),
                RawPart::Failed(error) => Part::End(Err(error)),
            };
            is_over = matches!(part, Part::End(_));
            to(part);
        };
        let id = self.line.number();
        let mut book = self.line.book();
        if let Some(words) = book.lost.clone() {
            drop(book);
            return Err(self.lost(&words));
        }
        let ask = question.ask();
        let waiting = Waiting::now(Box::new(listener), ask.longest());
        book.waiting.insert(id, waiting);
        drop(book);
        self.line.send(&Request { id, ask }).map_err(|error| {
            let mut book = self.line.book();
            book.waiting.remove(&id);
            // Why it went away is better known to whoever reads.
            let words = book.lost.clone();
            drop(book);
            self.lost(&words.unwrap_or_else(|| error.to_string()))
        })?;
        Ok(id)
    }

    /// Asks a request that goes on to end early. Its end comes as for any other.
    pub fn stop(&self, id: u64) {
        // An agent that is gone has stopped.
        let _ = self.ask(Stop(id));
    }

    /// How far the agent's clock is ahead of this host's, and by how much that may be wrong, in nanoseconds: from the
    /// quickest of some exchanges, so it is off by half of a round trip at most (Cristian's algorithm).
    ///
    /// # Errors
    /// The agent is gone.
    pub fn clock_offset_ns(&self) -> Result<(i64, u64), AgentError> {
        let mut best: Option<(u64, i64)> = None;
        for _ in 0..16 {
            let before = crate::monotonic_ns();
            let theirs: u64 = self.ask(Clock)?;
            let after = crate::monotonic_ns();
            let trip = after - before;
            // Its clock may show anything.
            let offset = theirs.wrapping_sub(before + trip / 2).cast_signed();
            if best.is_none_or(|(least, _)| trip < least) {
                best = Some((trip, offset));
            }
        }
        Ok(best.map_or((0, 0), |(trip, offset)| (offset, trip.div_ceil(2))))
    }

    fn lost(&self, words: &str) -> AgentError {
        self.with_words(self.line.lost(words.to_owned()))
    }

    /// An error with what the lost agent, or what led to it, has said last.
    pub fn with_words(&self, error: AgentError) -> AgentError {
        let said = self
            .server
            .as_ref()
            .map_or(String::new(), |server| server.words());
        error.after(said.trim())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some((open, watch)) = self.watch.take() {
            drop(open);
            let _ = watch.join();
        }
        // The end of its input is what ends an agent.
        *self.line.writer() = None;
        let is_lost = self.line.book().lost.is_some();
        if let Some(server) = self.server.take() {
            server.end(if is_lost { GRACE } else { FAREWELL });
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Line {
    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Option<Box<dyn Write + Send>>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, request: &Request) -> Result<(), FrameError> {
        match self.writer().as_mut() {
            Some(writer) => frame::write(writer, request),
            None => Err(io::Error::from(io::ErrorKind::BrokenPipe).into()),
        }
    }

    /// Lets the agent say that it lives, or gives it up. The second patience is that for the end.
    fn heartbeat(&self, patience: [Duration; 2]) {
        let mut book = self.book();
        if self
            .stop
            .get()
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
        {
            book.ending.get_or_insert_with(Instant::now);
        }
        let is_silent = book.heard.elapsed() > SILENCE;
        let mut waiting = book.waiting.values();
        let overdue = waiting.find_map(|waiting| waiting.overdue(book.ending, patience));
        drop(book);
        if is_silent {
            let limit = SILENCE.as_secs();
            return self.give_up(&format!("nothing was heard of it for {limit} s"));
        }
        if let Some(limit) = overdue {
            let limit = limit.as_secs();
            return self.give_up(&format!("it did not answer a request for {limit} s"));
        }
        // Somebody who writes for long may be stuck in it; that must not hold this up.
        if let Ok(mut writer) = self.writer.try_lock()
            && let Some(writer) = writer.as_mut()
        {
            let (id, ask) = (self.number(), Ping.ask());
            // That it comes is enough.
            let waiting = Waiting::now(Box::new(drop), None);
            self.book().waiting.insert(id, waiting);
            let _ = frame::write(writer, &Request { id, ask });
        }
    }

    /// Reads replies until there are no more.
    fn listen(&self, mut reader: impl Read) {
        let words = loop {
            match frame::read::<Reply>(&mut reader) {
                Ok(Some(reply)) => {
                    let id = reply.id;
                    if !self.deliver(reply) {
                        break format!("it answered request {id}, which waits for no answer");
                    }
                }
                Ok(None) => break "it ended".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        self.give_up(&words);
    }

    /// Tells everybody who waits that there is nothing to wait for.
    fn give_up(&self, words: &str) {
        let mut book = self.book();
        let words = book.lost.get_or_insert_with(|| words.to_owned()).clone();
        let waiting: Vec<Waiting> = book.waiting.drain().map(|(_, waiting)| waiting).collect();
        // A listener may ask for more.
        drop(book);
        for Waiting { mut to, .. } in waiting {
            to(RawPart::Failed(self.lost(words.clone())));
        }
    }

    fn lost(&self, words: String) -> AgentError {
        AgentError::Lost {
            place: self.place.clone(),
            words,
            restore: self.restore.clone(),
        }
    }

    /// A failure on another host names it.
    fn named(&self, failure: Failure) -> Failure {
        let is_distant = self.is_distant.load(Ordering::Relaxed);
        Failure {
            host: is_distant.then(|| self.place.clone()),
            ..failure
        }
    }

    /// Hands a part on to whoever waits for it. `false`: nobody does, so it is no sign of life either.
    fn deliver(&self, reply: Reply) -> bool {
        let mut book = self.book();
        let Some(Waiting { mut to, due, .. }) = book.waiting.remove(&reply.id) else {
            return false;
        };
        book.heard = Instant::now();
        drop(book);
        match reply.body {
            Body::Event(event) => {
                to(RawPart::Event(event));
                let mut book = self.book();
                // The agent may have been given up meanwhile.
                match book.lost.clone() {
                    None => {
                        let since = Instant::now();
                        book.waiting.insert(reply.id, Waiting { to, since, due });
                    }
                    Some(words) => {
                        drop(book);
                        to(RawPart::Failed(self.lost(words)));
                    }
                }
            }
            Body::Done(answer) => to(RawPart::Done(answer)),
            Body::Failed(failure) => to(RawPart::Failed(self.named(failure).into())),
        }
        true
    }
}

#[cfg(test)]
mod tests;
