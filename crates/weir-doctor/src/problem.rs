//! Problems that the rules find, with their figures, by subject.

mod cluster;

use serde::Serialize;

pub use cluster::ClusterProblem;

/// A problem or a remark. `id` identifies it, in words with hyphens: stable from version to version.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Problem {
    /// Problem of limits of connections and descriptors.
    Descriptor(DescriptorProblem),
    /// Problem of local ports.
    Port(PortProblem),
    /// Problem of queues of listeners.
    Queue(QueueProblem),
    /// Problem of the kernel's tables.
    Table(TableProblem),
    /// Problem of settings of connections and content.
    Http(HttpProblem),
    /// Problem of workers and CPUs.
    Cpu(CpuProblem),
    /// Problem of widespread advice.
    Advice(AdviceProblem),
    /// Problem of sysctl files.
    SysctlFile(SysctlFileProblem),
    /// Problem of pods of a cluster and their nodes.
    Cluster(ClusterProblem),
}

macro_rules! from_subjects {
    ($($subject:ident($problem:ident)),* $(,)?) => {
        $(impl From<$problem> for Problem {
            fn from(problem: $problem) -> Problem {
                Problem::$subject(problem)
            }
        })*
    };
}

from_subjects! {
    Descriptor(DescriptorProblem),
    Port(PortProblem),
    Queue(QueueProblem),
    Table(TableProblem),
    Http(HttpProblem),
    Cpu(CpuProblem),
    Advice(AdviceProblem),
    SysctlFile(SysctlFileProblem),
    Cluster(ClusterProblem),
}

impl Problem {
    /// Returns the identifier, as in the JSON form.
    pub fn id(&self) -> String {
        let form = serde_json::to_value(self).unwrap_or_default();
        form["id"].as_str().unwrap_or_default().to_owned()
    }
}

/// A problem of limits of connections and descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum DescriptorProblem {
    /// worker_connections allows fewer clients than the load has.
    WorkerConnectionsTooFew {
        /// Clients that it allows.
        room: u64,
        /// Clients at once.
        clients: u64,
    },
    /// A worker may open fewer descriptors than its share of the load needs.
    DescriptorsTooFew {
        /// Descriptors that a worker may open.
        limit: u64,
        /// Descriptors that it needs.
        needed: u64,
    },
    /// worker_connections is above the limit of descriptors.
    WorkerConnectionsAboveDescriptors {
        /// Connections of a worker.
        connections: u64,
        /// Descriptors that a worker may open.
        limit: u64,
    },
    /// worker_rlimit_nofile is not in force.
    RlimitNotTaken {
        /// Its value.
        set: u64,
        /// Descriptors that a worker may open.
        limit: u64,
    },
    /// A limit of descriptors is above fs.nr_open.
    DescriptorsAboveNrOpen {
        /// The limit that is set.
        set: u64,
        /// Bound of the kernel.
        nr_open: u64,
    },
    /// fs.file-max is too low for the load.
    FileMaxTooLow {
        /// Files that the host may open.
        most: u64,
        /// Files that it would need.
        needed: u64,
    },
    /// `nofile` is set in limits.conf, which services ignore.
    LimitsConfNotForServices {
        /// The proxy's unit.
        unit: String,
    },
}

/// A problem of local ports for connections to origin servers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum PortProblem {
    /// TIME_WAIT leaves no tuples for new connections to origin servers.
    OriginPortsRunOut {
        /// Requests per second that the load has.
        requests_per_second: f64,
        /// New connections per second for which tuples are free.
        connections_per_second: u64,
    },
    /// Fewer tuples than connections that may be open at once.
    OriginPortsTooFew {
        /// Clients at once.
        clients: u64,
        /// Local ports × addresses of origin servers.
        tuples: u64,
    },
    /// An outgoing connection may take a listener's port.
    ListenPortInRange {
        /// Such ports of listeners.
        ports: Vec<u64>,
    },
}

/// A problem of queues of listeners.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum QueueProblem {
    /// net.core.somaxconn is below a listener's backlog.
    BacklogCapped {
        /// The longest backlog of a listener.
        backlog: u64,
        /// Bound of the kernel.
        somaxconn: u64,
    },
    /// net.core.somaxconn was raised, and no listener has as long a backlog.
    SomaxconnInert {
        /// Bound of the kernel.
        somaxconn: u64,
        /// The longest backlog of a listener.
        backlog: u64,
        /// nginx's backlog where none is set.
        default_backlog: u64,
    },
    /// The running nginx was started under other settings.
    BacklogNotInForce {
        /// Length of the queue now.
        queue: u64,
        /// Length after a restart.
        settings: u64,
    },
    /// A queue is too short for a pause in accepting, or for all clients at once.
    BacklogShort {
        /// Length of the shortest queue.
        queue: u64,
        /// New connections per second that fill it during a short pause; `None` if only all clients at once do.
        connections_per_second: Option<f64>,
        /// Clients at once.
        clients: u64,
    },
    /// Queues have overflowed.
    ListenOverflows {
        /// Connections that found a queue full since boot.
        overflows: u64,
    },
    /// SYNs were dropped, or could be.
    SynQueueDrops {
        /// Number since boot.
        dropped: u64,
    },
    /// Clients that find a queue full are reset.
    AbortOnOverflow,
}

/// A problem of the kernel's tables and its memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum TableProblem {
    /// The table of tracked connections is too small for the load, or nearly full.
    ConntrackFull {
        /// Entries now.
        entries: u64,
        /// Maximum number of entries.
        most: u64,
        /// Entries that the load needs.
        needed: u64,
    },
    /// Sockets in TIME_WAIT beyond a number are destroyed.
    TimeWaitCutShort {
        /// Highest number of sockets in TIME_WAIT.
        sockets: u64,
    },
    /// tcp_mem is too small for the load, or larger than the memory.
    TcpMem {
        /// Pages that all sockets together may buffer.
        pages: u64,
        /// The least number of pages that the load needs.
        needed: u64,
        /// Clients at once.
        clients: u64,
    },
}

/// A problem of settings of connections and content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum HttpProblem {
    /// Connections to origin servers would be kept, and another setting closes them.
    OriginKeepaliveInert {
        /// True if the upstream block has `keepalive`, false if nginx keeps connections by default.
        is_set: bool,
        /// True if a `map` closes the connections of requests without an upgrade.
        is_map: bool,
    },
    /// No connections to origin servers are kept.
    OriginKeepaliveMissing,
    /// Connections are closed after fewer requests than by nginx's default.
    KeepaliveRequestsLow {
        /// The default of the newest nginx.
        default: u64,
    },
    /// No connections of clients are kept.
    ClientKeepaliveOff,
    /// gzip is applied to what is compressed already.
    GzipOfCompressed {
        /// Such media types.
        types: Vec<String>,
    },
    /// The access log has no buffer.
    AccessLogUnbuffered,
}

/// A problem of workers and the CPUs that they may use.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum CpuProblem {
    /// More workers than CPUs.
    WorkersAboveCpus {
        /// Number of workers.
        workers: u64,
        /// CPU time that they can have, in CPUs.
        cpus: f64,
    },
    /// Fewer workers than CPUs.
    WorkersBelowCpus {
        /// Number of workers.
        workers: u64,
        /// CPUs that they could use.
        cpus: u64,
    },
    /// Workers share a listener that gets many new connections.
    ListenersShared {
        /// Number of workers.
        workers: u64,
        /// New client connections per second.
        connections_per_second: f64,
    },
}

/// Widespread advice that does not, or no longer, have the effect it is given for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum AdviceProblem {
    /// fs.file-max is set.
    FileMaxAdvice {
        /// Its value.
        value: u64,
        /// The kernel's own value, about.
        kernel_value: u64,
    },
    /// tcp_fin_timeout is set.
    FinTimeoutAdvice,
    /// tcp_tw_reuse is set.
    TwReuseAdvice {
        /// True if timestamps are off, without which it does nothing.
        is_inert: bool,
    },
    /// Sizes of buffers are set that nginx's sockets do not have.
    SocketBuffersInert,
    /// tcp_max_syn_backlog is set while SYN cookies are on.
    SynBacklogInert,
    /// Settings are set that the kernel ignores.
    SysctlWithoutEffect,
    /// accept_mutex is on.
    AcceptMutexAdvice,
}

/// A problem of lines of sysctl files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum SysctlFileProblem {
    /// The kernel has no such sysctl.
    SysctlNoSuchName {
        /// The name in the file.
        name: String,
    },
    /// tcp_tw_recycle is set.
    TwRecycleAdvice {
        /// True if this kernel has it.
        exists: bool,
    },
    /// The range of local ports has one number.
    PortRangeHalf,
    /// The range of local ports begins at a privileged port.
    PortRangePrivileged {
        /// First port of the range.
        low: u64,
        /// First port that is not privileged.
        unprivileged: u64,
    },
    /// Both ends of the range of local ports are even, or both odd.
    PortRangeParity,
    /// A line is overridden by a later one.
    SysctlOverridden {
        /// Name of the sysctl.
        name: String,
        /// The value that wins.
        value: String,
    },
    /// A line has another value than the kernel.
    SysctlNotLive {
        /// Name of the sysctl.
        name: String,
        /// The kernel's value.
        live: String,
        /// The value in the file.
        in_file: String,
    },
    /// systemd does not read /etc/sysctl.conf.
    SysctlConfNotRead,
}
