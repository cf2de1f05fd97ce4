//! Listening sockets, and the set of one thread, which may change while it serves.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

/// Opens a listener. If `shared`, other sockets may listen on the same address, and the kernel spreads connections over
/// them.
pub(crate) fn listen(address: SocketAddr, backlog: u32, shared: bool) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // A restart finds its port full of connections in TIME_WAIT.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    // Accepted sockets inherit it, which spares each of them a system call.
    sockopt::set_tcp_nodelay(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket)
}

/// Returns the actual address of a listener.
pub(crate) fn address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    Ok(SocketAddr::try_from(net::getsockname(socket)?)?)
}

/// Maximum number of listeners that a server can have at the same time.
pub(crate) const MOST_LISTENERS: usize = 256;

/// The listeners of one thread, by position, and the thread's epoll instance. Listeners are opened and closed from
/// other threads: epoll_ctl(2) may be called during epoll_wait(2).
#[derive(Debug)]
pub(crate) struct Listeners {
    epoll: OwnedFd,
    sockets: Mutex<Vec<Option<Arc<OwnedFd>>>>,
}

impl Listeners {
    pub(crate) fn new() -> io::Result<Listeners> {
        Ok(Listeners {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            sockets: Mutex::new(vec![None; MOST_LISTENERS]),
        })
    }

    pub(crate) fn epoll(&self) -> &OwnedFd {
        &self.epoll
    }

    /// Returns the listener at a position.
    pub(crate) fn at(&self, place: usize) -> Option<Arc<OwnedFd>> {
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.get(place)?.clone()
    }

    /// Adds a listener at a position.
    pub(crate) fn open(&self, place: usize, socket: OwnedFd) -> io::Result<()> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = sockets.get_mut(place).filter(|slot| slot.is_none()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "there is a listener already")
        })?;
        epoll::add(&self.epoll, &socket, data(place), EventFlags::IN)?;
        *slot = Some(Arc::new(socket));
        Ok(())
    }

    /// Closes the listener at a position, if there is one.
    pub(crate) fn close(&self, place: usize) {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = sockets.get_mut(place).and_then(Option::take) {
            // The thread may hold it for one more accept; it is asked no more.
            let _ = epoll::delete(&self.epoll, &*socket);
        }
    }

    /// Enables or disables epoll events for new connections at a position.
    pub(crate) fn ask(&self, place: usize, whether: bool) {
        let flags = if whether { EventFlags::IN } else { EventFlags::empty() };
        if let Some(socket) = self.at(place) {
            // It was allowed before, and needs no memory.
            let _ = epoll::modify(&self.epoll, &*socket, data(place), flags);
        }
    }
}

fn data(place: usize) -> EventData {
    EventData::new_u64(crate::worker::LISTENER | place as u64)
}
