//! Client side of the protocol: numbers requests, and hands each reply to the request that it answers.

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

/// Interval at which a distant agent is pinged.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Interval at which somebody who waits looks whether the question is to be stopped.
const LOOK: Duration = Duration::from_millis(50);

/// Longest silence of a distant agent before it is given up.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Longest time that a responsive distant agent may take to send the next part of an answer. The longest regular gap is
/// one slice, ten minutes at most.
const PATIENCE: Duration = Duration::from_secs(1800);

/// The same as [`PATIENCE`], once an end was requested. The longest regular step is then to end proxies and put
/// settings back.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(30);

/// Longest time that an agent may take to put everything back when its input has ended.
const FAREWELL: Duration = Duration::from_secs(20);

/// Time for which an agent that has been given up is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// A part of the answer to a question.
#[derive(Debug)]
pub enum Part<Q: Question> {
    /// An intermediate part; more parts follow.
    Event(Q::Event),
    /// The last part.
    End(Result<Q::Answer, AgentError>),
}

/// Requests that wait for answers, and the state of the line. Once the agent is gone, no request waits any more.
struct Book {
    waiting: HashMap<u64, Waiting>,
    lost: Option<String>,
    heard: Instant,
    /// Time at which the heartbeat first noticed that an end was requested; `None`: not requested yet.
    ending: Option<Instant>,
}

/// State shared by the threads of a client.
struct Line {
    place: String,
    /// Options of `weir restore` that name this place, for error messages.
    restore: String,
    writer: Mutex<Option<Box<dyn Write + Send>>>,
    book: Mutex<Book>,
    next: AtomicU64,
    /// True if the agent is on another host, so that failures must name the host.
    is_distant: AtomicBool,
    /// Flag that is set when an end is requested.
    stop: OnceLock<Arc<AtomicBool>>,
}

/// Connection to an agent. Dropping it ends the agent, and waits for that.
pub struct Client {
    hello: Hello,
    line: Arc<Line>,
    reader: Option<JoinHandle<()>>,
    reader_tid: Option<Pid>,
    /// Thread that pings a distant agent, until the channel is closed.
    watch: Option<(Sender<()>, JoinHandle<()>)>,
    /// Thread or process that the agent runs in; ends with the client.
    server: Option<Box<dyn Served>>,
}

/// Something that an agent runs in: a thread or a process.
pub trait Served: Send + Sync {
    /// Waits at most so long for the end of an agent whose input has ended, and makes sure of it.
    fn end(self: Box<Self>, at_most: Duration);

    /// Returns the last output on standard error; empty if there is no such output.
    fn words(&self) -> String {
        String::new()
    }

    /// Returns the options of `weir restore` that name this place; `None`: `--host` and the place.
    fn restore(&self) -> Option<String> {
        None
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Client").field("place", &self.line.place).finish_non_exhaustive()
    }
}

impl Client {
    /// Exchanges greetings with an agent on this host and returns its client. `place` is the agent's name in errors.
    ///
    /// # Errors
    /// The peer is not an agent of this protocol version.
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

    /// Returns a client for an agent that has been greeted. `place` is the agent's name in errors.
    pub fn over(
        place: &str,
        hello: Hello,
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
        server: Box<dyn Served>,
    ) -> Client {
        let line = Arc::new(Line {
            place: place.to_owned(),
            restore: server.restore().unwrap_or_else(|| format!("--host {place}")),
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
        Client {
            hello,
            line,
            reader: Some(std::thread::spawn(move || {
                let _ = send.send(rustix::thread::gettid());
                of_reader.listen(reader);
            })),
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

    /// Limits the wait for any answer of a distant agent to half a minute, counted from when `stop` is set.
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

    /// Returns the agent's name in errors.
    pub fn place(&self) -> &str {
        &self.line.place
    }

    /// Returns the agent's greeting.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Restricts the thread that reads the agent's messages on this host to some CPUs. Reading slices takes a while.
    pub fn keep_to(&self, cpus: &CpuSet) {
        if let Some(tid) = self.reader_tid {
            let _ = weir_probe::keep_to(Some(tid), cpus.cpus());
        }
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The agent could not carry out the request, or is gone.
    pub fn ask<Q: Question<Event = Nothing>>(&self, question: Q) -> Result<Q::Answer, AgentError> {
        self.ask_until(question, None)
    }

    /// The same of a question that is stopped once `stop` is set: it is answered with what it has come to.
    ///
    /// # Errors
    /// The errors of [`Client::ask`].
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

    /// Sends a long-running request. The thread that reads replies calls `to` with each part of the answer. Returns the
    /// request's number, for [`Client::stop`].
    ///
    /// # Errors
    /// The agent is gone.
    pub fn begin<Q: Question>(
        &self,
        question: Q,
        mut to: impl FnMut(Part<Q>) + Send + 'static,
    ) -> Result<u64, AgentError> {
        let agent = self.line.place.clone();
        let mut is_over = false;
        let id = self.line.number();
        let mut book = self.line.book();
        if let Some(words) = book.lost.clone() {
            drop(book);
            return Err(self.lost(&words));
        }
        let ask = question.ask();
        let listener = Box::new(move |part| {
            if !is_over {
                let part = understand_part(&agent, part);
                is_over = matches!(part, Part::End(_));
                to(part);
            }
        });
        let waiting = Waiting::now(listener, ask.longest());
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

    /// Requests the early end of a long-running request. Its last part arrives as usual.
    pub fn stop(&self, id: u64) {
        // An agent that is gone has stopped.
        let _ = self.ask(Stop(id));
    }

    /// Measures how far the agent's clock is ahead of this host's. Returns the offset and its largest possible error,
    /// both in nanoseconds. The quickest of several exchanges is used, so the error is at most half of its round trip
    /// (Cristian's algorithm).
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

    /// Adds the last output of the lost agent, or of the program that leads to it, to an error.
    pub fn with_words(&self, error: AgentError) -> AgentError {
        let words = self.server.as_ref().map_or(String::new(), |server| server.words());
        error.after(words.trim())
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

    /// Pings the agent, or gives it up. The second value of the patience applies once an end was requested.
    fn heartbeat(&self, patience: [Duration; 2]) {
        let mut book = self.book();
        if self.stop.get().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
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
        if let Some(limit) = overdue.map(|limit| limit.as_secs()) {
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

    /// Reads and delivers replies until the agent's output ends.
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

    /// Fails all waiting requests with [`AgentError::Lost`].
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
        AgentError::Lost { place: self.place.clone(), words, restore: self.restore.clone() }
    }

    /// Adds the host to a failure if the agent is on another host.
    fn named(&self, failure: Failure) -> Failure {
        let is_distant = self.is_distant.load(Ordering::Relaxed);
        Failure { host: is_distant.then(|| self.place.clone()), ..failure }
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

fn understand_part<Q: Question>(place: &str, part: RawPart) -> Part<Q> {
    match part {
        RawPart::Event(event) => match understand(place, &event) {
            Ok(event) => Part::Event(event),
            Err(error) => Part::End(Err(error)),
        },
        RawPart::Done(answer) => Part::End(understand(place, &answer)),
        RawPart::Failed(error) => Part::End(Err(error)),
    }
}

#[cfg(test)]
mod tests;
