//! An origin server that returns the requests it got and can hold its answers back, and a client that keeps its
//! connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Header fields of a plain request.
pub(crate) const HOST: &str = "Host: weir.test\r\n";

/// An origin server that answers with the head of the request, and holds back its answers to `/held`
/// while it is shut. It lives until the tests end.
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
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
    pub(crate) fn start() -> Gate {
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
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections that ended.
    pub(crate) fn closed(&self) -> usize {
        self.shared.closed.load(Ordering::SeqCst)
    }

    /// Requests that wait for the gate to open.
    pub(crate) fn held(&self) -> usize {
        self.shared.held.load(Ordering::SeqCst)
    }

    pub(crate) fn open(&self) {
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
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{head}"
            );
            stream.write_all(response.as_bytes()).ok()?;
        }
    }
}

/// A client's connection that stays open.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("the proxy accepts");
        Client(BufReader::new(stream))
    }

    /// Connects and sends a request.
    pub(crate) fn asking(address: SocketAddr, target: &str, fields: &str) -> Client {
        let mut client = Client::connect(address);
        client.send(target, fields).expect("the proxy reads");
        client
    }

    pub(crate) fn send(&mut self, target: &str, fields: &str) -> Option<()> {
        let request = format!("GET {target} HTTP/1.1\r\n{fields}\r\n");
        self.0.get_mut().write_all(request.as_bytes()).ok()
    }

    pub(crate) fn head(&mut self) -> Option<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        Some(head)
    }

    /// Reads head and content of the response; `None` if the proxy has closed.
    pub(crate) fn answer(&mut self) -> Option<(String, String)> {
        let head = self.head()?;
        let mut lengths = head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = lengths.next().expect("a response with a length").1;
        let mut content = vec![0; length.parse().expect("a number")];
        self.0.read_exact(&mut content).ok()?;
        Some((head, String::from_utf8(content).expect("text")))
    }

    pub(crate) fn get(&mut self, target: &str) -> Option<(String, String)> {
        self.send(target, HOST)?;
        self.answer()
    }

    /// Waits for the proxy to close; returns true if nothing came before.
    pub(crate) fn reads_to_the_end(&mut self) -> bool {
        let mut unread = Vec::new();
        self.0.read_to_end(&mut unread).is_ok() && unread.is_empty()
    }
}

/// Sends a request for `target` on a thread of its own.
pub(crate) fn ask_aside(
    address: SocketAddr,
    target: &'static str,
) -> JoinHandle<Option<(String, String)>> {
    std::thread::spawn(move || Client::connect(address).get(target))
}
