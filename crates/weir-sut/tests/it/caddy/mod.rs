//! The real Caddy: what weir writes for it, what it serves with that, and its begin and end.

mod life;
mod serving;
mod settings;
mod tls;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use weir_model::study::ProxyKind;
use weir_sut::Proxy;

use crate::setup::{Arm, Changes, Setup, program};

fn caddy() -> Arc<dyn Proxy> {
    program(ProxyKind::Caddy)
}

/// A file server of a page of ten bytes.
fn files(changes: Changes<'_>) -> Setup<'_> {
    Setup::files(ProxyKind::Caddy, changes, 10)
}

fn proxy(changes: Changes<'_>, origin: SocketAddr) -> Setup<'_> {
    Setup::proxy(ProxyKind::Caddy, changes, origin)
}

fn start_proxy(changes: Changes<'_>, origin: &Gate) -> Arm {
    proxy(changes, origin.address).start()
}

/// An origin server that answers with the head of the request, and holds back its answers to `/held`
/// while it is shut. It lives until the tests end.
struct Gate {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    accepted: AtomicUsize,
    closed: AtomicUsize,
    held: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn start() -> Gate {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port can be had");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::<Shared>::default();
        let all = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                all.accepted.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&all);
                std::thread::spawn(move || {
                    shared.answer(stream);
                    shared.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Gate { address, shared }
    }

    /// Connections so far.
    fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections that ended.
    fn closed(&self) -> usize {
        self.shared.closed.load(Ordering::SeqCst)
    }

    /// Requests that wait for the gate to open.
    fn held(&self) -> usize {
        self.shared.held.load(Ordering::SeqCst)
    }

    fn open(&self) {
        *self.shared.is_open.lock().expect("nobody panicked") = true;
        self.shared.opened.notify_all();
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
        loop {
            let mut head = String::new();
            loop {
                let line = lines.next()?.ok()?;
                if line.is_empty() {
                    break;
                }
                head += &format!("{line}\n");
            }
            if head.starts_with("GET /held ") {
                self.held.fetch_add(1, Ordering::SeqCst);
                let mut is_open = self.is_open.lock().ok()?;
                while !*is_open {
                    is_open = self.opened.wait(is_open).ok()?;
                }
            }
            let length = head.len();
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{head}");
            stream.write_all(response.as_bytes()).ok()?;
        }
    }
}

/// A client's connection that stays open.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(address: SocketAddr) -> Client {
        Client(BufReader::new(
            TcpStream::connect(address).expect("the proxy accepts"),
        ))
    }

    /// Head and content of the response; `None` when the proxy has closed.
    fn get(&mut self, target: &str) -> Option<(String, String)> {
        let request = format!("GET {target} HTTP/1.1\r\nHost: weir.test\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes()).ok()?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .expect("a response with a length");
        let mut content = vec![0; length.parse().expect("a number")];
        self.0.read_exact(&mut content).ok()?;
        Some((head, String::from_utf8(content).expect("text")))
    }

    /// Waits for the proxy to close.
    fn reads_to_the_end(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).is_ok() && rest.is_empty()
    }
}

/// Asks for `target` in a thread of its own.
fn ask_aside(
    address: SocketAddr,
    target: &'static str,
) -> std::thread::JoinHandle<Option<(String, String)>> {
    std::thread::spawn(move || Client::connect(address).get(target))
}
