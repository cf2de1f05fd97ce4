//! The user's wish that weir ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Flag that is set when the user wants weir to end.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Says which flag is set when the user wants weir to end. The first one counts.
pub(crate) fn watch(stop: &Arc<AtomicBool>) {
    let _ = STOP.set(Arc::clone(stop));
}

/// Returns true if the user wants weir to end.
pub fn is_stopped() -> bool {
    STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
}
