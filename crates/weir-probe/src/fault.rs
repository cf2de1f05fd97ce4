//! Points at which tests of the whole program make it panic. A release build has none.

/// Panics at the pass named by the environment variable `WEIR_FAULT`, `PLACE:PASS` (the first pass is 1). Does nothing
/// in a build without debug assertions.
pub fn at(place: &str) {
    #[cfg(debug_assertions)]
    {
        use std::sync::OnceLock;
        use std::sync::atomic::{AtomicU64, Ordering};
        static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
        static PASSED: AtomicU64 = AtomicU64::new(0);
        let wanted = WANTED.get_or_init(|| {
            let text = std::env::var("WEIR_FAULT").ok()?;
            let (place, pass) = text.split_once(':')?;
            Some((place.to_owned(), pass.parse().ok()?))
        });
        let Some((wanted, pass)) = wanted else { return };
        if wanted == place && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *pass {
            panic!("a fault that a test asked for, at `{place}`");
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = place;
}
