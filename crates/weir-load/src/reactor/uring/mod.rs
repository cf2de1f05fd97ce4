//! Reactor on io_uring: one system call submits everything that a turn has to send and returns the completions.
//!
//! Needs Linux 6.1 (SINGLE_ISSUER, DEFER_TASKRUN, multishot receive, provided buffer rings); see [`probe`]. From 6.12
//! on, a wait ends at a deadline of the clock instead of after a duration.
//!
//! # Operation
//!
//! Requests are only queued, and enter the kernel with the next [`Reactor::wait`], unless the queue is full before. All
//! work of the kernel for this thread, such as receiving, happens inside that call (DEFER_TASKRUN), so a batch is
//! complete and has a single time stamp.
//!
//! An open connection has a multishot receive, and the kernel takes a buffer from a common ring when bytes arrive: an
//! idle connection owns none. If no buffer is left, the receive ends (ENOBUFS); it is started again in the next turn
//! and nothing is lost; [`Reactor::starved`] counts it. A multishot receive takes as many buffers as bytes have
//! arrived, so a few connections with large content would starve all others: if there is a buffer for each connection,
//! a connection that has starved takes one buffer at a time from then on, by single requests. A connection whose
//! content has once been discarded receives by single requests too; the kind of the next one is chosen when the engine
//! has handled the event: a head, or content to be dropped. MSG_WAITALL would report dropped content in one piece, but
//! io_uring requests the whole length again after each part, because dropped bytes do not advance the buffer, and so
//! takes bytes beyond those to be dropped.
//!
//! Bytes that arrived in one batch have one stamp, taken when the kernel has received them all; a kernel may stop at
//! some 20 completions and leave the rest to the next turn. A readiness reactor stamps before it receives, and is the
//! more accurate clock of a burst.
//!
//! Descriptors are ordinary ones, not the ring's own (direct descriptors). Before Linux 6.13 a direct descriptor stays
//! open after its close as long as any older request on one of them, such as the receive of an idle connection, is in
//! flight.
//!
//! A brief connection ([`Route::brief`], [`Route::reuse`]) that is over on both sides, or ends by a reset, leaves its
//! socket to the next one (connect(2), AF_UNSPEC): peers notice no difference, and one socket and one file less are
//! created. A chain of linked requests (connect, send, receive), which saves turns, costs more than it saves: each link
//! is a task of its own.
//!
//! A request in flight holds a reference to its socket, so a close must also cancel. It does so in the same submission;
//! later completions are recognised by their generation, and their buffers are given back.
#![allow(unsafe_code, reason = "each block says why it is sound")]

use std::num::NonZeroU16;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use io_uring::cqueue;
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::epoll::{monotonic_ns, prepare, socket};
use super::{ConnId, Event, Reactor, Route, ended};

mod brief;
mod buffers;
mod memory;
mod outbox;
mod probe;
mod ring;
mod tag;
#[cfg(test)]
mod tests;

use brief::Brief;
use buffers::{Buffers, Lease};
use outbox::Outbox;
use ring::Ring;
use tag::{Kind, Tag};

pub use probe::{Unavailable, probe};

/// Bytes that a connection whose content is discarded receives at once: a head, and the beginning of the content.
const HEAD_BYTES: NonZeroU16 = NonZeroU16::new(4096).unwrap();

/// Sizes of a reactor's queues and buffers.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Number of receive buffers; a power of two.
    buffers: u16,
    buffer_bytes: u32,
    /// Number of slots of the outbox.
    slots: u16,
    /// Maximum number of requests between two waits.
    requests: u32,
    /// Maximum number of completions in a batch.
    completions: u32,
}

impl Sizes {
    /// Computes the sizes for `connections` that may all be busy, within bounds: at most 8 MiB of buffers and 16 MiB of
    /// slots, allocated only as they are used.
    ///
    /// The kernel takes buffers in turn, however few are needed, so each use finds a buffer that has not been touched
    /// for a whole round: if all buffers together exceed the CPU's cache, large content is received more slowly.
    fn of(connections: usize) -> Sizes {
        Sizes {
            buffers: scale(connections, 1, 64, 256) as u16,
            buffer_bytes: 32 * 1024,
            slots: scale(connections, 1, 64, 1024) as u16,
            requests: scale(connections, 2, 64, 512) as u32,
            completions: scale(connections, 4, 1024, 8192) as u32,
        }
    }
}

/// Kind of a connection's pending receive request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Receiving {
    #[default]
    Nothing,
    /// Multishot receive.
    Many,
    /// Multishot receive that is being cancelled.
    Ending,
    /// Single receive.
    One,
    /// Single request that drops content.
    Dropping,
}

#[derive(Default)]
struct Socket {
    fd: Option<OwnedFd>,
    /// Counter of the uses of this connection number: completions of an earlier use are stale.
    generation: u32,
    /// Number of bytes to come that will not be read.
    discard: u64,
    receiving: Receiving,
    connecting: bool,
    /// A send has met a reset, which is told when what came before it has been received.
    reset: bool,
    /// Maximum length of each receive, bytes, if the connection receives by single requests: its content has been
    /// discarded, it took more than its share of the buffers, or it carries one request only.
    single: Option<NonZeroU16>,
}

/// Sockets of one thread, to be used only on that thread.
pub struct Uring {
    ring: Ring,
    buffers: Buffers,
    outbox: Outbox,
    sockets: Vec<Socket>,
    /// Buffer of the last event returned, and the number of bytes received.
    current: Option<(Lease, usize)>,
    /// Connection of that event with its generation, if its next receive must be requested.
    unarmed: Option<(ConnId, u32)>,
    /// Settings and sockets of brief connections, by connection; extends only to the last brief one.
    brief: Vec<Option<Brief>>,
    starved: u64,
}

impl Uring {
    /// Creates a reactor for at most `connections` connections, numbered from 0. It must be created on the thread that
    /// uses it: the kernel takes requests from no other.
    ///
    /// # Errors
    /// io_uring cannot be used here ([`probe`] returns the reason), or no memory is left.
    pub fn new(connections: usize) -> Result<Uring, Errno> {
        Uring::with(connections, Sizes::of(connections))
    }

    fn with(connections: usize, sizes: Sizes) -> Result<Uring, Errno> {
        let ring = Ring::new(sizes.requests, sizes.completions)?;
        Ok(Uring {
            buffers: Buffers::new(&ring, sizes.buffers, sizes.buffer_bytes)?,
            outbox: Outbox::new(connections, sizes.slots)?,
            sockets: std::iter::repeat_with(Socket::default).take(connections).collect(),
            current: None,
            unarmed: None,
            brief: Vec::new(),
            starved: 0,
            ring,
        })
    }

    /// Returns the size of a buffer, limited to what a single receive can request.
    fn whole_buffer(&self) -> Option<NonZeroU16> {
        NonZeroU16::new(self.buffers.size().try_into().unwrap_or(u16::MAX))
    }

    /// Returns an unconnected socket: the one left by the number's previous connection, or a new one.
    fn open(&mut self, conn: ConnId, route: &Route) -> Result<OwnedFd, Errno> {
        let index = conn as usize;
        let reuses = route.brief && route.reuse;
        if reuses && self.brief.len() <= index {
            self.brief.resize_with(index + 1, || None);
        }
        let Some(brief) = self.brief.get_mut(index) else {
            return self.make(route);
        };
        let next = reuses.then_some(Brief { route: *route, left: None });
        let before = std::mem::replace(brief, next);
        match before {
            Some(Brief { route: same, left: Some(fd) }) if same == *route => Ok(fd),
            _ => self.make(route),
        }
    }

    /// Creates a socket for a route.
    fn make(&mut self, route: &Route) -> Result<OwnedFd, Errno> {
        // Not NONBLOCK: io_uring would hand every EAGAIN through instead of waiting.
        let fd = match socket(route.peer, SocketFlags::CLOEXEC) {
            Err(Errno::MFILE) => {
                // Descriptors closed in this turn are free when the kernel has been told.
                self.ring.submit();
                socket(route.peer, SocketFlags::CLOEXEC)?
            }
            fd => fd?,
        };
        prepare(&fd, route)?;
        Ok(fd)
    }

    /// Requests the next receive of a connection.
    fn arm(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn as usize];
        let Some(fd) = &socket.fd else {
            return;
        };
        let (fd, tag) = (fd.as_fd(), Tag::new(Kind::Receive, socket.generation, conn));
        socket.receiving = match socket.single {
            None => Receiving::Many,
            Some(_) if socket.discard == 0 => Receiving::One,
            Some(_) => Receiving::Dropping,
        };
        match socket.receiving {
            Receiving::Many => self.ring.receive_many(fd, tag),
            Receiving::Dropping => self.ring.drop_content(fd, socket.discard, tag),
            _ => {
                let bytes = socket.single.map_or(0, NonZeroU16::get);
                self.ring.receive_one(fd, bytes.into(), tag);
            }
        }
    }

    /// Finishes the last event returned: gives its buffer back and requests the next receive.
    fn handled(&mut self) {
        let lease = self.current.take().map(|(lease, _)| lease);
        self.give_back(lease);
        if let Some((conn, generation)) = self.unarmed.take()
            && self.sockets[conn as usize].generation == generation
        {
            self.arm(conn);
        }
    }

    /// Handles a completion and returns the event for the engine, if any.
    fn event(&mut self, done: &cqueue::Entry) -> Option<Event> {
        let tag = Tag::decode(done.user_data());
        match tag.kind {
            Kind::Connect => self.connected(tag, done.result()),
            Kind::Receive => self.came(tag, done),
            Kind::Send => self.sent(tag.number as u16, done.result()),
            Kind::Tidy => None,
        }
    }

    /// Returns the connection of a completion; `None` if the completion is stale.
    fn concerned(&mut self, tag: Tag) -> Option<&mut Socket> {
        let socket = self.sockets.get_mut(tag.number as usize)?;
        (socket.fd.is_some() && tag.is_of(socket.generation)).then_some(socket)
    }

    fn connected(&mut self, tag: Tag, result: i32) -> Option<Event> {
        let socket = self.concerned(tag)?;
        socket.connecting = false;
        let conn = tag.number;
        if result < 0 {
            self.close(conn);
            let errno = Errno::from_raw_os_error(-result);
            return Some(Event::ConnectFailed(conn, errno));
        }
        self.arm(conn);
        Some(Event::Connected(conn))
    }

    fn came(&mut self, tag: Tag, done: &cqueue::Entry) -> Option<Event> {
        let (conn, result) = (tag.number, done.result());
        let lease = Lease::of(done.flags());
        let Some(socket) = self.concerned(tag) else {
            self.give_back(lease);
            return None;
        };
        let kind = socket.receiving;
        let over = !cqueue::more(done.flags());
        if over {
            socket.receiving = Receiving::Nothing;
        }
        if result <= 0 {
            self.give_back(lease);
            return self.nothing_came(conn, Errno::from_raw_os_error(-result));
        }
        socket.discard = socket.discard.saturating_sub(result as u64);
        self.unarmed = over.then_some((conn, socket.generation));
        self.current = lease.map(|lease| (lease, result as usize));
        Some(match kind {
            Receiving::Dropping => Event::Discarded(conn, result as u64),
            _ => Event::Received(conn),
        })
    }

    /// Handles a receive that ended without bytes.
    fn nothing_came(&mut self, conn: ConnId, errno: Errno) -> Option<Event> {
        match errno {
            errno if errno.raw_os_error() == 0 => {
                return Some(ended(conn, self.sockets[conn as usize].reset));
            }
            // Buffers taken by earlier completions have been given back by now.
            Errno::NOBUFS => {
                self.starved += 1;
                self.ration(conn);
            }
            // CANCELED: another kind of receive is to follow.
            Errno::CANCELED | Errno::AGAIN | Errno::INTR => {}
            errno => return Some(Event::Failed(conn, errno)),
        }
        self.arm(conn);
        None
    }

    /// Limits the connection to one buffer at a time, if there is a buffer for every connection.
    fn ration(&mut self, conn: ConnId) {
        let one_each = self.sockets.len() <= self.buffers.count().into();
        let share = self.whole_buffer().filter(|_| one_each);
        let socket = &mut self.sockets[conn as usize];
        socket.single = socket.single.or(share);
    }

    fn give_back(&mut self, lease: Option<Lease>) {
        if let Some(lease) = lease {
            self.buffers.give_back(lease);
        }
    }

    fn sent(&mut self, slot: u16, result: i32) -> Option<Event> {
        let (conn, broken) = self.outbox.completed(slot, result)?;
        match broken {
            Some(errno) => {
                self.outbox.abandon(conn, &mut self.ring);
                let socket = &mut self.sockets[conn as usize];
                socket.reset = matches!(errno, Errno::CONNRESET | Errno::PIPE);
                let is_heard = socket.reset && socket.receiving != Receiving::Nothing;
                (!is_heard).then_some(Event::Failed(conn, errno))
            }
            None => {
                let fd = self.sockets[conn as usize].fd.as_ref()?;
                self.outbox.send_rest(&mut self.ring, slot, fd.as_fd());
                None
            }
        }
    }
}

fn descriptor(sockets: &[Socket], conn: ConnId) -> Option<BorrowedFd<'_>> {
    sockets.get(conn as usize)?.fd.as_ref().map(AsFd::as_fd)
}

impl Reactor for Uring {
    fn now(&mut self) -> u64 {
        monotonic_ns()
    }

    fn connect(&mut self, conn: ConnId, route: &Route) -> Result<(), Errno> {
        let fd = self.open(conn, route)?;
        let single = self.whole_buffer().filter(|_| route.brief);
        let socket = &mut self.sockets[conn as usize];
        let generation = socket.generation.wrapping_add(1);
        let tag = Tag::new(Kind::Connect, generation, conn);
        self.ring.connect(fd.as_fd(), route.peer, tag)?;
        *socket = Socket {
            fd: Some(fd),
            generation,
            connecting: true,
            // No multishot receive to cancel when it is over.
            single,
            ..Socket::default()
        };
        Ok(())
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> Result<usize, Errno> {
        match &self.sockets[conn as usize].fd {
            Some(_) => Ok(self.outbox.append(conn, bytes)),
            None => Err(Errno::BADF),
        }
    }

    fn wait(&mut self, until: u64) -> u64 {
        self.handled();
        if self.ring.drained() {
            self.outbox.settle();
        }
        let sockets = &self.sockets;
        self.outbox.flush(&mut self.ring, |conn| descriptor(sockets, conn));
        let until = Some(until).filter(|_| !self.outbox.restless());
        self.ring.turn(until);
        monotonic_ns()
    }

    fn next(&mut self) -> Option<Event> {
        self.handled();
        if let Some(conn) = self.outbox.writable() {
            return Some(Event::Writable(conn));
        }
        while let Some(done) = self.ring.pop() {
            let event = self.event(&done);
            if event.is_some() {
                return event;
            }
        }
        // A send that completed above may have made room.
        self.outbox.writable().map(Event::Writable)
    }

    fn received(&mut self) -> &mut [u8] {
        match &self.current {
            Some((lease, len)) => self.buffers.bytes(lease, *len),
            None => &mut [],
        }
    }

    fn discard(&mut self, conn: ConnId, bytes: u64) {
        let socket = &mut self.sockets[conn as usize];
        if socket.fd.is_none() || bytes == 0 {
            return;
        }
        socket.discard = bytes;
        socket.single = Some(HEAD_BYTES);
        if socket.receiving == Receiving::Many {
            socket.receiving = Receiving::Ending;
            self.ring.cancel(Tag::new(Kind::Receive, socket.generation, conn));
        }
    }

    fn starved(&self) -> u64 {
        self.starved
    }

    fn close(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn as usize];
        let Some(fd) = socket.fd.take() else {
            return;
        };
        let is_idle = !socket.connecting && socket.receiving == Receiving::Nothing;
        let is_idle = is_idle && !self.outbox.is_sending(conn);
        self.outbox.abandon(conn, &mut self.ring);
        let fd = match self.brief.get_mut(conn as usize) {
            Some(Some(brief)) if is_idle => match brief.end(fd) {
                Ok(()) => return,
                Err(fd) => fd,
            },
            _ => fd,
        };
        if std::mem::take(&mut socket.connecting) {
            self.ring.cancel(Tag::new(Kind::Connect, socket.generation, conn));
        }
        if socket.receiving != Receiving::Nothing {
            self.ring.cancel(Tag::new(Kind::Receive, socket.generation, conn));
        }
        self.ring.close(fd);
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // The kernel must have done with buffers and slots before they are unmapped.
        self.ring.cancel_all();
    }
}

fn scale(connections: usize, factor: usize, least: usize, most: usize) -> usize {
    connections.saturating_mul(factor).clamp(least, most).next_power_of_two()
}
