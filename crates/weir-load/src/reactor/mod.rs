//! The engine's only door to the network and the clock.
//!
//! The interface is made of completions, not of readiness: a reactor says what has happened and
//! hands out the bytes that came. It suits epoll (which receives when an event is taken) and
//! io_uring (which has received already), and it can be simulated.
//!
//! Protocol of a turn: [`Reactor::wait`] reaps a batch and stamps it, then [`Reactor::next`] is
//! called until it gives `None`. After [`Event::Received`], [`Reactor::received`] holds the bytes
//! until the next call of `next`. Events of a connection that was closed in the same turn never
//! come.
//!
//! Content that nobody looks at need not leave the kernel: after [`Reactor::discard`], the next bytes
//! of a connection may be told by [`Event::Discarded`] as a number.

use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

pub mod epoll;
#[cfg(test)]
pub mod simulated;
pub mod uring;

/// A connection by number: the engine's, counted from 0 and used again after a close.
pub type ConnId = u32;

/// How the kernel is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Io {
    /// By whatever serves best and works here.
    #[default]
    Auto,
    /// io_uring(7).
    Uring,
    /// epoll(7) and plain system calls through libc.
    Epoll,
}

impl Io {
    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Io::Auto => "auto",
            Io::Uring => "io_uring",
            Io::Epoll => "epoll",
        }
    }
}

/// Whom a connection goes to, and where from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    /// The server's address and port.
    pub peer: SocketAddr,
    /// Own address; the kernel's choice if absent. The port is always the kernel's choice, and is made
    /// when the connection is opened (IP_BIND_ADDRESS_NO_PORT, ip(7)): one source address then has
    /// all ports of the range for each peer.
    pub source: Option<IpAddr>,
    /// The connection will carry one request and its response: it is not set up for more.
    pub brief: bool,
    /// It is closed by a reset (RST) instead of in order (FIN), however it comes to be closed.
    pub reset: bool,
    /// Its socket may connect again when it is over. Not where a BPF program has put sockets into a map (sockmap): there a
    /// socket stands for one connection.
    pub reuse: bool,
}

impl Route {
    /// To `peer`, from wherever the kernel chooses.
    pub fn to(peer: SocketAddr) -> Route {
        Route {
            peer,
            source: None,
            brief: false,
            reset: false,
            reuse: true,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The connection is open.
    Connected(ConnId),
    /// It could not be opened; the reactor has forgotten it.
    ConnectFailed(ConnId, Errno),
    /// Room for more after a send that took only a part.
    Writable(ConnId),
    /// Bytes came: see [`Reactor::received`].
    Received(ConnId),
    /// So many bytes of content came and were dropped in the kernel, as asked for by
    /// [`Reactor::discard`].
    Discarded(ConnId, u64),
    /// The peer has sent all it wants to send.
    Ended(ConnId),
    /// The connection broke.
    Failed(ConnId, Errno),
}

/// The end of what a peer sends: a failure where a send has met a reset before.
fn ended(conn: ConnId, reset: bool) -> Event {
    if reset {
        Event::Failed(conn, Errno::CONNRESET)
    } else {
        Event::Ended(conn)
    }
}

/// Sockets and a clock.
pub trait Reactor {
    /// Nanoseconds of a clock that never goes back.
    fn now(&mut self) -> u64;

    /// CPU time of the calling thread in nanoseconds.
    fn cpu_ns(&mut self) -> u64 {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64
    }

    /// Begins to open a connection; the outcome comes as an event.
    ///
    /// # Errors
    /// The kernel refused at once (descriptors, ports, no route).
    fn connect(&mut self, conn: ConnId, route: &Route) -> Result<(), Errno>;

    /// Sends as much as can be taken now and says how much; less than all is followed by
    /// [`Event::Writable`]. What was taken is the reactor's: `bytes` may change afterwards.
    ///
    /// A peer that resets the connection may have answered before: that is told by [`Event::Received`] first, and
    /// then by [`Event::Failed`] that nothing more can be sent.
    ///
    /// # Errors
    /// The connection is broken otherwise. A reactor that sends later says so by [`Event::Failed`].
    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> Result<usize, Errno>;

    /// Waits until something happens or the clock reaches `until`; gives the stamp of the batch.
    fn wait(&mut self, until: u64) -> u64;

    /// The next event of the batch.
    fn next(&mut self) -> Option<Event>;

    /// The bytes of the event that `next` gave last. They may be changed in place (decrypted).
    fn received(&mut self) -> &mut [u8];

    /// The next `bytes` bytes of a connection will not be looked at: the reactor may leave them in
    /// the kernel and tell their number by [`Event::Discarded`], in parts that add up to at most
    /// `bytes`; any of them may still come by [`Event::Received`]. What comes after them comes as
    /// ever. Called while an event of the connection is handled, and not again before the bytes have
    /// come.
    fn discard(&mut self, conn: ConnId, bytes: u64);

    /// How often there was no buffer to receive into, so that bytes had to wait in the kernel.
    fn starved(&self) -> u64;

    /// Closes a connection; its number may be used again.
    fn close(&mut self, conn: ConnId);
}
