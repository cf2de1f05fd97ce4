//! The two system calls that no safe library offers.
#![allow(unsafe_code, reason = "each block says why it is sound")]

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// Gives the calling thread a descriptor table of its own, with copies of all descriptors that are open now.
///
/// RLIMIT_NOFILE limits every table (getrlimit(2)), so each thread may then have as many descriptors as the whole
/// process had before; and no other thread's `socket`, `close` or `recv` contends for the table's lock. Descriptors
/// that the thread opens are its own: their numbers must not be passed to other threads. The copies are closed when the
/// thread ends.
///
/// # Errors
/// Not allowed here (seccomp), or no memory; the thread then shares the table as before.
pub(crate) fn own_descriptor_table() -> Result<(), Errno> {
    // SAFETY: unshare(CLONE_FILES) reads and writes no memory of ours. Numbers of descriptors that
    // this thread was given before stay valid, and what it opens afterwards it never hands to
    // another thread: a reactor and its sockets are made and dropped on the thread that uses them.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }
}

/// Lets a socket that is bound to an address get its port only when it connects (IP_BIND_ADDRESS_NO_PORT, ip(7)): the
/// port need then be free only for that peer.
///
/// # Errors
/// The kernel does not know the option (before Linux 4.2).
pub(crate) fn bind_address_no_port(socket: impl AsFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is one c_int, which lives until the call returns; the descriptor is
    // open for as long as it is borrowed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}
