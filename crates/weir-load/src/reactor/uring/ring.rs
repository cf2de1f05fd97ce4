//! The submission and completion queues shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::ptr;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Submitter, cqueue, opcode};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, addr::SocketAddrArg as _};

use super::tag::{Kind, Tag};
use crate::reactor::epoll::monotonic_ns;

/// Group of the provided buffers. A ring has only this one.
pub(super) const BUFFER_GROUP: u16 = 0;

/// Maximum number of bytes of content that one request drops.
const DROP_AT_MOST: u64 = 1 << 30;

/// Maximum number of system calls made when a ring is closed: each finishes some 20 requests.
const TURNS_AT_THE_END: u32 = 10_000;

/// Mode in which a send completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// The send is made at once and completes silently, or with a completion that contains the number of bytes sent.
    AtOnce,
    /// The send waits until all bytes have been taken, and then completes.
    Patient,
}

/// An io_uring of one thread.
pub(super) struct Ring {
    uring: IoUring,
    /// True if the kernel takes deadlines instead of durations (Linux 6.12), by the clock that is read here.
    absolute: bool,
    /// Requests for which the submission queue had no room.
    backlog: Vec<Entry>,
    /// Addresses of connections being opened: read when the request is submitted. Never grows, so that no address
    /// moves.
    addresses: Vec<SocketAddrAny>,
}

pub(super) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}

fn timespec(ns: u64) -> Timespec {
    Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32)
}

/// Returns true if this process has a clock offset of its own (time_namespaces(7)): deadlines nevertheless follow the
/// host's clock, as observed on Linux 6.18.
fn clock_is_moved() -> bool {
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let mut words = offsets.split_whitespace();
    words.find(|word| *word == "monotonic").is_some() && words.take(2).any(|offset| offset != "0")
}

impl Ring {
    /// Creates a ring with room for `requests` between two waits (more are possible) and for `completions` within a
    /// batch.
    ///
    /// # Errors
    /// The kernel has no io_uring, forbids it, or is older than Linux 6.1.
    pub(super) fn new(requests: u32, completions: u32) -> Result<Ring, Errno> {
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(completions)
            .build(requests)
            .map_err(|error| errno(&error))?;
        let mut ring = Ring {
            uring,
            absolute: true,
            backlog: Vec::new(),
            addresses: Vec::with_capacity(requests as usize),
        };
        // A deadline long gone: a kernel that does not know the flag says so.
        ring.absolute = !clock_is_moved() && ring.enter(Some(1)) != Err(Errno::INVAL);
        Ok(ring)
    }

    pub(super) fn submitter(&self) -> Submitter<'_> {
        self.uring.submitter()
    }

    pub(super) fn parameters(&self) -> &io_uring::Parameters {
        self.uring.params()
    }

    /// Makes waits use durations, as on kernels older than 6.12.
    #[cfg(test)]
    pub(super) fn by_duration(&mut self) {
        self.absolute = false;
    }

    // ---- requests -----------------------------------------------------------------------------

    /// Opens a connection.
    ///
    /// # Errors
    /// The kernel takes no requests at the moment.
    pub(super) fn connect(
        &mut self,
        fd: BorrowedFd<'_>,
        peer: std::net::SocketAddr,
        tag: Tag,
    ) -> Result<(), Errno> {
        if self.addresses.len() == self.addresses.capacity() {
            self.submit();
        }
        if self.addresses.len() == self.addresses.capacity() {
            return Err(Errno::AGAIN);
        }
        self.addresses.push(peer.as_any());
        let address = &self.addresses[self.addresses.len() - 1];
        let request =
            opcode::Connect::new(Fd(fd.as_raw_fd()), address.as_ptr().cast(), address.addr_len());
        // SAFETY: the kernel copies the address when the request is submitted
        // (IORING_FEAT_SUBMIT_STABLE); until then the address is neither moved nor removed, because
        // `addresses` does not grow beyond its capacity and is emptied only after a submission.
        unsafe { self.push(request.build(), tag) };
        Ok(())
    }

    /// Sends `len` bytes from `bytes` on.
    ///
    /// # Safety
    /// The bytes must stay mapped until the request has completed.
    pub(super) unsafe fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        bytes: *const u8,
        len: u32,
        sending: Sending,
        tag: Tag,
    ) {
        let how = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let request = opcode::Send::new(Fd(fd.as_raw_fd()), bytes, len);
        let request = match sending {
            // Success in full needs no completion: those that wait for answers are not woken for it.
            Sending::AtOnce => {
                request.flags(how | libc::MSG_DONTWAIT).build().flags(Flags::SKIP_SUCCESS)
            }
            Sending::Patient => request.flags(how).build(),
        };
        // SAFETY: the caller keeps the bytes.
        unsafe { self.push(request, tag) };
    }

    /// Receives into provided buffers whenever something comes, until cancelled.
    pub(super) fn receive_many(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        let request = opcode::RecvMulti::new(Fd(fd.as_raw_fd()), BUFFER_GROUP).build();
        // SAFETY: it points to nothing; provided buffers are the ring's for as long as it lives.
        unsafe { self.push(request, tag) };
    }

    /// Receives once, at most `len` bytes, into a provided buffer.
    pub(super) fn receive_one(&mut self, fd: BorrowedFd<'_>, len: u32, tag: Tag) {
        let request = opcode::Recv::new(Fd(fd.as_raw_fd()), ptr::null_mut(), len)
            .buf_group(BUFFER_GROUP)
            .build()
            .flags(Flags::BUFFER_SELECT);
        // SAFETY: as above.
        unsafe { self.push(request, tag) };
    }

    /// Drops at most `len` received bytes; the completion contains their number. With MSG_TRUNC, TCP drops bytes
    /// without accessing the buffer (tcp(7)).
    pub(super) fn drop_content(&mut self, fd: BorrowedFd<'_>, len: u64, tag: Tag) {
        let length = len.min(DROP_AT_MOST) as u32;
        let request = opcode::Recv::new(Fd(fd.as_raw_fd()), ptr::null_mut(), length)
            .flags(libc::MSG_TRUNC)
            .build();
        // SAFETY: nothing is mapped at the null pointer: a socket that did write would fail (EFAULT).
        unsafe { self.push(request, tag) };
    }

    /// Cancels the request with this tag.
    pub(super) fn cancel(&mut self, tag: Tag) {
        let request = opcode::AsyncCancel::new(tag.encode()).build().flags(Flags::SKIP_SUCCESS);
        // SAFETY: it points to nothing.
        unsafe { self.push(request, Tag::new(Kind::Tidy, 0, tag.number)) };
    }

    /// Closes a descriptor with the next submission.
    pub(super) fn close(&mut self, fd: OwnedFd) {
        let request = opcode::Close::new(Fd(fd.into_raw_fd())).build().flags(Flags::SKIP_SUCCESS);
        // SAFETY: it points to nothing, and the descriptor is nobody else's.
        unsafe { self.push(request, Tag::new(Kind::Tidy, 0, 0)) };
    }

    /// Queues a request; it waits in the backlog if the submission queue has no room.
    ///
    /// # Safety
    /// Memory to which the request points must stay mapped until the request has completed (an address: until it has
    /// been submitted).
    unsafe fn push(&mut self, request: Entry, tag: Tag) {
        let entry = request.user_data(tag.encode());
        if self.backlog.is_empty() {
            for _ in 0..2 {
                // SAFETY: the caller's promise.
                if unsafe { self.uring.submission().push(&entry) }.is_ok() {
                    return;
                }
                self.submit();
            }
        }
        self.backlog.push(entry);
    }

    /// Moves the backlog into the submission queue; returns true if all of it had room.
    fn refill(&mut self) -> bool {
        let mut queue = self.uring.submission();
        let room = (queue.capacity() - queue.len()).min(self.backlog.len());
        for request in self.backlog.drain(..room) {
            // SAFETY: who pushed it first has promised what is needed. There is room: no error.
            let _ = unsafe { queue.push(&request) };
        }
        self.backlog.is_empty()
    }

    // ---- the kernel's turn --------------------------------------------------------------------

    /// Submits all requests, as far as the kernel takes them, without waiting.
    pub(super) fn submit(&mut self) {
        loop {
            let complete = self.refill();
            // What the kernel did not take stays in the queue until the next time.
            let submitted = self.uring.submit().unwrap_or(0);
            if complete || submitted == 0 {
                break;
            }
        }
        self.forget_addresses();
    }

    fn forget_addresses(&mut self) {
        if self.backlog.is_empty() && self.uring.submission().is_empty() {
            self.addresses.clear();
        }
    }

    /// Submits all requests and waits for a completion or until the clock reaches `until`; does not wait if it is
    /// `None`.
    pub(super) fn turn(&mut self, until: Option<u64>) {
        if !self.backlog.is_empty() {
            self.submit();
        }
        let deadline = until.filter(|until| *until > monotonic_ns());
        let idle = {
            let queue = self.uring.submission();
            queue.is_empty() && !queue.taskrun() && !queue.cq_overflow()
        };
        if deadline.is_some() || !idle {
            // The outcomes that are not errors: time is over, a signal came, completions must be
            // taken before there is room for more. Each is a wait that reaped what is there.
            let _ = self.enter(deadline);
        }
        self.forget_addresses();
    }

    fn enter(&mut self, until: Option<u64>) -> Result<(), Errno> {
        let Some(until) = until else {
            return self.enter_with(0, EnterFlags::GETEVENTS, &SubmitArgs::new());
        };
        if self.absolute {
            let flags = EnterFlags::GETEVENTS | EnterFlags::ABS_TIMER;
            return self.enter_with(1, flags, &SubmitArgs::new().timespec(&timespec(until)));
        }
        // A duration would only begin to count when all requests have been carried out.
        self.submit();
        let remaining = timespec(until.saturating_sub(monotonic_ns()));
        self.enter_with(1, EnterFlags::GETEVENTS, &SubmitArgs::new().timespec(&remaining))
    }

    fn enter_with(
        &mut self,
        completions: u32,
        flags: EnterFlags,
        args: &SubmitArgs<'_, '_>,
    ) -> Result<(), Errno> {
        let requests = self.uring.submission().len() as u32;
        let flags = flags | EnterFlags::EXT_ARG;
        // SAFETY: EXT_ARG announces that the argument is what `SubmitArgs` is, and it lives until
        // the call returns.
        let result = unsafe {
            self.uring.submitter().enter(requests, completions, flags.bits(), Some(args))
        };
        result.map(drop).map_err(|error| errno(&error))
    }

    /// Takes the next completion.
    pub(super) fn pop(&mut self) -> Option<cqueue::Entry> {
        self.uring.completion().next()
    }

    /// Returns true if all completions have been taken, including those for which the queue had no room.
    pub(super) fn drained(&mut self) -> bool {
        self.uring.completion().is_empty() && !self.uring.submission().cq_overflow()
    }

    /// Cancels all requests and waits for their end: afterwards the kernel accesses no memory of this process.
    pub(super) fn cancel_all(&mut self) {
        self.submit();
        // ENOENT: there was nothing.
        let _ = self.uring.submitter().register_sync_cancel(None, CancelBuilder::any());
        // A call does a bounded part of the work that this leaves; what it leaves after many is
        // the end of requests, which the kernel sees to when the ring is closed.
        for _ in 0..TURNS_AT_THE_END {
            let _ = self.enter(None);
            self.uring.completion().for_each(drop);
            if !self.uring.submission().taskrun() {
                break;
            }
        }
    }
}
