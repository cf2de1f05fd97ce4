//! Bytes on their way out: a fixed number of slots, which belong to connections only while they
//! have something to send.
//!
//! A connection's slots form a line of which only the first is with the kernel, so that bytes leave
//! in order. Most requests fit into one slot and into the socket's buffer: such a send completes
//! silently while it is submitted, and its slot is free again as soon as all completions of that
//! submission, which would tell of an exception, have been looked at.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::memory::Mapping;
use super::ring::{Ring, Sending};
use super::tag::{Kind, Tag};
use crate::reactor::ConnId;

/// Bytes that a slot holds.
pub(super) const SLOT_BYTES: usize = 16 * 1024;

/// Slots that one connection may fill: one with the kernel, one to follow it.
const PER_CONNECTION: u8 = 2;

/// No slot.
const NONE: u16 = u16::MAX;

/// Nobody's slot: its connection was closed.
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
    /// The slot behind it in the line.
    next: u16,
    state: State,
    /// What has not been sent lies between the two.
    start: u16,
    end: u16,
}

/// A connection's slots.
#[derive(Debug, Clone, Copy)]
struct Line {
    head: u16,
    tail: u16,
    count: u8,
    /// The last bytes had no room in full.
    blocked: bool,
    /// There was not even one slot to begin with.
    hungry: bool,
}

impl Line {
    const EMPTY: Line = Line {
        head: NONE,
        tail: NONE,
        count: 0,
        blocked: false,
        hungry: false,
    };
}

/// All slots.
pub(super) struct Outbox {
    memory: Mapping,
    slots: Box<[Slot]>,
    lines: Box<[Line]>,
    free: Vec<u16>,
    /// First slots of lines, filled and not with the kernel.
    ready: Vec<u16>,
    /// Slots that the kernel has and will probably never mention again.
    silent: Vec<u16>,
    /// Connections that wait for any slot, in order.
    hungry: VecDeque<ConnId>,
    /// Connections that have room again and were not told.
    writable: VecDeque<ConnId>,
}

impl Outbox {
    /// # Errors
    /// No memory.
    pub(super) fn new(connections: usize, slots: u16) -> Result<Outbox, Errno> {
        let slots = slots.clamp(1, NONE);
        let count = usize::from(slots);
        let slot = Slot {
            conn: ORPHAN,
            next: NONE,
            state: State::Free,
            start: 0,
            end: 0,
        };
        Ok(Outbox {
            memory: Mapping::new(count * SLOT_BYTES)?,
            slots: vec![slot; count].into_boxed_slice(),
            lines: vec![Line::EMPTY; connections].into_boxed_slice(),
            // The slot freed last is used first: it is in the cache.
            free: (0..slots).rev().collect(),
            ready: Vec::with_capacity(count),
            silent: Vec::with_capacity(count),
            hungry: VecDeque::with_capacity(connections.saturating_sub(count)),
            writable: VecDeque::with_capacity(count),
        })
    }

    /// Takes as much of `bytes` as there is room for.
    pub(super) fn append(&mut self, conn: ConnId, bytes: &[u8]) -> usize {
        let tail = self.lines[conn as usize].tail;
        let mut taken = 0;
        if tail != NONE && self.slots[usize::from(tail)].state == State::Filling {
            taken = self.fill(tail, bytes);
        }
        while taken < bytes.len()
            && let Some(slot) = self.lengthen(conn)
        {
            taken += self.fill(slot, &bytes[taken..]);
        }
        let line = &mut self.lines[conn as usize];
        line.blocked = taken < bytes.len();
        if line.blocked && line.count == 0 && !line.hungry {
            line.hungry = true;
            self.hungry.push_back(conn);
        }
        taken
    }

    /// One more slot for a connection, if it may have one and there is one.
    fn lengthen(&mut self, conn: ConnId) -> Option<u16> {
        let line = &mut self.lines[conn as usize];
        if line.count == PER_CONNECTION {
            return None;
        }
        let number = self.free.pop()?;
        self.slots[usize::from(number)] = Slot {
            conn,
            next: NONE,
            state: State::Filling,
            start: 0,
            end: 0,
        };
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

    /// Sends what is ready; `descriptor` is that of a connection.
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
                let sending = match alone {
                    true => Sending::AtOnce,
                    false => Sending::Patient,
                };
                self.submit(ring, number, fd, sending);
            }
        }
        self.ready.clear();
    }

    /// Whether the kernel still has something to send for a connection; what it was to send at once it has sent.
    pub(super) fn is_sending(&self, conn: ConnId) -> bool {
        let head = self.lines[conn as usize].head;
        head != NONE && self.slots[usize::from(head)].state == State::With(Sending::Patient)
    }

    /// Sends the rest of a slot.
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

    /// All completions of the last submission have been looked at: what was sent silently is done,
    /// and who waited for a slot may have one.
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

    /// A send has completed with `result`. Gives the connection whose rest is to be sent, or that is
    /// broken.
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

    /// A slot has been sent, and is free; its line moves up.
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

    /// The next connection that is to be told of room.
    pub(super) fn writable(&mut self) -> Option<ConnId> {
        while let Some(conn) = self.writable.pop_front() {
            if std::mem::take(&mut self.lines[conn as usize].blocked) {
                return Some(conn);
            }
        }
        None
    }

    /// Whether there is something to do that no completion would tell of.
    pub(super) fn restless(&self) -> bool {
        !self.writable.is_empty() || (!self.hungry.is_empty() && !self.silent.is_empty())
    }

    /// A connection is closed: its slots are free as soon as the kernel has done with them.
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

    /// Slots that are free.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }
}
