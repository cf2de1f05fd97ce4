//! Studies that come with weir.

/// A study that can be run by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyMade {
    /// Name for `weir run`, as in the file.
    pub name: &'static str,
    /// Text of the file.
    pub text: &'static str,
}

/// Expands to the study of this name in the folder `studies`.
macro_rules! study {
    ($name:literal) => {
        ReadyMade { name: $name, text: include_str!(concat!("../../../studies/", $name, ".yaml")) }
    };
}

const STUDIES: [ReadyMade; 19] = [
    study!("stock-reverse-proxy"),
    study!("static-files"),
    study!("requests-by-workers"),
    study!("tls-transactions-by-workers"),
    study!("throughput-by-workers"),
    study!("held-connections"),
    study!("kernel-backlog"),
    study!("capacity"),
    study!("capacity-of-proxies"),
    study!("which-proxy"),
    study!("tls-termination"),
    study!("kernel-bypass"),
    study!("kernel-bypass-direct"),
    study!("worker-count"),
    study!("cpus"),
    study!("port-range"),
    study!("keepalive-requests"),
    study!("ingress-matrix"),
    study!("same-twice"),
];

/// Returns the ready-made studies. The first is the one to begin with.
pub fn studies() -> &'static [ReadyMade] {
    &STUDIES
}
