//! Network namespaces (network_namespaces(7)) that only descriptors, threads and processes hold.
//!
//! A namespace belongs to threads, not to processes, and cannot be made without entering it. Each namespace is
//! therefore made by a thread that ends at once and leaves a descriptor of the namespace behind. The kernel removes a
//! namespace with its links, addresses and settings when the last descriptor, thread and process in it is gone, a
//! moment later and on a thread of its own.

use std::fs::File;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::{io, panic, thread};

use nix::sched::{CloneFlags, unshare};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::link::connect;
use crate::links::{Interface, Links};
use crate::{HostError, Wire};

/// Path of the network namespace of the thread that opens it (proc_thread-self(5)).
const NAMESPACE_OF_THREAD: &str = "/proc/thread-self/ns/net";
/// Path of the network namespace of the first thread of the process that opens it.
const NAMESPACE_OF_PROCESS: &str = "/proc/self/ns/net";

/// A network namespace, held by a descriptor: it lives as long as any clone of this value, or any process or thread in
/// it.
///
/// The descriptor is closed on exec; a child process is in the namespace of the thread that starts it.
#[derive(Debug, Clone)]
pub struct Network(Arc<OwnedFd>);

/// Checks that this process may make namespaces and link them (CAP_SYS_ADMIN and CAP_NET_ADMIN, and a kernel that has
/// both namespaces and veth). The check makes and links two: containers may allow the one and not the other.
///
/// # Errors
/// The process may not; the error names what is missing.
pub fn may_have_networks() -> Result<(), HostError> {
    let (a, b) = (Network::create()?, Network::create()?);
    connect((&a, &probe_wire(1)), (&b, &probe_wire(2)), 1500)
}

fn probe_wire(last: u8) -> Wire {
    Wire {
        name: "probe".to_owned(),
        // TEST-NET-1 (RFC 5737): nobody else is in these namespaces, so any address would do.
        addresses: vec![([192, 0, 2, last].into(), 30)],
    }
}

/// Returns the calling thread to the network namespace of the process's first thread, which never joins another one.
///
/// # Errors
/// The kernel refused: `/proc` is not mounted, or CAP_SYS_ADMIN is missing, without which the thread has not left that
/// namespace.
pub fn return_to_first_network() -> Result<(), HostError> {
    let first = Network::at(NAMESPACE_OF_PROCESS)
        .map_err(|e| HostError::refused(format!("open {NAMESPACE_OF_PROCESS}"), e))?;
    first.join()
}

/// Returns the interface of the calling thread's namespace that has this address; `None` if no interface has it.
///
/// # Errors
/// The kernel refused.
pub fn interface_with(address: IpAddr) -> Result<Option<Interface>, HostError> {
    Links::open()?.with_address(address)
}

impl Network {
    /// Creates a namespace whose loopback interface is up.
    ///
    /// # Errors
    /// The kernel refused, most often because CAP_SYS_ADMIN is missing.
    pub fn create() -> Result<Network, HostError> {
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| not_made(e.into()))?;
            let network = Network::of_this_thread()?;
            Links::open()?.set_up("lo")?;
            Ok(network)
        })?
    }

    /// Opens the namespace of the calling thread.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn of_this_thread() -> Result<Network, HostError> {
        Network::at(NAMESPACE_OF_THREAD)
            .map_err(|e| HostError::refused(format!("open {NAMESPACE_OF_THREAD}"), e))
    }

    /// Opens the namespace of a process.
    ///
    /// # Errors
    /// The process has ended, or is another user's.
    pub fn of_process(pid: u32) -> Result<Network, HostError> {
        let path = format!("/proc/{pid}/ns/net");
        Network::at(&path).map_err(|e| HostError::refused(format!("open {path}"), e))
    }

    /// Opens the namespace of a file such as `/proc/PID/ns/net`.
    pub(crate) fn at(path: &str) -> io::Result<Network> {
        Ok(Network(Arc::new(File::open(path)?.into())))
    }

    /// Moves the calling thread into the namespace for good, and so all threads and processes that it starts from then
    /// on.
    ///
    /// `/proc/sys/net` and `/proc/thread-self/net` then show this namespace; `/proc/net` still shows the one of the
    /// process's first thread.
    ///
    /// # Errors
    /// The kernel refused, most often because CAP_SYS_ADMIN is missing.
    pub fn join(&self) -> Result<(), HostError> {
        let doing = "enter a network namespace";
        move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|e| {
            match e {
                Errno::PERM => {
                    HostError::NotPermitted { doing: doing.to_owned(), capability: "CAP_SYS_ADMIN" }
                }
                _ => HostError::refused(doing, e),
            }
        })
    }

    /// Runs `work` inside the namespace, on a thread of its own. A panic of `work` continues in the caller.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, HostError> {
        on_a_thread(|| self.join().map(|()| work()))?
    }

    /// Returns the number that identifies the namespace among all that exist: the inode number that `/proc/PID/ns/net`
    /// and lsns(8) show.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn id(&self) -> Result<u64, HostError> {
        rustix::fs::fstat(self.as_fd())
            .map(|status| status.st_ino)
            .map_err(|e| HostError::refused("look at a network namespace", e))
    }

    /// Lists the interfaces of the namespace.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn interfaces(&self) -> Result<Vec<Interface>, HostError> {
        self.within(Links::open)??.all()
    }
}

impl AsFd for Network {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Runs `work` on a thread of its own and waits for it.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, HostError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("network".to_owned())
            .spawn_scoped(scope, work)
            .map_err(|e| HostError::refused("start a thread", e))?;
        thread.join().map_err(|payload| panic::resume_unwind(payload))
    })
}

/// Converts an error of unshare(2).
fn not_made(source: io::Error) -> HostError {
    let doing = "make a network namespace";
    match Errno::from_io_error(&source) {
        Some(Errno::PERM) => {
            HostError::NotPermitted { doing: doing.to_owned(), capability: "CAP_SYS_ADMIN" }
        }
        Some(Errno::NOSPC) => HostError::TooManyNamespaces,
        Some(Errno::INVAL) => HostError::NoNamespaces,
        _ => HostError::refused(doing, source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unshare_means_is_said() {
        assert!(matches!(not_made(Errno::NOSPC.into()), HostError::TooManyNamespaces));
        assert!(matches!(not_made(Errno::INVAL.into()), HostError::NoNamespaces));
        assert!(matches!(not_made(Errno::NOMEM.into()), HostError::Refused { .. }));
        let hint = not_made(Errno::PERM.into()).hint();
        assert!(hint.is_some_and(|hint| hint.contains("CAP_SYS_ADMIN")));
    }
}
