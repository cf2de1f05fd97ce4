//! Proxies that are asked what they count of themselves.

use weir_host::Network;
use weir_sut::{OwnCounters, RequestLog};

/// A proxy that counts itself.
pub(super) struct CountingProxy {
    /// Its arm's name.
    pub(super) arm: String,
    pub(super) network: Option<Network>,
    pub(super) counters: OwnCounters,
    /// What reads the requests that it logs; `None`: it logs none for weir.
    pub(super) requests: Option<RequestLog>,
}
