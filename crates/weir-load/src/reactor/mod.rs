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

use std::net::SocketAddr;

use rustix::io::Errno;

pub mod epoll;
#[cfg(test)]
pub mod simulated;

/// A connection by number: the engine's, counted from 0 and used again after a close.
pub type ConnId = u32;

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
    /// The peer has sent all it wants to send.
    Ended(ConnId),
    /// The connection broke.
    Failed(ConnId, Errno),
}

/// Sockets and a clock.
pub trait Reactor {
    /// Nanoseconds of a clock that never goes back.
    fn now(&mut self) -> u64;

    /// Begins to open a connection; the outcome comes as an event.
    ///
    /// # Errors
    /// The kernel refused at once (descriptors, ports, no route).
    fn connect(&mut self, conn: ConnId, address: &SocketAddr) -> Result<(), Errno>;

    /// Sends as much as the kernel takes now and says how much; less than all is followed by
    /// [`Event::Writable`].
    ///
    /// # Errors
    /// The connection is broken.
    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> Result<usize, Errno>;

    /// Waits until something happens or the clock reaches `until`; gives the stamp of the batch.
    fn wait(&mut self, until: u64) -> u64;

    /// The next event of the batch.
    fn next(&mut self) -> Option<Event>;

    /// The bytes of the event that `next` gave last.
    fn received(&self) -> &[u8];

    /// Closes a connection; its number may be used again.
    fn close(&mut self, conn: ConnId);
}
