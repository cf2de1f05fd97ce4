//! Forwarder between weir and the API server, by which the connection can be cut.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use weir_testkit::cluster::Test;

/// Address of the API server, as `scripts/kube` starts it.
const SERVER: &str = "10.77.0.1:6443";
/// Address of the forwarder, which weir connects to. The network is the cluster's own.
pub(crate) const LISTENS: &str = "127.0.0.1:16443";
/// Time between checks for a change.
const LOOK: Duration = Duration::from_millis(20);

/// State of the forwarder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum LinkState {
    Open,
    /// Connections are closed, including new ones.
    Cut,
    /// No data is passed on, and connections stay open.
    Silent,
    /// The test is over.
    Ended,
}

/// Passes connections on to the API server.
pub(crate) struct Forwarder(Arc<AtomicU8>);

impl Forwarder {
    pub(crate) fn start(test: &Test) -> Forwarder {
        let state = Arc::new(AtomicU8::new(LinkState::Open as u8));
        let (listens, listening) = mpsc::channel();
        let accepted_state = Arc::clone(&state);
        thread::scope(|scope| {
            // What a thread starts is in the network that it has entered.
            scope.spawn(move || {
                test.enter();
                let listener = TcpListener::bind(LISTENS).expect("a free port");
                thread::spawn(move || accept(&listener, &accepted_state));
                listens.send(()).expect("the test waits for it");
            });
        });
        listening.recv().expect("it listens");
        Forwarder(state)
    }

    /// Changes the state. Connections that were silent are closed.
    pub(crate) fn set(&self, state: LinkState) {
        if state == LinkState::Open && is(&self.0, LinkState::Silent) {
            self.0.store(LinkState::Cut as u8, Ordering::SeqCst);
            thread::sleep(LOOK * 5);
        }
        self.0.store(state as u8, Ordering::SeqCst);
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.set(LinkState::Ended);
    }
}

fn is(state: &AtomicU8, expected: LinkState) -> bool {
    state.load(Ordering::SeqCst) == expected as u8
}

fn accept(listener: &TcpListener, state: &Arc<AtomicU8>) {
    listener.set_nonblocking(true).expect("a socket");
    while !is(state, LinkState::Ended) {
        match listener.accept() {
            Ok((theirs, _)) if !is(state, LinkState::Cut) => pass_on(theirs, state),
            // Closed as it is dropped.
            Ok(_) => {}
            Err(_) => thread::sleep(LOOK),
        }
    }
}

fn pass_on(theirs: TcpStream, state: &Arc<AtomicU8>) {
    let Ok(ours) = TcpStream::connect(SERVER) else {
        return;
    };
    let both = [&theirs, &ours].map(|stream| {
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_nodelay(true);
        stream.set_read_timeout(Some(LOOK)).expect("not zero");
        stream.try_clone().expect("a descriptor")
    });
    let [back_to, forth_to] = both;
    for (from, to) in [(theirs, forth_to), (ours, back_to)] {
        let state = Arc::clone(state);
        thread::spawn(move || carry(from, to, &state));
    }
}

/// Copies one direction of a connection until either side ends, or connections are cut.
fn carry(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) {
    let mut buffer = [0; 16 << 10];
    while !is(state, LinkState::Cut) && !is(state, LinkState::Ended) {
        if is(state, LinkState::Silent) {
            thread::sleep(LOOK);
            continue;
        }
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) if to.write_all(&buffer[..length]).is_ok() => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
