//! Proxies whose own counters are read.

use weir_host::Network;
use weir_sut::{OwnCounters, RequestLog};

/// A proxy whose own counters are read.
pub(super) struct CountingProxy {
    /// Name of the proxy's arm.
    pub(super) arm: String,
    pub(super) network: Option<Network>,
    pub(super) counters: OwnCounters,
    /// Reader of the requests that the proxy logs; `None`: it logs none for weir.
    pub(super) requests: Option<RequestLog>,
}
