//! A server with faults: every k-th request (or connection) is answered by a fault, all others correctly.
//!
//! A fault uses a [`Wire`], which is TCP, or TLS over it, or over another layer that a fault has put in TCP's place
//! before the handshake.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use weir_http::request::{Progress, RequestParser};
use weir_origin::{Origin, OriginConfig};

/// Response to every request without a fault.
pub const RIGHT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// Bytes of content in [`RIGHT`].
pub const RIGHT_CONTENT: u64 = 2;

/// Starts an origin server without faults on a free port of the loopback interface.
pub fn start_origin() -> Origin {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Origin::start(OriginConfig::new(vec![any])).expect("an origin server")
}

/// Time between checks for the end while a server waits.
const LOOK: Duration = Duration::from_millis(5);

/// Both directions of a connection: TCP itself, or a layer over it.
pub trait Wire: Read + Write + Send {
    /// Returns the TCP connection below.
    fn socket(&self) -> &TcpStream;

    /// Announces the end of the data, if the protocol has a message for that.
    fn farewell(&mut self) {}
}

impl Wire for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Wire for StreamOwned<ServerConnection, Box<dyn Wire>> {
    fn socket(&self) -> &TcpStream {
        self.sock.socket()
    }

    fn farewell(&mut self) {
        self.conn.send_close_notify();
        // The client may have gone.
        let _ = self.flush();
    }
}

/// State of a connection after a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The server continues as without a fault.
    Keep,
    /// The server closes the connection.
    Close,
}

/// A connection that gets a fault.
pub struct Victim {
    pub wire: Box<dyn Wire>,
    /// Last request, verbatim.
    pub request: String,
    /// Bytes received after it.
    rest: Vec<u8>,
    server: Arc<Script>,
}

impl Victim {
    /// Sends bytes at once; returns true if the client still takes any.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.wire.write_all(bytes).is_ok()
    }

    /// Closes with a reset instead of an orderly end.
    pub fn reset(&mut self) -> After {
        set_socket_linger(self.wire.socket(), Some(Duration::ZERO)).expect("linger can be set");
        After::Close
    }

    pub fn reset_after(&mut self, bytes: &[u8]) -> After {
        self.send(bytes);
        self.reset()
    }

    pub fn close_after(&mut self, bytes: &[u8]) -> After {
        self.send(bytes);
        After::Close
    }

    /// Sends bytes, announces their end, and closes.
    pub fn farewell_after(&mut self, bytes: &[u8]) -> After {
        self.send(bytes);
        self.wire.farewell();
        After::Close
    }

    /// Sends bytes, and then neither answers nor closes, until the client does.
    pub fn stall_after(&mut self, bytes: &[u8]) -> After {
        self.send(bytes);
        self.stall()
    }

    /// Sends bytes below TLS, if there is TLS; returns true if the client still takes any.
    pub fn send_below(&mut self, bytes: &[u8]) -> bool {
        self.wire.socket().write_all(bytes).is_ok()
    }

    /// Ends this side alone, and waits for the client to end the other.
    pub fn half_close(&mut self) -> After {
        let _ = self.wire.socket().shutdown(Shutdown::Write);
        self.stall()
    }

    /// Neither answers nor closes, until the client does.
    pub fn stall(&mut self) -> After {
        let mut buffer = [0; 4096];
        while let Ok(1..) = self.wire.read(&mut buffer) {}
        After::Close
    }

    /// Reads one request to its end; returns true if there was one.
    fn read_request(&mut self, parser: &mut RequestParser) -> bool {
        let mut bytes = Vec::new();
        let mut buffer = [0; 64 * 1024];
        loop {
            let fed = parser.feed(&self.rest).expect("weir sends requests");
            bytes.extend(self.rest.drain(..fed.consumed));
            if fed.event != Progress::NeedMore {
                self.request = String::from_utf8_lossy(&bytes).into_owned();
                return true;
            }
            match self.wire.read(&mut buffer) {
                Ok(length @ 1..) => self.rest.extend(&buffer[..length]),
                _ => return false,
            }
        }
    }

    /// Reads and sends nothing until the server ends.
    pub fn ignore(&mut self) -> After {
        while !self.server.counts.over.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
        After::Close
    }
}

/// Numbers of events.
#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    faults: AtomicU64,
    /// True when the server has to end.
    over: AtomicBool,
    /// Requests, verbatim, and the addresses of clients.
    seen: Mutex<(Vec<String>, Vec<IpAddr>)>,
}

impl Counts {
    fn lock(&self) -> MutexGuard<'_, (Vec<String>, Vec<IpAddr>)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Fault = dyn Fn(&mut Victim) -> After + Send + Sync;
type Wrap = dyn Fn(Box<dyn Wire>) -> io::Result<Box<dyn Wire>> + Send + Sync;

/// Unit at which a fault happens, every so many.
#[derive(Clone, Copy)]
enum FaultPeriod {
    Request(u64),
    Connection(u64),
    /// A connection before anything is layered over TCP.
    Handshake(u64),
}

struct Script {
    scheme: &'static str,
    period: FaultPeriod,
    fault: Box<Fault>,
    wrap: Box<Wrap>,
    counts: Counts,
}

/// The server, which ends when it is dropped.
pub struct Faulty {
    pub address: SocketAddr,
    script: Arc<Script>,
    thread: Option<JoinHandle<()>>,
}

impl Faulty {
    /// Starts a server that answers each `period`-th request over all connections with `fault`.
    pub fn requests(
        period: u64,
        fault: impl Fn(&mut Victim) -> After + Send + Sync + 'static,
    ) -> Faulty {
        Faulty::start("http", FaultPeriod::Request(period), Box::new(fault), Box::new(Ok))
    }

    /// Starts a server that answers every request with the same bytes, and keeps the connection.
    pub fn answering(response: &'static [u8]) -> Faulty {
        Faulty::requests(1, |victim| {
            victim.send(response);
            After::Keep
        })
    }

    /// Starts a server with `fault` on each `period`-th connection, before its first request. The very first
    /// connection, by which weir checks for a server, counts.
    pub fn connections(
        period: u64,
        fault: impl Fn(&mut Victim) -> After + Send + Sync + 'static,
    ) -> Faulty {
        Faulty::start("http", FaultPeriod::Connection(period), Box::new(fault), Box::new(Ok))
    }

    /// Starts a server over TLS without faults.
    pub fn secure(config: Arc<ServerConfig>) -> Faulty {
        Faulty::secure_requests(u64::MAX, config, |_| After::Keep)
    }

    /// Like [`Faulty::requests`], over TLS.
    pub fn secure_requests(
        period: u64,
        config: Arc<ServerConfig>,
        fault: impl Fn(&mut Victim) -> After + Send + Sync + 'static,
    ) -> Faulty {
        Faulty::start("https", FaultPeriod::Request(period), Box::new(fault), over(config))
    }

    /// Starts a server over TLS with `fault` on each `period`-th connection before the handshake, which then takes
    /// place if the connection is kept. The very first connection, by which weir checks for a server, counts.
    pub fn handshakes(
        period: u64,
        config: Arc<ServerConfig>,
        fault: impl Fn(&mut Victim) -> After + Send + Sync + 'static,
    ) -> Faulty {
        Faulty::start("https", FaultPeriod::Handshake(period), Box::new(fault), over(config))
    }

    fn start(
        scheme: &'static str,
        period: FaultPeriod,
        fault: Box<Fault>,
        wrap: Box<Wrap>,
    ) -> Faulty {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let counts = Counts::default();
        let script = Arc::new(Script { scheme, period, fault, wrap, counts });
        let shared = Arc::clone(&script);
        let thread = thread::spawn(move || accept(&listener, &shared));
        Faulty { address, script, thread: Some(thread) }
    }

    pub fn scheme(&self) -> &str {
        self.script.scheme
    }

    /// Returns the number of complete requests.
    pub fn request_count(&self) -> u64 {
        self.script.counts.requests.load(Ordering::Relaxed)
    }

    /// Returns the addresses of clients so far.
    pub fn clients(&self) -> Vec<IpAddr> {
        self.script.counts.lock().1.clone()
    }

    /// Returns the requests so far, verbatim.
    pub fn texts(&self) -> Vec<String> {
        self.script.counts.lock().0.clone()
    }

    /// Returns the number of faults so far.
    pub fn faults(&self) -> u64 {
        self.script.counts.faults.load(Ordering::Relaxed)
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.script.counts.over.store(true, Ordering::Relaxed);
        // Wakes the thread up.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns a function that layers TLS over a connection; the handshake takes place at the first read.
fn over(config: Arc<ServerConfig>) -> Box<Wrap> {
    Box::new(move |wire| {
        let tls = ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
        Ok(Box::new(StreamOwned::new(tls, wire)))
    })
}

impl Script {
    fn fail(&self, victim: &mut Victim) -> After {
        self.counts.faults.fetch_add(1, Ordering::Relaxed);
        (self.fault)(victim)
    }
}

fn accept(listener: &TcpListener, script: &Arc<Script>) {
    for stream in listener.incoming() {
        if script.counts.over.load(Ordering::Relaxed) {
            return;
        }
        // A client may be gone before it was accepted.
        let Ok(stream) = stream else { continue };
        let script = Arc::clone(script);
        thread::spawn(move || serve(&script, stream));
    }
}

/// Serves one connection to its end.
fn serve(script: &Arc<Script>, stream: TcpStream) {
    let counts = &script.counts;
    let number = 1 + counts.connections.fetch_add(1, Ordering::Relaxed);
    if stream.set_nodelay(true).is_err() {
        return;
    }
    if let Ok(client) = stream.peer_addr() {
        counts.lock().1.push(client.ip());
    }
    let mut victim = Victim {
        wire: Box::new(stream),
        request: String::new(),
        rest: Vec::new(),
        server: Arc::clone(script),
    };
    if let FaultPeriod::Handshake(period) = script.period
        && number.is_multiple_of(period)
        && script.fail(&mut victim) == After::Close
    {
        return;
    }
    let Ok(wire) = (script.wrap)(victim.wire) else {
        return;
    };
    victim.wire = wire;
    if let FaultPeriod::Connection(period) = script.period
        && number.is_multiple_of(period)
        && script.fail(&mut victim) == After::Close
    {
        return;
    }
    let mut parser = RequestParser::default();
    while victim.read_request(&mut parser) {
        let number = 1 + counts.requests.fetch_add(1, Ordering::Relaxed);
        counts.lock().0.push(victim.request.clone());
        let after = match script.period {
            FaultPeriod::Request(period) if number.is_multiple_of(period) => {
                script.fail(&mut victim)
            }
            _ if victim.send(RIGHT) => After::Keep,
            _ => After::Close,
        };
        if after == After::Close {
            return;
        }
    }
}
