//! Room for connections: the limit of open descriptors, of this process or of each of its threads.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sys::own_descriptor_table;

/// Whether a thread can be given a table of descriptors of its own here, so that the limit is one
/// for each thread. It is tried out once, on a thread that ends at once.
pub fn tables_can_be_own() -> bool {
    static CAN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *CAN.get_or_init(|| {
        let attempt = std::thread::Builder::new().spawn(|| own_descriptor_table().is_ok());
        attempt.is_ok_and(|thread| thread.join().unwrap_or(false))
    })
}

/// Makes room for `needed` descriptors: raises the soft limit as far as the hard one allows.
///
/// # Errors
/// The hard limit, when that is not enough.
pub fn make_room(needed: u64) -> Result<(), u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(needed);
    let raised = Rlimit {
        current: Some(most.min(needed)),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) if most >= needed => Ok(()),
        _ => Err(most),
    }
}
