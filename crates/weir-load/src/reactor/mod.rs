//! Interface of the engine to the network and the clock.
//!
//! The interface is based on completions, not on readiness: a reactor reports events and hands out received bytes. It
//! suits epoll (which receives when an event is taken) and io_uring (which has received already), and it can be
//! simulated.
//!
//! Protocol of a turn: [`Reactor::wait`] takes a batch of events and stamps it, then [`Reactor::next`] is called until
//! it returns `None`. After [`Event::Received`], [`Reactor::received`] holds the bytes until the next call of `next`.
//! No events follow for a connection that was closed in the same turn.
//!
//! Unread content need not leave the kernel: after [`Reactor::discard`], the next bytes of a connection may be reported
//! by [`Event::Discarded`] as a number.

use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

pub mod epoll;
#[cfg(test)]
pub mod simulated;
pub mod uring;

/// Number of a connection, assigned by the engine: counted from 0 and reused after a close.
pub type ConnId = u32;

/// I/O backend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Io {
    /// The best backend that works here.
    #[default]
    Auto,
    /// io_uring(7).
    Uring,
    /// epoll(7) and plain system calls through libc.
    Epoll,
}

impl Io {
    /// Returns the name of the backend in reports.
    pub fn name(self) -> &'static str {
        match self {
            Io::Auto => "auto",
            Io::Uring => "io_uring",
            Io::Epoll => "epoll",
        }
    }
}

/// Server address of a connection, source address and socket settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    /// Address and port of the server.
    pub peer: SocketAddr,
    /// Source address; the kernel's choice if absent. The port is always the kernel's choice, made when the connection
    /// is opened (IP_BIND_ADDRESS_NO_PORT, ip(7)): one source address then has all ports of the range for each peer.
    pub source: Option<IpAddr>,
    /// True if the connection carries one request and its response: the socket is not set up for more.
    pub brief: bool,
    /// True if the connection is always closed by a reset (RST) instead of in order (FIN).
    pub reset: bool,
    /// True if the socket may be reused for the next connection. Not possible if a BPF program has put sockets into a
    /// map (sockmap): a socket there stands for one connection.
    pub reuse: bool,
}

impl Route {
    /// Creates a route to `peer` from a source address chosen by the kernel.
    pub fn to(peer: SocketAddr) -> Route {
        Route { peer, source: None, brief: false, reset: false, reuse: true }
    }
}

/// Event of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The connection is open.
    Connected(ConnId),
    /// The connection could not be opened; the reactor has no state of it any more.
    ConnectFailed(ConnId, Errno),
    /// There is room to send again after a send that took only a part.
    Writable(ConnId),
    /// Bytes have arrived: see [`Reactor::received`].
    Received(ConnId),
    /// This number of bytes of content arrived and were dropped in the kernel, as requested by [`Reactor::discard`].
    Discarded(ConnId, u64),
    /// The peer has closed its side of the connection.
    Ended(ConnId),
    /// The connection broke.
    Failed(ConnId, Errno),
}

/// The end of what a peer sends: a failure where a send has met a reset before.
fn ended(conn: ConnId, reset: bool) -> Event {
    if reset { Event::Failed(conn, Errno::CONNRESET) } else { Event::Ended(conn) }
}

/// Sockets and a clock.
pub trait Reactor {
    /// Returns the nanoseconds of a monotonic clock.
    fn now(&mut self) -> u64;

    /// Returns the CPU time of the calling thread in nanoseconds.
    fn cpu_ns(&mut self) -> u64 {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64
    }

    /// Starts to open a connection; the outcome is reported by an event.
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

    /// Waits until an event occurs or the clock reaches `until`; returns the time stamp of the batch.
    fn wait(&mut self, until: u64) -> u64;

    /// Returns the next event of the batch; `None` at its end.
    fn next(&mut self) -> Option<Event>;

    /// Returns the bytes of the last event returned by `next`. They may be changed in place (decrypted).
    fn received(&mut self) -> &mut [u8];

    /// Declares that the next `bytes` bytes of a connection will not be read. The reactor may leave them in the kernel
    /// and report their number by [`Event::Discarded`], in parts that add up to at most `bytes`; any of them may still
    /// arrive by [`Event::Received`]. Later bytes arrive as usual. Called while an event of the connection is handled,
    /// and not again before the bytes have arrived.
    fn discard(&mut self, conn: ConnId, bytes: u64);

    /// Returns how often there was no receive buffer, so that bytes had to wait in the kernel.
    fn starved(&self) -> u64;

    /// Closes a connection; its number may be reused.
    fn close(&mut self, conn: ConnId);
}
