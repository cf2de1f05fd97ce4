//! Servers to ask: the origin server, and peers that do what no well-behaved server does.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use weir_origin::{Origin, OriginConfig};

/// An origin server on a free port of the loopback interface.
pub(crate) fn origin() -> Origin {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Origin::start(OriginConfig::new(vec![any])).expect("an origin server")
}

/// A server that does with each connection what a script says, one thread for each.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    ended: Arc<AtomicBool>,
    requests: Arc<Mutex<Vec<String>>>,
    clients: Arc<Mutex<Vec<IpAddr>>>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    /// Serves until it is dropped.
    pub(crate) fn start(script: impl Fn(&mut Exchange) + Send + Sync + 'static) -> Peer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let ended = Arc::new(AtomicBool::new(false));
        let requests = Arc::default();
        let clients: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
        let (over, seen) = (Arc::clone(&ended), Arc::clone(&requests));
        let from = Arc::clone(&clients);
        let script = Arc::new(script);
        let serve = move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (script, requests) = (Arc::clone(&script), Arc::clone(&seen));
                let stream = stream.expect("a connection");
                let client = stream.peer_addr().expect("it comes from somewhere");
                from.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(client.ip());
                thread::spawn(move || script(&mut Exchange { stream, requests }));
            }
        };
        Peer {
            address,
            ended,
            requests,
            clients,
            thread: Some(thread::spawn(serve)),
        }
    }

    /// Answers every request with the same bytes, and keeps the connection.
    pub(crate) fn answering(response: &'static [u8]) -> Peer {
        Peer::start(move |exchange| {
            while exchange.read_request() {
                exchange.send(response);
            }
        })
    }

    /// Answers one request with these bytes and closes the connection.
    pub(crate) fn answering_once(response: &'static [u8]) -> Peer {
        Peer::start(move |exchange| {
            if exchange.read_request() {
                exchange.send(response);
            }
        })
    }

    /// Where connections came from so far.
    pub(crate) fn clients(&self) -> Vec<IpAddr> {
        let clients = self.clients.lock();
        clients.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The requests so far, word for word.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread up; it does not matter who it is that comes.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One connection to a peer.
pub(crate) struct Exchange {
    stream: TcpStream,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Exchange {
    /// Reads one request to its end; whether there was one.
    pub(crate) fn read_request(&mut self) -> bool {
        self.request().is_some()
    }

    /// Reads one request to its end, if there is one.
    pub(crate) fn request(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        let mut byte = [0];
        while !is_whole(&bytes) {
            match self.stream.read(&mut byte) {
                Ok(1) => bytes.push(byte[0]),
                _ => return None,
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let requests = self.requests.lock();
        let mut requests = requests.unwrap_or_else(PoisonError::into_inner);
        requests.push(text.clone());
        Some(text)
    }

    /// Sends bytes, at once.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // A client that has had enough is none of the peer's business.
        let _ = self.stream.set_nodelay(true);
        let _ = self.stream.write_all(bytes);
    }

    /// Breaks the connection: the client gets a reset, not an end.
    pub(crate) fn reset(&mut self) {
        set_socket_linger(&self.stream, Some(Duration::ZERO)).expect("linger can be set");
    }

    /// Reads until the client goes away, and never answers.
    pub(crate) fn swallow(&mut self) {
        let mut buffer = [0; 1024];
        while let Ok(1..) = self.stream.read(&mut buffer) {}
    }

    /// Ends this side of the connection and waits for the other side to end.
    pub(crate) fn close(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        self.swallow();
    }
}

/// A head, and as much content as its Content-Length says.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, content)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse().expect("a number"))
    });
    content.len() >= length.unwrap_or(0)
}
