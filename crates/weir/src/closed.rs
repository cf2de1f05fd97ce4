//! Detection of a standard output that was closed when weir was started.
//!
//! Before `main`, Rust's runtime opens /dev/null in the place of a closed standard stream. Writes to it succeed and are
//! lost, and many programs give it to their children on purpose, so the two cases look the same afterwards. weir looks
//! before that, in a function that the C runtime calls (System V ABI, DT_INIT_ARRAY).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: an entry of the table of functions that are called before `main`. The function makes one system call and
// stores to an atomic, and needs nothing of Rust's runtime; the arguments that it is called with it does not read.
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let is_closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Refuses to print where nobody can read it.
///
/// # Errors
/// Standard output was closed when weir was started.
pub(crate) fn stdout_is_open() -> Result<(), Failure> {
    if WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(Failure::failed("standard output is closed, so nobody could read the result"));
    }
    Ok(())
}
