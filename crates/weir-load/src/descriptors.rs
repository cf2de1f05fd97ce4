//! Limit of open file descriptors, of this process or of each of its threads.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sys::own_descriptor_table;

/// Returns true if a thread can be given its own descriptor table here, so that the limit applies to each thread. The
/// first call tries it on a thread that ends at once.
pub fn tables_can_be_own() -> bool {
    static CAN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *CAN.get_or_init(|| {
        let attempt = std::thread::Builder::new().spawn(|| own_descriptor_table().is_ok());
        attempt.is_ok_and(|thread| thread.join().unwrap_or(false))
    })
}

/// Raises the soft limit as far as the hard one allows, so that `needed` descriptors can be open.
///
/// # Errors
/// Returns the hard limit if it is below `needed` or the limit cannot be raised.
pub fn make_room(needed: u64) -> Result<(), u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(needed);
    let raised = Rlimit { current: Some(most.min(needed)), maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) if most >= needed => Ok(()),
        _ => Err(most),
    }
}
