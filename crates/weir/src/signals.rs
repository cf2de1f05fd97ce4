//! Ctrl-C and SIGTERM ask for an orderly end: trials stop, proxies stop, results are written.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Failure, INTERRUPTED};

/// A flag that the first signal sets. A second one ends weir at once; what it started dies with it
/// (see `weir-sut`'s launcher).
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: the shutdown looks at the flag before this signal has set it.
        flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
    }
    Ok(stop)
}
