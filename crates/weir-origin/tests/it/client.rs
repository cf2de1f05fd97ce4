//! A blocking client, and servers for it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use weir_http::response::{Progress, ResponseEnd, ResponseParser};
use weir_origin::{Counters, Origin, OriginConfig};

/// An address with any free port of the loopback interface.
pub(crate) fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Starts a server with one listener; `change` adapts its configuration.
pub(crate) fn start(change: impl FnOnce(&mut OriginConfig)) -> Origin {
    let mut config = OriginConfig::new(vec![any()]);
    change(&mut config);
    Origin::start(config).expect("the server starts")
}

/// Waits until the counters satisfy `done`: they are written after the client has its bytes.
pub(crate) fn await_counters(origin: &Origin, index: usize, done: impl Fn(&Counters) -> bool) {
    let begun = Instant::now();
    loop {
        let counters = origin.counters(index);
        if done(&counters) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{counters:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    parser: ResponseParser,
    rest: Vec<u8>,
}

impl Client {
    pub(crate) fn new(origin: &Origin) -> Client {
        Client::to(origin.addresses()[0])
    }

    pub(crate) fn to(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("connects");
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("a timeout");
        Client { stream, parser: ResponseParser::default(), rest: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sends");
    }

    /// Reads one response. Returns its bytes and its end.
    pub(crate) fn receive(&mut self, to_head: bool) -> (Vec<u8>, ResponseEnd) {
        self.parser.begin(to_head);
        let mut all = Vec::new();
        let mut bytes = std::mem::take(&mut self.rest);
        loop {
            let fed = self.parser.feed(&bytes).expect("a response");
            all.extend_from_slice(&bytes[..fed.consumed]);
            if let Progress::Complete(end) = fed.event {
                self.rest = bytes.split_off(fed.consumed);
                return (all, end);
            }
            bytes.resize(65_536, 0);
            let length = self.stream.read(&mut bytes).expect("receives");
            assert_ne!(length, 0, "closed early");
            bytes.truncate(length);
        }
    }

    pub(crate) fn get(&mut self) -> ResponseEnd {
        self.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        self.receive(false).1
    }

    /// Reads everything until the server closes.
    pub(crate) fn until_closed(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.rest);
        self.stream.read_to_end(&mut all).expect("a clean end");
        all
    }

    /// Asserts that nothing more arrives for a moment, and that the connection stays open.
    pub(crate) fn assert_quiet(&mut self) {
        assert!(self.rest.is_empty(), "{}", self.rest.escape_ascii());
        let moment = Some(Duration::from_millis(20));
        self.stream.set_read_timeout(moment).expect("a timeout");
        let error = self.stream.read(&mut [0]).expect_err("nothing comes");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let patience = Some(Duration::from_secs(20));
        self.stream.set_read_timeout(patience).expect("a timeout");
    }
}
