//! One thread's loop: epoll, accepts, timers and stalls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use crate::connection::{Connection, Service, Wait};
use crate::listener::{Listeners, MOST_LISTENERS};
use crate::slab::{Key, Slab};
use crate::stall::Stalls;

/// Maximum number of consecutive accepts before other connections have their turn.
const ACCEPTS_PER_TURN: usize = 64;

/// Time without accepting after the kernel had no descriptor or memory for a connection. The listener stays readable
/// all the while, so its events are disabled.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// Maximum number of events per call.
const EVENTS: usize = 256;

/// User data of epoll events that do not belong to a connection: above all keys, see [`Slab`].
const WAKE: u64 = u64::MAX;
pub(crate) const LISTENER: u64 = 1 << 63;

/// One thread of a server.
pub(crate) struct Worker {
    /// Event descriptor that becomes readable, for good, when the server is to stop.
    wake: Arc<OwnedFd>,
    listeners: Arc<Listeners>,
    /// Time at which paused listeners are resumed.
    resume_ns: Option<u64>,
    connections: Slab<Connection>,
    /// Connections that were just accepted, or have more to read, and wait for their turn.
    turns: Vec<Key>,
    /// Due times of pending responses.
    timers: BinaryHeap<Reverse<(u64, Key)>>,
    stalls: Stalls,
    service: Service,
}

/// Signals that the server is to stop.
struct Stop;

impl Worker {
    pub(crate) fn new(
        listeners: Arc<Listeners>,
        wake: Arc<OwnedFd>,
        stalls: Stalls,
        service: Service,
    ) -> io::Result<Worker> {
        let epoll = listeners.epoll();
        epoll::add(epoll, &*wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        // Told here, where it can be reported, if the kernel lacks epoll_pwait2 (Linux 5.11).
        let mut probe = Vec::with_capacity(1);
        epoll::wait(epoll, spare_capacity(&mut probe), Some(&timespec(0)))?;
        Ok(Worker {
            wake,
            listeners,
            resume_ns: None,
            connections: Slab::new(),
            turns: Vec::new(),
            timers: BinaryHeap::new(),
            stalls,
            service,
        })
    }

    /// Serves until the server is stopped.
    pub(crate) fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        while self.round(&mut events).is_ok() {}
    }

    fn round(&mut self, events: &mut Vec<Event>) -> Result<(), Stop> {
        let timeout = self.timeout();
        let epoll = self.listeners.epoll();
        match epoll::wait(epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // EBADF, EFAULT, EINVAL: a defect of this program, and nothing can be served.
            Err(_) => return Err(Stop),
        }
        self.sit_out_stall()?;
        for event in events.drain(..) {
            match event.data.u64() {
                WAKE => return Err(Stop),
                data if data & LISTENER != 0 => self.accept((data & !LISTENER) as usize),
                data => self.event(Key::from_bits(data), event.flags),
            }
            self.sit_out_stall()?;
        }
        self.fire_timers();
        for key in std::mem::take(&mut self.turns) {
            self.turn(key);
            self.sit_out_stall()?;
        }
        self.resume_listeners();
        Ok(())
    }

    /// Returns the longest time that epoll may wait; `None` for no limit.
    fn timeout(&self) -> Option<Timespec> {
        if !self.turns.is_empty() {
            return Some(timespec(0));
        }
        let due = self.timers.peek().map(|Reverse((due_ns, _))| *due_ns);
        let stall = self.stalls.next_begin(&self.service.first);
        let next = [due, stall, self.resume_ns].into_iter().flatten().min()?;
        Some(timespec(next.saturating_sub(self.service.now_ns())))
    }

    /// Stands still if a stall has begun, as a stopped process would: data arriving meanwhile wait in the kernel, and
    /// timers that become due fire afterwards.
    fn sit_out_stall(&mut self) -> Result<(), Stop> {
        if self.stalls.is_over() {
            return Ok(());
        }
        loop {
            let now_ns = self.service.now_ns();
            let Some(end_ns) = self.stalls.end_of_current(&self.service.first, now_ns) else {
                return Ok(());
            };
            let mut wake = [PollFd::new(&*self.wake, PollFlags::IN)];
            match poll(&mut wake, Some(&timespec(end_ns - now_ns))) {
                Ok(0) | Err(Errno::INTR) => {}
                _ => return Err(Stop),
            }
        }
    }

    fn accept(&mut self, index: usize) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // One that was closed meanwhile has nothing to accept.
        let Some(listener) = self.listeners.at(index) else {
            return;
        };
        for _ in 0..ACCEPTS_PER_TURN {
            match accept_with(&listener, flags) {
                Ok(socket) => {
                    self.service.tallies[index].connections.add(1);
                    // Fits: there are not that many listeners.
                    let connection = Connection::new(socket, index as u32);
                    // Its turn comes after the others are accepted: by then the request is
                    // likely to be there, and epoll need not be asked.
                    let key = self.connections.insert(connection);
                    self.turns.push(key);
                }
                Err(Errno::AGAIN) => return,
                // The client has gone already, or the network has troubles of its own.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::NETDOWN) => {}
                Err(_) => return self.pause_listener(index),
            }
        }
    }

    /// Pauses a listener for lack of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM).
    #[cold]
    fn pause_listener(&mut self, index: usize) {
        self.service.tallies[index].accept_errors.add(1);
        self.listeners.ask(index, false);
        self.resume_ns = Some(self.service.now_ns() + ACCEPT_PAUSE_NS);
    }

    fn resume_listeners(&mut self) {
        if self.resume_ns.is_some_and(|at| at <= self.service.now_ns()) {
            self.resume_ns = None;
            (0..MOST_LISTENERS).for_each(|index| self.listeners.ask(index, true));
        }
    }

    fn event(&mut self, key: Key, flags: EventFlags) {
        let end = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(end | EventFlags::IN)
            && let Some(connection) = self.connections.get_mut(key)
        {
            connection.readable(flags.intersects(end));
        }
        self.turn(key);
    }

    fn fire_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now_ns = self.service.now_ns();
        while let Some(Reverse((due_ns, key))) = self.timers.peek().copied()
            && due_ns <= now_ns
        {
            self.timers.pop();
            if let Some(connection) = self.connections.get_mut(key) {
                connection.has_timer = false;
                self.turn(key);
            }
        }
    }

    /// Lets a connection proceed, then arranges its next turn.
    fn turn(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let wait = connection.turn(&mut self.service);
        let epoll = self.listeners.epoll();
        let arranged = match wait {
            Wait::Over => Err(Errno::CONNRESET),
            Wait::Turn => {
                self.turns.push(key);
                Ok(())
            }
            Wait::Read => add(epoll, connection, key, false),
            Wait::Write => add(epoll, connection, key, true),
            Wait::Due(due_ns) => {
                if !connection.has_timer {
                    connection.has_timer = true;
                    self.timers.push(Reverse((due_ns, key)));
                }
                add(epoll, connection, key, false)
            }
        };
        if arranged.is_err() {
            self.connections.remove(key);
        }
    }
}

/// Registers a connection with epoll and, with `room`, for events about room to send. Edge-triggered: nothing has to be
/// undone.
fn add(epoll: &OwnedFd, connection: &mut Connection, key: Key, room: bool) -> Result<(), Errno> {
    if connection.is_added && (connection.tells_room || !room) {
        return Ok(());
    }
    let mut flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    flags.set(EventFlags::OUT, room);
    let data = EventData::new_u64(key.to_bits());
    if connection.is_added {
        epoll::modify(epoll, connection.socket(), data, flags)?;
    } else {
        epoll::add(epoll, connection.socket(), data, flags)?;
    }
    connection.is_added = true;
    connection.tells_room = room;
    Ok(())
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        // Both fit: at most 2^64 / 10^9, and less than 10^9.
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}
