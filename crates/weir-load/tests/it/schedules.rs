//! Servers receive nothing but the requests of the load, whatever they do and whenever they do it.
//!
//! A server draws for each request how much of it to read and what to do then, and compares every byte received on a
//! connection with whole requests of the load, one after the other. Content consists of lines that are requests
//! themselves, so a real server would carry out any misplaced byte.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::net::sockopt;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use weir_load::reactor::uring;
use weir_load::template::Files;
use weir_load::{Flow, Io, Plan, RequestSet, SplitMix64};
use weir_model::load::{Arrivals, Lifetime, RequestSpec};
use weir_model::request::WeightedRequest;
use weir_testkit::tls::{Authority, Key};

use crate::support::measure;

/// Sizes of content, bytes: below and above a slot of io_uring's outbox (16 KiB), two of them, and a socket's send
/// buffer.
const SIZES: [usize; 6] = [0, 900, 16_000, 33_000, 70_000, 2_000_000];

/// Size of a server's receive buffer, bytes: larger content is sent in parts.
const RECEIVE_BUFFER: usize = 8 * 1024;

/// Timeout of the client, shorter than the time for which a server hangs.
const TIMEOUT: Duration = Duration::from_millis(40);

/// Returns the number of requests of one trial; can be raised by the variable WEIR_SCHEDULES for a long run.
fn requests_of_a_trial() -> u64 {
    let requests = std::env::var("WEIR_SCHEDULES").ok();
    requests.and_then(|text| text.parse().ok()).unwrap_or(600)
}

const KEPT: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nok";
const REFUSED: &str =
    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
const LASTS_TO_CLOSE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok";

/// Reaction of a server to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// Reads the whole request and answers.
    Answer,
    /// Sends 100 Continue, reads the whole request and answers.
    Continue,
    /// Answers in the middle of the content and reads on.
    AnswerEarly,
    /// Refuses in the middle of the content, reads on for some bytes, and closes.
    Refuse,
    /// Refuses in the middle of the content, closes only its own side and reads to the end.
    HalfClose,
    /// Answers in the middle of the content; the answer lasts until the close.
    AnswerToClose,
    /// Resets the connection in the middle of the content.
    Reset,
    /// Stops reading until the client's timeout is over.
    Hang,
}

impl Deed {
    const ALL: [Deed; 8] = [
        Deed::Answer,
        Deed::Continue,
        Deed::AnswerEarly,
        Deed::Refuse,
        Deed::HalfClose,
        Deed::AnswerToClose,
        Deed::Reset,
        Deed::Hang,
    ];

    fn draw(random: &mut SplitMix64) -> Deed {
        let rarely = random.next_u64().is_multiple_of(8);
        let most = if rarely { Deed::ALL.len() } else { Deed::ALL.len() - 1 };
        Deed::ALL[(random.next_u64() % most as u64) as usize]
    }
}

/// Returns requests of all sizes, and the bytes of each on the wire.
fn requests() -> (RequestSet, Vec<Vec<u8>>) {
    let specs: Vec<_> = SIZES
        .iter()
        .map(|size| {
            let line = b"GET /not-asked HTTP/1.1\r\nHost: x\r\n\r\n";
            WeightedRequest::single(RequestSpec {
                method: "POST".to_owned(),
                content: line.iter().copied().cycle().take(*size).collect(),
                ..RequestSpec::get(&format!("/{size}"))
            })
        })
        .collect();
    let set = RequestSet::weighted(&specs, "x", &mut Files::default()).unwrap();
    let wire =
        (0..SIZES.len() as u32).map(|at| set.get(at).template.fixed().unwrap().to_vec()).collect();
    (set, wire)
}

/// A server whose reactions are determined by a seed.
struct Server {
    wire: Vec<Vec<u8>>,
    tls: Option<Arc<ServerConfig>>,
    seed: u64,
    /// Number of requests that have begun.
    begun: AtomicU64,
    /// Received bytes that belong to no request of the load, with the reactions before.
    strange: Mutex<Vec<String>>,
}

impl Server {
    fn start(self: Arc<Server>) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BUFFER).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                let server = self.clone();
                // Either side may have enough at any moment, which is no error.
                std::thread::spawn(move || server.serve(stream, number as u64).is_ok());
            }
        });
        address
    }

    fn serve(&self, stream: TcpStream, number: u64) -> io::Result<()> {
        stream.set_read_timeout(Some(10 * TIMEOUT))?;
        let socket = stream.try_clone()?;
        let channel: Box<dyn Channel> = match &self.tls {
            None => Box::new(stream),
            Some(config) => {
                let session = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
                Box::new(StreamOwned::new(session, stream))
            }
        };
        let mut connection = Connection {
            server: self,
            channel: BufReader::new(channel),
            socket,
            random: SplitMix64::new(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            deeds: Vec::new(),
        };
        while connection.serve_request()? {}
        Ok(())
    }
}

trait Channel: Read + Write {}
impl<T: Read + Write> Channel for T {}

/// A connection from the server's side.
struct Connection<'a> {
    server: &'a Server,
    channel: BufReader<Box<dyn Channel>>,
    socket: TcpStream,
    random: SplitMix64,
    deeds: Vec<Deed>,
}

impl<'a> Connection<'a> {
    /// Handles one request; returns true if another may follow.
    fn serve_request(&mut self) -> io::Result<bool> {
        let content = self.head()?;
        let deed = Deed::draw(&mut self.random);
        self.deeds.push(deed);
        let (early, rest) = self.split(content);
        match deed {
            Deed::Answer | Deed::Continue => {
                if deed == Deed::Continue {
                    self.say("HTTP/1.1 100 Continue\r\n\r\n")?;
                }
                self.expect(content)?;
                self.say(KEPT)?;
            }
            Deed::AnswerEarly => {
                self.expect(early)?;
                self.say(KEPT)?;
                self.expect(rest)?;
            }
            Deed::Refuse | Deed::HalfClose | Deed::AnswerToClose => {
                self.expect(early)?;
                self.say(match deed {
                    Deed::AnswerToClose => LASTS_TO_CLOSE,
                    _ => REFUSED,
                })?;
                if deed == Deed::HalfClose {
                    self.socket.shutdown(Shutdown::Write)?;
                    self.expect(rest)?;
                } else {
                    let (some, _) = self.split(rest);
                    self.expect(some)?;
                }
                return Ok(false);
            }
            Deed::Reset => {
                self.expect(early)?;
                sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO))?;
                return Ok(false);
            }
            Deed::Hang => {
                self.expect(early)?;
                std::thread::sleep(2 * TIMEOUT);
                self.expect(rest)?;
            }
        }
        Ok(true)
    }

    fn split<'b>(&mut self, bytes: &'b [u8]) -> (&'b [u8], &'b [u8]) {
        let at = self.random.next_u64() % (bytes.len() as u64 + 1);
        bytes.split_at(at as usize)
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.channel.get_mut().write_all(text.as_bytes())?;
        self.channel.get_mut().flush()
    }

    /// Reads a head, which must be one of the load's; returns the content that must follow.
    fn head(&mut self) -> io::Result<&'a [u8]> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let read = self.channel.read_until(b'\n', &mut head)?;
            if !self.server.wire.iter().any(|whole| whole.starts_with(&head)) {
                return Err(self.strange(&head));
            }
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.server.begun.fetch_add(1, Ordering::Relaxed);
        let mut contents = self.server.wire.iter();
        let content = contents.find_map(|whole| whole.strip_prefix(head.as_slice()));
        Ok(content.unwrap_or_default())
    }

    /// Reads the expected bytes, in any number of parts.
    fn expect(&mut self, mut expected: &[u8]) -> io::Result<()> {
        while !expected.is_empty() {
            let came = self.channel.fill_buf()?;
            if came.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let part = &came[..came.len().min(expected.len())];
            let Some(left) = expected.strip_prefix(part) else {
                let copy = part.to_vec();
                return Err(self.strange(&copy));
            };
            let length = part.len();
            self.channel.consume(length);
            expected = left;
        }
        Ok(())
    }

    /// Records unexpected bytes and returns an error.
    fn strange(&self, bytes: &[u8]) -> io::Error {
        let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        let note = format!("{begin:?} after {:?}", self.deeds);
        self.server.strange.lock().unwrap().push(note);
        io::ErrorKind::InvalidData.into()
    }
}

/// Runs one trial and checks the bytes that its server received.
fn try_out(io: Io, tls: bool, lifetime: Lifetime, pipeline: u16, seed: u64) {
    let case = format!("{}, TLS {tls}, {lifetime:?}, pipeline {pipeline}, seed {seed}", io.name());
    let (requests, wire) = requests();
    let authority = Authority::new();
    let server = Arc::new(Server {
        wire,
        tls: tls.then(|| Arc::new(authority.server(Key::P256))),
        seed,
        begun: AtomicU64::new(0),
        strange: Mutex::default(),
    });
    let limit = requests_of_a_trial();
    let mut flow = Flow::new(server.clone().start(), requests, 16, Arrivals::Closed);
    flow.tls = tls.then(|| Arc::new(authority.connector()));
    (flow.lifetime, flow.pipeline) = (lifetime, pipeline);
    (flow.timeout, flow.limit) = (TIMEOUT, Some(limit));
    let plan = Plan::single(flow, Plan::seconds(Duration::ZERO, Duration::from_secs(600)), io);
    measure(&plan).unwrap();

    let strange = server.strange.lock().unwrap();
    assert!(strange.is_empty(), "{case}: {} times, first {}", strange.len(), strange[0]);
    let begun = server.begun.load(Ordering::Relaxed);
    assert!(begun <= limit, "{case}: {begun} requests of {limit}");
    // What is pipelined behind a refused request never begins.
    assert!(begun >= limit / (2 * u64::from(pipeline)), "{case}: {begun} requests of {limit}");
}

#[test]
fn servers_see_the_requests_of_the_load_and_no_others() {
    let ios = [Some(Io::Epoll), uring::probe().is_ok().then_some(Io::Uring)];
    let kinds = [(Lifetime::Kept, 1), (Lifetime::Kept, 4), (Lifetime::Request, 1)];
    for (seed, (lifetime, pipeline)) in (1..).zip(kinds) {
        for io in ios.into_iter().flatten() {
            for tls in [false, true] {
                try_out(io, tls, lifetime, pipeline, seed);
            }
        }
    }
}
