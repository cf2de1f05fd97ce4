//! Connections for one request, whose sockets serve the next one.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{Shutdown, connect_unspec, getpeername, shutdown};

use crate::reactor::Route;

/// A connection for one request and its response.
pub(super) struct Brief {
    pub(super) route: Route,
    /// Its socket, when it is over: it can connect again.
    pub(super) left: Option<OwnedFd>,
}

impl Brief {
    /// Ends a connection on which nothing of ours is in flight, and keeps its socket; gives it back where it is to
    /// be closed.
    pub(super) fn end(&mut self, fd: OwnedFd) -> Result<(), OwnedFd> {
        // What is not over is reset by this.
        if !(self.route.reset || is_over(&fd)) || connect_unspec(&fd).is_err() {
            return Err(fd);
        }
        self.left = Some(fd);
        Ok(())
    }
}

/// Returns true if the kernel knows no peer: both sides have ended, and our end has been acknowledged.
fn is_over(fd: &OwnedFd) -> bool {
    shutdown(fd, Shutdown::Write).is_ok() && getpeername(fd).err() == Some(Errno::NOTCONN)
}
