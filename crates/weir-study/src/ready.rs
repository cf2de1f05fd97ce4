//! The studies that come with weir.

/// A study that can be run by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyMade {
    /// What `weir run` calls it: the name in the file.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

const STUDIES: [ReadyMade; 16] = [
    ReadyMade {
        name: "stock-reverse-proxy",
        text: include_str!("../../../studies/stock-reverse-proxy.yaml"),
    },
    ReadyMade {
        name: "static-files",
        text: include_str!("../../../studies/static-files.yaml"),
    },
    ReadyMade {
        name: "requests-by-workers",
        text: include_str!("../../../studies/requests-by-workers.yaml"),
    },
    ReadyMade {
        name: "tls-transactions-by-workers",
        text: include_str!("../../../studies/tls-transactions-by-workers.yaml"),
    },
    ReadyMade {
        name: "throughput-by-workers",
        text: include_str!("../../../studies/throughput-by-workers.yaml"),
    },
    ReadyMade {
        name: "held-connections",
        text: include_str!("../../../studies/held-connections.yaml"),
    },
    ReadyMade {
        name: "kernel-backlog",
        text: include_str!("../../../studies/kernel-backlog.yaml"),
    },
    ReadyMade {
        name: "which-proxy",
        text: include_str!("../../../studies/which-proxy.yaml"),
    },
    ReadyMade {
        name: "tls-termination",
        text: include_str!("../../../studies/tls-termination.yaml"),
    },
    ReadyMade {
        name: "kernel-bypass",
        text: include_str!("../../../studies/kernel-bypass.yaml"),
    },
    ReadyMade {
        name: "kernel-bypass-direct",
        text: include_str!("../../../studies/kernel-bypass-direct.yaml"),
    },
    ReadyMade {
        name: "worker-count",
        text: include_str!("../../../studies/worker-count.yaml"),
    },
    ReadyMade {
        name: "port-range",
        text: include_str!("../../../studies/port-range.yaml"),
    },
    ReadyMade {
        name: "keepalive-requests",
        text: include_str!("../../../studies/keepalive-requests.yaml"),
    },
    ReadyMade {
        name: "ingress-matrix",
        text: include_str!("../../../studies/ingress-matrix.yaml"),
    },
    ReadyMade {
        name: "same-twice",
        text: include_str!("../../../studies/same-twice.yaml"),
    },
];

/// The ready-made studies, the one to begin with first.
pub fn studies() -> &'static [ReadyMade] {
    &STUDIES
}
