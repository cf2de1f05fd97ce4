//! Room for connections: this process's own limit of open descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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
