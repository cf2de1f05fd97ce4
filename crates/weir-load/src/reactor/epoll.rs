//! Reactor on epoll, using plain libc calls: it runs in containers that forbid io_uring, and socket-preload stacks,
//! which replace only libc's functions, can accelerate it.
//!
//! Edge-triggered: the kernel would poll a level-triggered descriptor a second time at the wait after each receive. One
//! registration lasts for the life of a connection.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use rustix::time::{ClockId, clock_gettime};

use super::{ConnId, Event, Reactor, Route, ended};
use crate::sys::bind_address_no_port;

/// Size of the receive buffer, bytes. All connections of a thread share it: a connection has none of its own.
const RECEIVE_BUFFER: usize = 256 * 1024;

/// Maximum number of consecutive receives for one event of one connection. A peer that sends faster than its bytes can
/// be handled must not keep a turn from ending: other connections and timeouts wait for it.
const RECEIVES: u32 = 4;

/// Maximum number of events per wait.
const BATCH: usize = 512;

/// Sockets of one thread.
pub struct Epoll {
    epoll: OwnedFd,
    sockets: Vec<Socket>,
    ready: Vec<epoll::Event>,
    /// Index in `ready` of the next event to handle.
    cursor: usize,
    /// Number of receives made for the event before `cursor`.
    receives: u32,
    /// Value of `cursor` at which `receives` was last reset; 0 before the first event of a batch.
    told: usize,
    buffer: Box<[u8]>,
    received: usize,
}

#[derive(Default)]
struct Socket {
    fd: Option<OwnedFd>,
    /// Counter of the uses of this connection number: events of an earlier use are stale.
    generation: u32,
    connecting: bool,
    /// True if the last send took only a part.
    blocked: bool,
    /// A send has met a reset, which is told when what came before it has been received.
    reset: bool,
    /// Number of bytes to come that will not be read.
    discard: u64,
}

fn key(conn: ConnId, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(conn)
}

/// Returns the event flags of a connection's registration.
fn interest() -> epoll::EventFlags {
    use epoll::EventFlags;
    EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET
}

/// Creates a socket of the peer's address family with these flags.
pub(super) fn socket(peer: SocketAddr, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    let family = match peer {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    net::socket_with(family, SocketType::STREAM, flags, None)
}

/// Prepares a socket for its route. Binds its own address, and leaves its port open.
pub(super) fn prepare(fd: &OwnedFd, route: &Route) -> Result<(), Errno> {
    if !route.brief {
        // One request is sent at once anyway: Nagle's algorithm (RFC 9293 §3.7.4) holds back
        // only what follows bytes that are not acknowledged.
        sockopt::set_tcp_nodelay(fd, true)?;
    }
    if route.reset {
        // A close that does not wait for what has not arrived gives it up by a reset (socket(7)).
        sockopt::set_socket_linger(fd, Some(Duration::ZERO))?;
    }
    let Some(source) = route.source else {
        return Ok(());
    };
    // A kernel that does not know the option reserves a port at once: fewer connections, not none.
    let _ = bind_address_no_port(fd);
    net::bind(fd, &SocketAddr::new(source, 0))
}

/// Returns CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Epoll {
    /// Creates a reactor for at most `connections` connections, numbered from 0.
    ///
    /// # Errors
    /// The kernel has no descriptor left for an epoll set.
    pub fn new(connections: usize) -> Result<Epoll, Errno> {
        Ok(Epoll {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            sockets: std::iter::repeat_with(Socket::default).take(connections).collect(),
            ready: Vec::with_capacity(BATCH),
            cursor: 0,
            receives: 0,
            told: 0,
            buffer: vec![0; RECEIVE_BUFFER].into_boxed_slice(),
            received: 0,
        })
    }

    /// Returns the outcome of opening a connection whose socket has become ready.
    fn connect_outcome(&mut self, conn: ConnId) -> Event {
        let socket = &mut self.sockets[conn as usize];
        let outcome = match &socket.fd {
            Some(fd) => sockopt::socket_error(fd).unwrap_or_else(Err),
            None => Err(Errno::BADF),
        };
        socket.connecting = false;
        match outcome {
            Ok(()) => Event::Connected(conn),
            Err(errno) => {
                self.close(conn);
                Event::ConnectFailed(conn, errno)
            }
        }
    }

    /// Handles bytes that may be left, since edge-triggered readiness will not be reported again: repeats the same
    /// event or, after [`RECEIVES`] times, makes the kernel report it anew.
    fn look_again(&mut self, conn: ConnId) {
        self.receives += 1;
        if self.receives < RECEIVES {
            self.cursor -= 1;
            return;
        }
        let socket = &self.sockets[conn as usize];
        let data = epoll::EventData::new_u64(key(conn, socket.generation));
        let armed = match &socket.fd {
            Some(fd) => epoll::modify(&self.epoll, fd, data, interest()),
            None => Err(Errno::BADF),
        };
        if armed.is_err() {
            self.cursor -= 1;
        }
    }

    /// Receives available bytes; `None` if there are none after all.
    fn receive(&mut self, conn: ConnId, hangup: bool) -> Option<Event> {
        let socket = &mut self.sockets[conn as usize];
        let fd = socket.fd.as_ref()?;
        if socket.discard > 0 {
            // TCP drops what MSG_TRUNC asks for without copying it (tcp(7)).
            let most = socket.discard.min(self.buffer.len() as u64) as usize;
            return match net::recv(fd, &mut self.buffer[..most], RecvFlags::TRUNC) {
                Ok((_, 0)) => Some(ended(conn, socket.reset)),
                Ok((_, dropped)) => {
                    socket.discard -= dropped as u64;
                    self.look_again(conn);
                    Some(Event::Discarded(conn, dropped as u64))
                }
                Err(Errno::AGAIN | Errno::INTR) => None,
                Err(errno) => Some(Event::Failed(conn, errno)),
            };
        }
        match net::recv(fd, &mut *self.buffer, RecvFlags::empty()) {
            Ok((0, _)) => Some(ended(conn, socket.reset)),
            Ok((received, _)) => {
                self.received = received;
                // A full buffer may have left bytes behind, a hangup is told by one more receive.
                if hangup || received == RECEIVE_BUFFER {
                    self.look_again(conn);
                }
                Some(Event::Received(conn))
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(errno) => Some(Event::Failed(conn, errno)),
        }
    }
}

impl Reactor for Epoll {
    fn now(&mut self) -> u64 {
        monotonic_ns()
    }

    fn connect(&mut self, conn: ConnId, route: &Route) -> Result<(), Errno> {
        let fd = socket(route.peer, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
        prepare(&fd, route)?;
        match net::connect(&fd, &route.peer) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno),
        }
        let socket = &mut self.sockets[conn as usize];
        socket.generation = socket.generation.wrapping_add(1);
        socket.connecting = true;
        socket.blocked = false;
        socket.reset = false;
        socket.discard = 0;
        let data = epoll::EventData::new_u64(key(conn, socket.generation));
        epoll::add(&self.epoll, &fd, data, interest())?;
        socket.fd = Some(fd);
        Ok(())
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> Result<usize, Errno> {
        let socket = &mut self.sockets[conn as usize];
        let fd = socket.fd.as_ref().ok_or(Errno::BADF)?;
        let sent = match net::send(fd, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(Errno::CONNRESET | Errno::PIPE) => {
                // What the peer said before it reset the connection is still there.
                let data = epoll::EventData::new_u64(key(conn, socket.generation));
                epoll::modify(&self.epoll, fd, data, interest())?;
                socket.reset = true;
                socket.blocked = false;
                return Ok(0);
            }
            Err(errno) => return Err(errno),
        };
        socket.blocked = sent < bytes.len();
        Ok(sent)
    }

    fn wait(&mut self, until: u64) -> u64 {
        let remaining = until.saturating_sub(monotonic_ns());
        let timeout = Timespec {
            tv_sec: (remaining / 1_000_000_000) as i64,
            tv_nsec: (remaining % 1_000_000_000) as i64,
        };
        self.ready.clear();
        self.cursor = 0;
        self.told = 0;
        let spare = rustix::buffer::spare_capacity(&mut self.ready);
        // An interrupted wait is a wait that reaped nothing.
        let _ = epoll::wait(&self.epoll, spare, Some(&timeout));
        monotonic_ns()
    }

    fn next(&mut self) -> Option<Event> {
        while let Some(ready) = self.ready.get(self.cursor) {
            self.cursor += 1;
            let (data, flags) = (ready.data.u64(), ready.flags);
            if self.told != self.cursor {
                (self.told, self.receives) = (self.cursor, 0);
            }
            let conn = data as u32;
            let socket = &mut self.sockets[conn as usize];
            if socket.fd.is_none() || key(conn, socket.generation) != data {
                continue;
            }
            let hangup = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            if socket.connecting {
                let outcome = self.connect_outcome(conn);
                // A peer that spoke or closed at once is told by the same event, and no other.
                if flags.intersects(epoll::EventFlags::IN | hangup) {
                    self.cursor -= 1;
                }
                return Some(outcome);
            }
            if socket.blocked && flags.contains(epoll::EventFlags::OUT) {
                socket.blocked = false;
                // The event may also say that bytes came: look at it again.
                self.cursor -= 1;
                return Some(Event::Writable(conn));
            }
            if flags.intersects(epoll::EventFlags::IN | hangup)
                && let Some(event) = self.receive(conn, flags.intersects(hangup))
            {
                return Some(event);
            }
        }
        None
    }

    fn received(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.received]
    }

    fn discard(&mut self, conn: ConnId, bytes: u64) {
        self.sockets[conn as usize].discard = bytes;
    }

    fn starved(&self) -> u64 {
        0
    }

    fn close(&mut self, conn: ConnId) {
        // Closing the only descriptor of a socket takes it out of the epoll set.
        self.sockets[conn as usize].fd = None;
    }
}
