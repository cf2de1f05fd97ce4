//! Room for connections: weir's own limit of open descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Makes room for `needed` descriptors as far as the hard limit allows.
///
/// # Errors
/// The limit that there is instead.
pub(crate) fn ensure(needed: u64) -> Result<(), u64> {
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
