//! Problems that the rules find, with their figures, by subject.

use serde::Serialize;

/// A problem or a remark. `id` identifies it, in words with hyphens: stable from version to version.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Problem {
    /// Of local ports.
    Port(PortProblem),
    /// Of queues of listeners.
    Queue(QueueProblem),
    /// Of the kernel's tables.
    Table(TableProblem),
    /// Of workers and CPUs.
    Cpu(CpuProblem),
    /// Not yet in figures.
    Text {
        /// Identifier of the rule.
        id: &'static str,
        /// Summary in one line.
        title: String,
        /// The mechanism.
        why: String,
    },
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
    Port(PortProblem),
    Queue(QueueProblem),
    Table(TableProblem),
    Cpu(CpuProblem),
}

impl Problem {
    /// Returns the identifier, as in the JSON form.
    pub fn id(&self) -> String {
        let form = serde_json::to_value(self).unwrap_or_default();
        form["id"].as_str().unwrap_or_default().to_owned()
    }
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
        /// That number.
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
