//! The asking side: requests with numbers, and replies that find who asked.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use weir_model::quantity::CpuSet;

use crate::frame::{self, FrameError};
use crate::hello::{self, Hello, HelloError};
use crate::message::{Ask, Body, Failure, Reply, Request};

/// How often a distant agent is asked whether it lives.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// How long a distant agent may be silent before it is given up.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Why an agent did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AgentError {
    /// It tried, and says why it could not.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// It is not there any more.
    #[error("the agent on {place} is gone: {words}")]
    Lost {
        /// Where it was.
        place: String,
        /// What was seen.
        words: String,
    },
    /// It answers something else than it was asked: a mistake of weir's.
    #[error("the agent on {place} answers what nobody asked: {words}")]
    Confused {
        /// Where it is.
        place: String,
        /// What was wrong.
        words: String,
    },
}

impl AgentError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            AgentError::Failed(failure) => failure.hint.clone(),
            AgentError::Lost { place, .. } => Some(format!(
                "when the host is back, `weir restore --host {place}` shows whether anything is left \
                 there; the agent puts everything back by itself when it hears nothing any more"
            )),
            AgentError::Confused { .. } => None,
        }
    }
}

/// A part of the answer to a request that goes on.
#[derive(Debug)]
pub struct Part {
    /// The tag that the request was given.
    pub tag: usize,
    /// What came.
    pub body: Result<PartBody, AgentError>,
}

/// A part of an answer.
#[derive(Debug)]
pub enum PartBody {
    /// More is to come.
    Event(Box<RawValue>),
    /// This is all.
    Done(Box<RawValue>),
}

/// Where the replies to one request go.
struct Waiting {
    tag: usize,
    to: Sender<Part>,
}

/// Who waits for what; nobody any more once the agent is gone.
#[derive(Default)]
struct Book {
    waiting: HashMap<u64, Waiting>,
    lost: Option<String>,
    heard: Option<Instant>,
}

/// An agent that can be asked. When it is dropped the agent is told to end, and is waited for.
pub struct Client {
    place: String,
    hello: Hello,
    writer: Mutex<Option<Box<dyn Write + Send>>>,
    book: Arc<Mutex<Book>>,
    next: AtomicU64,
    reader: Option<JoinHandle<()>>,
    reader_tid: Option<Pid>,
    /// Ends with the client: what the agent runs in.
    server: Option<Box<dyn Served>>,
}

/// What an agent runs in: a thread, a process.
pub trait Served: Send + Sync {
    /// Waits for the end of an agent whose input has ended, within bounds, and makes sure of it.
    fn end(self: Box<Self>);

    /// What it said on its standard error last; empty when there is no such thing.
    fn words(&self) -> String {
        String::new()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Client")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Greets an agent and takes charge of it. `place` is what errors call it.
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
        let book = Arc::new(Mutex::new(Book::default()));
        let (of_reader, named) = (Arc::clone(&book), place.to_owned());
        let (send, tid) = channel();
        let listen = move || {
            let _ = send.send(rustix::thread::gettid());
            listen(&named, reader, &of_reader);
        };
        Client {
            place: place.to_owned(),
            hello,
            writer: Mutex::new(Some(Box::new(writer))),
            book,
            next: AtomicU64::new(1),
            reader: Some(std::thread::spawn(listen)),
            reader_tid: tid.recv().ok(),
            server: Some(server),
        }
    }

    /// What errors call it.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What the agent said of itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Keeps what reads the agent's messages on this host to some CPUs: slices take a while to read.
    pub fn keep_to(&self, cpus: &CpuSet) {
        if let Some(tid) = self.reader_tid {
            crate::keep_to(Some(tid), cpus);
        }
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// The agent could not do it, or is gone.
    pub fn ask<A: DeserializeOwned>(&self, ask: Ask) -> Result<A, AgentError> {
        let (to, from) = channel();
        self.begin(ask, 0, to)?;
        loop {
            let part = self.wait(&from)?;
            match part.body? {
                PartBody::Done(answer) => return self.understand(&answer),
                PartBody::Event(_) => {}
            }
        }
    }

    /// Asks for something that goes on; its parts go to `to` with this tag. Gives the request's
    /// number, for [`Client::stop`].
    ///
    /// # Errors
    /// The agent is gone.
    pub fn begin(&self, ask: Ask, tag: usize, to: Sender<Part>) -> Result<u64, AgentError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut book = lock(&self.book);
        if let Some(words) = &book.lost {
            return Err(self.lost(words));
        }
        book.waiting.insert(id, Waiting { tag, to });
        drop(book);
        match self.send(&Request { id, ask }) {
            Ok(()) => Ok(id),
            Err(error) => {
                lock(&self.book).waiting.remove(&id);
                // Why it went away is better known to whoever reads.
                let words = lock(&self.book).lost.clone();
                Err(self.lost(&words.unwrap_or_else(|| error.to_string())))
            }
        }
    }

    /// Asks a request that goes on to end early. Its end comes as for any other.
    pub fn stop(&self, id: u64) {
        // An agent that is gone has stopped.
        let _ = self.ask::<()>(Ask::Stop(id));
    }

    /// What a part holds.
    ///
    /// # Errors
    /// Something else: a mistake of weir's.
    pub fn understand<A: DeserializeOwned>(&self, value: &RawValue) -> Result<A, AgentError> {
        serde_json::from_str(value.get()).map_err(|error| AgentError::Confused {
            place: self.place.clone(),
            words: error.to_string(),
        })
    }

    /// How far the agent's clock is ahead of this host's, in nanoseconds: from the quickest of some
    /// exchanges, so it is off by half of a round trip at most (Cristian's algorithm).
    ///
    /// # Errors
    /// The agent is gone.
    pub fn clock_offset_ns(&self) -> Result<i64, AgentError> {
        let mut best: Option<(u64, i64)> = None;
        for _ in 0..16 {
            let before = crate::monotonic_ns();
            let theirs: u64 = self.ask(Ask::Clock)?;
            let after = crate::monotonic_ns();
            let trip = after - before;
            let offset = theirs as i64 - (before + trip / 2) as i64;
            if best.is_none_or(|(least, _)| trip < least) {
                best = Some((trip, offset));
            }
        }
        Ok(best.map_or(0, |(_, offset)| offset))
    }

    fn send(&self, request: &Request) -> Result<(), FrameError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match writer.as_mut() {
            Some(writer) => frame::write(writer, request),
            None => Err(io::Error::from(io::ErrorKind::BrokenPipe).into()),
        }
    }

    /// Waits for a part, and has an eye on the agent meanwhile.
    fn wait(&self, from: &Receiver<Part>) -> Result<Part, AgentError> {
        loop {
            match from.recv_timeout(HEARTBEAT) {
                Ok(part) => return Ok(part),
                Err(RecvTimeoutError::Timeout) => self.heartbeat()?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost("it ended")),
            }
        }
    }

    /// Lets the agent say that it lives. Whoever waits for parts of something that goes on calls this
    /// every second or two.
    ///
    /// # Errors
    /// Nothing has been heard of it for [`SILENCE`].
    pub fn heartbeat(&self) -> Result<(), AgentError> {
        let mut book = lock(&self.book);
        let heard = *book.heard.get_or_insert_with(Instant::now);
        if let Some(words) = &book.lost {
            return Err(self.lost(words));
        }
        if heard.elapsed() > SILENCE {
            let words = format!("nothing was heard of it for {} s", SILENCE.as_secs());
            book.lost = Some(words.clone());
            return Err(self.lost(&words));
        }
        drop(book);
        // Nobody waits for this one's reply: that anything comes is enough.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let ping = Request { id, ask: Ask::Ping };
        self.send(&ping)
            .map_err(|error| self.lost(&error.to_string()))
    }

    fn lost(&self, words: &str) -> AgentError {
        let said = self
            .server
            .as_ref()
            .map_or(String::new(), |server| server.words());
        let words = match said.trim() {
            "" => words.to_owned(),
            said => format!("{words}\n{said}"),
        };
        AgentError::Lost {
            place: self.place.clone(),
            words,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The end of its input is what ends an agent.
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(server) = self.server.take() {
            server.end();
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads replies until there are no more, and tells everybody who waits then.
fn listen(place: &str, mut reader: impl Read, book: &Mutex<Book>) {
    let words = loop {
        match frame::read::<Reply>(&mut reader) {
            Ok(Some(reply)) => deliver(reply, book),
            Ok(None) => break "it ended".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    let mut book = lock(book);
    let words = book.lost.get_or_insert(words).clone();
    for (_, waiting) in book.waiting.drain() {
        let (place, words) = (place.to_owned(), words.clone());
        let body = Err(AgentError::Lost { place, words });
        let tag = waiting.tag;
        // Whoever waited may have given up.
        let _ = waiting.to.send(Part { tag, body });
    }
}

fn deliver(reply: Reply, book: &Mutex<Book>) {
    let mut book = lock(book);
    book.heard = Some(Instant::now());
    let is_end = !matches!(reply.body, Body::Event(_));
    let to = match is_end {
        true => book.waiting.remove(&reply.id),
        false => book.waiting.get(&reply.id).map(|waiting| Waiting {
            tag: waiting.tag,
            to: waiting.to.clone(),
        }),
    };
    drop(book);
    // A reply that nobody waits for: a heartbeat's.
    let Some(Waiting { tag, to }) = to else {
        return;
    };
    let body = match reply.body {
        Body::Event(event) => Ok(PartBody::Event(event)),
        Body::Done(answer) => Ok(PartBody::Done(answer)),
        Body::Failed(failure) => Err(AgentError::Failed(failure)),
    };
    let _ = to.send(Part { tag, body });
}
