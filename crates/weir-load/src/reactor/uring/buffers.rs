//! Receive buffers provided to the kernel, shared by all connections of a thread.

use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use rustix::io::Errno;

use super::memory::Mapping;
use super::ring::{BUFFER_GROUP, Ring, errno};

/// A buffer with received bytes; it belongs to user space until it is given back.
#[derive(Debug)]
pub(super) struct Lease(u16);

impl Lease {
    /// Returns the buffer that a completion carries, by its flags; `None` if it carries none.
    pub(super) fn of(flags: u32) -> Option<Lease> {
        io_uring::cqueue::buffer_select(flags).map(Lease)
    }
}

/// A ring of buffers. The first pages hold its entries in the kernel's format, the rest the buffers, whose memory is
/// allocated on first use.
pub(super) struct Buffers {
    memory: Mapping,
    /// Number of buffers, a power of two.
    count: u16,
    size: u32,
    /// Number of entries given to the kernel so far, wrapping.
    tail: u16,
}

impl Buffers {
    /// Returns the number of buffers.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// Returns the size of each buffer, bytes.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Registers `count` (a power of two) buffers of `size` bytes.
    ///
    /// # Errors
    /// No memory is left, or the kernel is older than Linux 5.19.
    pub(super) fn new(ring: &Ring, count: u16, size: u32) -> Result<Buffers, Errno> {
        let len = usize::from(count) * (size_of::<BufRingEntry>() + size as usize);
        let mut buffers = Buffers { memory: Mapping::new(len)?, count, size, tail: 0 };
        let entries = buffers.entry(0) as u64;
        // SAFETY: the entries are page-aligned, `count` of them, and stay mapped until `self` is
        // dropped, which happens after the ring was.
        let registered = unsafe {
            ring.submitter().register_buf_ring_with_flags(entries, count, BUFFER_GROUP, 0)
        };
        registered.map_err(|error| errno(&error))?;
        (0..count).for_each(|id| buffers.give_back(Lease(id)));
        Ok(buffers)
    }

    fn entry(&self, index: u16) -> *mut BufRingEntry {
        let size = size_of::<BufRingEntry>();
        self.memory.at(usize::from(index) * size, size).cast()
    }

    fn start(&self, id: u16, len: usize) -> *mut u8 {
        assert!(id < self.count && len <= self.size as usize);
        let entries = usize::from(self.count) * size_of::<BufRingEntry>();
        let offset = entries + usize::from(id) * self.size as usize;
        self.memory.at(offset, len)
    }

    /// Returns the first `len` bytes of a buffer.
    pub(super) fn bytes(&mut self, lease: &Lease, len: usize) -> &mut [u8] {
        let start = self.start(lease.0, len);
        // SAFETY: the range is the buffer's own, mapped and initialized (to zero, then by the
        // kernel). The kernel writes to a buffer only between its publication and the completion
        // that brings the lease, and the lease exists.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Returns a buffer to the kernel.
    pub(super) fn give_back(&mut self, lease: Lease) {
        let start = self.start(lease.0, self.size as usize);
        let entry = self.entry(self.tail & (self.count - 1));
        // SAFETY: the entry is inside of the mapping and aligned. The kernel does not read it: it
        // reads entries before the tail, and at most `count` buffers exist, so this one is behind.
        // The tail lies in a part of the first entry that the setters leave alone.
        unsafe {
            (*entry).set_addr(start as u64);
            (*entry).set_len(self.size);
            (*entry).set_bid(lease.0);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the first entry is mapped, and its tail is only accessed atomically by both sides.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entry(0)).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}
