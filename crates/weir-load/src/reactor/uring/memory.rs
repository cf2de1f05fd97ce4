//! Memory that the kernel reads and writes concurrently.

use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Zeroed pages, allocated when they are first touched. Accessible only through pointers: a reference would promise
/// that nobody else writes.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// Maps `len` bytes.
    ///
    /// # Errors
    /// No memory is left.
    pub(super) fn new(len: usize) -> Result<Mapping, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at a place of the kernel's choice overlaps nothing.
        let start = NonNull::new(
            unsafe { mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE) }?.cast(),
        )
        .ok_or(Errno::NOMEM)?;
        Ok(Mapping { start, len })
    }

    /// Returns a pointer to `len` bytes from `offset` on.
    ///
    /// # Panics
    /// The range is not within the mapping: a wrong index must not become a wrong write.
    pub(super) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: the assertion has shown that the result points into the mapping or to its end.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, pointers into it are used only through the owner
        // of the mapping, and the kernel has stopped using it: see the drop of the reactor.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
