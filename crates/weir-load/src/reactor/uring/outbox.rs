//! Buffers for outgoing bytes: a fixed number of slots, which belong to connections only while they have something to
//! send.
//!
//! A connection's slots form a queue of which only the first is with the kernel, so that bytes leave in order. Most
//! requests fit into one slot and into the socket's buffer: such a send completes silently while it is submitted. Its
//! slot is free again as soon as all completions of that submission, which would report an exception, have been
//! handled.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::memory::Mapping;
use super::ring::{Ring, Sending};
use super::tag::{Kind, Tag};
use crate::reactor::ConnId;

/// Size of a slot, bytes.
pub(super) const SLOT_BYTES: usize = 16 * 1024;

/// Maximum number of slots per connection: one with the kernel, one to follow it.
const PER_CONNECTION: u8 = 2;

/// Marker for "no slot".
const NONE: u16 = u16::MAX;

/// Owner of a slot whose connection was closed.
const ORPHAN: ConnId = ConnId::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Filling,
    With(Sending),
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    conn: ConnId,
    /// Next slot in the connection's queue.
    next: u16,
    state: State,
    /// Range of the bytes not sent yet: `start` to `end`.
    start: u16,
    end: u16,
}

/// Queue of a connection's slots.
#[derive(Debug, Clone, Copy)]
struct Line {
    head: u16,
    tail: u16,
    count: u8,
    /// True if the last bytes did not all fit.
    blocked: bool,
    /// True if the connection waits for its first slot.
    hungry: bool,
}

impl Line {
    const EMPTY: Line = Line { head: NONE, tail: NONE, count: 0, blocked: false, hungry: false };
}

/// Slots of all connections, and their queues.
pub(super) struct Outbox {
    memory: Mapping,
    slots: Box<[Slot]>,
    lines: Box<[Line]>,
    free: Vec<u16>,
    /// First slots of queues, filled and not with the kernel.
    ready: Vec<u16>,
    /// Slots submitted to the kernel for which probably no completion will come.
    silent: Vec<u16>,
    /// Connections waiting for any slot, in order.
    hungry: VecDeque<ConnId>,
    /// Connections that have room again and have not been reported.
    writable: VecDeque<ConnId>,
}

impl Outbox {
    /// Allocates slots for `connections` connections.
    ///
    /// # Errors
    /// No memory is left.
    pub(super) fn new(connections: usize, slots: u16) -> Result<Outbox, Errno> {
        let slot_count = slots.clamp(1, NONE);
        let count = usize::from(slot_count);
        let slot = Slot { conn: ORPHAN, next: NONE, state: State::Free, start: 0, end: 0 };
        Ok(Outbox {
            memory: Mapping::new(count * SLOT_BYTES)?,
            slots: vec![slot; count].into_boxed_slice(),
            lines: vec![Line::EMPTY; connections].into_boxed_slice(),
            // The slot freed last is used first: it is in the cache.
            free: (0..slot_count).rev().collect(),
            ready: Vec::with_capacity(count),
            silent: Vec::with_capacity(count),
            hungry: VecDeque::with_capacity(connections.saturating_sub(count)),
            writable: VecDeque::with_capacity(count),
        })
    }

    /// Copies as much of `bytes` as there is room for; returns the number of bytes.
    pub(super) fn append(&mut self, conn: ConnId, bytes: &[u8]) -> usize {
        let tail = self.lines[conn as usize].tail;
        let mut written = 0;
        if tail != NONE && self.slots[usize::from(tail)].state == State::Filling {
            written = self.fill(tail, bytes);
        }
        while written < bytes.len()
            && let Some(slot) = self.lengthen(conn)
        {
            written += self.fill(slot, &bytes[written..]);
        }
        let line = &mut self.lines[conn as usize];
        line.blocked = written < bytes.len();
        if line.blocked && line.count == 0 && !line.hungry {
            line.hungry = true;
            self.hungry.push_back(conn);
        }
        written
    }

    /// Adds a slot to a connection's queue; `None` if the connection has its maximum or no slot is free.
    fn lengthen(&mut self, conn: ConnId) -> Option<u16> {
        let line = &mut self.lines[conn as usize];
        if line.count == PER_CONNECTION {
            return None;
        }
        let number = self.free.pop()?;
        self.slots[usize::from(number)] =
            Slot { conn, next: NONE, state: State::Filling, start: 0, end: 0 };
        match line.tail {
            NONE => {
                line.head = number;
                self.ready.push(number);
            }
            tail => self.slots[usize::from(tail)].next = number,
        }
        line.tail = number;
        line.count += 1;
        Some(number)
    }

    fn fill(&mut self, number: u16, bytes: &[u8]) -> usize {
        let slot = &mut self.slots[usize::from(number)];
        let end = usize::from(slot.end);
        let len = bytes.len().min(SLOT_BYTES - end);
        let to = self.memory.at(usize::from(number) * SLOT_BYTES + end, len);
        // SAFETY: the range lies inside of the mapping, and `bytes`, a reference, cannot point into
        // memory that is shared out by pointers only.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len) };
        slot.end += len as u16;
        len
    }

    /// Submits the slots that are ready; `descriptor` returns the descriptor of a connection.
    pub(super) fn flush<'a>(
        &mut self,
        ring: &mut Ring,
        descriptor: impl Fn(ConnId) -> Option<BorrowedFd<'a>>,
    ) {
        for index in 0..self.ready.len() {
            let number = self.ready[index];
            let slot = self.slots[usize::from(number)];
            // A slot may be here from a connection that was closed since, and be free, or the second of another
            // one's line by now: what is sent before the first would reach the peer before it.
            let is_first =
                slot.state == State::Filling && self.lines[slot.conn as usize].head == number;
            if is_first && let Some(fd) = descriptor(slot.conn) {
                // What has followers, in the line or with the engine, must tell when it is done.
                let alone = slot.next == NONE && !self.lines[slot.conn as usize].blocked;
                let sending = if alone { Sending::AtOnce } else { Sending::Patient };
                self.submit(ring, number, fd, sending);
            }
        }
        self.ready.clear();
    }

    /// Returns true if the kernel holds an unfinished send of the connection. Sends with [`Sending::AtOnce`] do not
    /// count: they were made at submission.
    pub(super) fn is_sending(&self, conn: ConnId) -> bool {
        let head = self.lines[conn as usize].head;
        head != NONE && self.slots[usize::from(head)].state == State::With(Sending::Patient)
    }

    /// Submits the rest of a slot.
    pub(super) fn send_rest(&mut self, ring: &mut Ring, number: u16, fd: BorrowedFd<'_>) {
        self.submit(ring, number, fd, Sending::Patient);
    }

    fn submit(&mut self, ring: &mut Ring, number: u16, fd: BorrowedFd<'_>, sending: Sending) {
        let slot = &mut self.slots[usize::from(number)];
        let len = slot.end - slot.start;
        let offset = usize::from(number) * SLOT_BYTES + usize::from(slot.start);
        let bytes = self.memory.at(offset, usize::from(len));
        slot.state = State::With(sending);
        if sending == Sending::AtOnce {
            self.silent.push(number);
        }
        let tag = Tag::new(Kind::Send, 0, number.into());
        // SAFETY: the mapping outlives what the ring has in flight. That the slot is not filled
        // again before the end, which is a matter of sending the right bytes, its state sees to.
        unsafe { ring.send(fd, bytes, u32::from(len), sending, tag) };
    }

    /// Frees the slots that were sent silently, and gives connections that wait for a slot their turn. To be called
    /// when all completions of the last submission have been handled.
    pub(super) fn settle(&mut self) {
        while let Some(number) = self.silent.pop() {
            if self.slots[usize::from(number)].state == State::With(Sending::AtOnce) {
                self.done(number);
            }
        }
        let mut slots = self.free.len();
        while slots > 0
            && let Some(conn) = self.hungry.pop_front()
        {
            let line = &mut self.lines[conn as usize];
            // It may have been closed meanwhile.
            if std::mem::take(&mut line.hungry) {
                self.writable.push_back(conn);
                slots -= 1;
            }
        }
    }

    /// Handles a completed send with `result`. Returns the connection if the rest of its slot must be sent (no error)
    /// or if it is broken (with the error).
    pub(super) fn completed(
        &mut self,
        number: u16,
        result: i32,
    ) -> Option<(ConnId, Option<Errno>)> {
        let slot = &mut self.slots[usize::from(number)];
        let sent = u16::try_from(result).unwrap_or(0);
        slot.start = slot.start.saturating_add(sent).min(slot.end);
        let conn = slot.conn;
        if conn == ORPHAN || slot.start == slot.end {
            self.done(number);
            return None;
        }
        slot.state = State::Filling;
        let broken = match Errno::from_raw_os_error(-result.min(0)) {
            _ if result >= 0 => None,
            Errno::AGAIN | Errno::INTR => None,
            errno => Some(errno),
        };
        Some((conn, broken))
    }

    /// Frees a slot that has been sent, and advances its queue.
    fn done(&mut self, number: u16) {
        let slot = &mut self.slots[usize::from(number)];
        let (conn, next) = (slot.conn, slot.next);
        slot.state = State::Free;
        self.free.push(number);
        if conn == ORPHAN {
            return;
        }
        let line = &mut self.lines[conn as usize];
        line.head = next;
        line.count -= 1;
        match next {
            NONE => line.tail = NONE,
            next => self.ready.push(next),
        }
        if line.blocked {
            self.writable.push_back(conn);
        }
    }

    /// Takes the next connection to report as writable.
    pub(super) fn writable(&mut self) -> Option<ConnId> {
        while let Some(conn) = self.writable.pop_front() {
            if std::mem::take(&mut self.lines[conn as usize].blocked) {
                return Some(conn);
            }
        }
        None
    }

    /// Returns true if there is work that no completion would announce.
    pub(super) fn restless(&self) -> bool {
        !self.writable.is_empty() || (!self.hungry.is_empty() && !self.silent.is_empty())
    }

    /// Releases the slots of a closed connection, those with the kernel as soon as it has finished with them.
    pub(super) fn abandon(&mut self, conn: ConnId, ring: &mut Ring) {
        let mut number = std::mem::replace(&mut self.lines[conn as usize], Line::EMPTY).head;
        while number != NONE {
            let slot = &mut self.slots[usize::from(number)];
            let next = slot.next;
            slot.conn = ORPHAN;
            match slot.state {
                State::Filling => self.done(number),
                State::With(Sending::Patient) => {
                    ring.cancel(Tag::new(Kind::Send, 0, number.into()));
                }
                State::With(Sending::AtOnce) | State::Free => {}
            }
            number = next;
        }
    }

    /// Returns the number of free slots.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }
}
