//! Buffers that the kernel takes from when bytes come, shared by all connections of a thread.

use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use rustix::io::Errno;

use super::memory::Mapping;
use super::ring::{BUFFER_GROUP, Ring, errno};

/// A buffer that holds received bytes, and is ours until it is given back.
#[derive(Debug)]
pub(super) struct Lease(u16);

impl Lease {
    /// The buffer that a completion came with.
    pub(super) fn of(flags: u32) -> Option<Lease> {
        io_uring::cqueue::buffer_select(flags).map(Lease)
    }
}

/// A ring of buffers. The first pages hold its entries, as the kernel wants them, the rest the
/// buffers, which become memory when they are first used.
pub(super) struct Buffers {
    memory: Mapping,
    /// A power of two.
    count: u16,
    size: u32,
    /// Entries given to the kernel so far.
    tail: u16,
}

impl Buffers {
    /// How many there are.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// Bytes of each.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Registers `count` (a power of two) buffers of `size` bytes.
    ///
    /// # Errors
    /// No memory, or the kernel is older than Linux 5.19.
    pub(super) fn new(ring: &Ring, count: u16, size: u32) -> Result<Buffers, Errno> {
        let len = usize::from(count) * (size_of::<BufRingEntry>() + size as usize);
        let mut buffers = Buffers {
            memory: Mapping::new(len)?,
            count,
            size,
            tail: 0,
        };
        let entries = buffers.entry(0) as u64;
        // SAFETY: the entries are page-aligned, `count` of them, and stay mapped until `self` is
        // dropped, which happens after the ring was.
        let registered = unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(entries, count, BUFFER_GROUP, 0)
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

    /// The first `len` bytes of a buffer.
    pub(super) fn bytes(&mut self, lease: &Lease, len: usize) -> &mut [u8] {
        let start = self.start(lease.0, len);
        // SAFETY: the range is the buffer's own, mapped and initialized (to zero, then by the
        // kernel). The kernel writes to a buffer only between its publication and the completion
        // that brings the lease, and the lease exists.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Lets the kernel use a buffer again.
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
