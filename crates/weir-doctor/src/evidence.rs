//! Evidence of findings: what was read, and what was calculated from it.

mod cluster;

use serde::Serialize;

pub use cluster::{ClusterEvidence, NodeTable};

use crate::configuration::Statement;
use crate::facts::{Facts, FileLine, Listener, SysctlLine, UnitLimit};

/// One piece of evidence. `kind` says which.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Evidence {
    /// Read in a file.
    File(FileEvidence),
    /// Read from the kernel.
    Host(HostEvidence),
    /// Calculated.
    Calculation(Calculation),
    /// Read from a Kubernetes cluster.
    Cluster(ClusterEvidence),
}

macro_rules! from_origins {
    ($($origin:ident($evidence:ident)),* $(,)?) => {
        $(impl From<$evidence> for Evidence {
            fn from(evidence: $evidence) -> Evidence {
                Evidence::$origin(evidence)
            }
        })*
    };
}

from_origins! {
    File(FileEvidence),
    Host(HostEvidence),
    Calculation(Calculation),
    Cluster(ClusterEvidence),
}

/// Evidence that was read in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileEvidence {
    /// A directive of nginx, or a line of another file.
    Line(FileLine),
    /// A directive that is not set.
    Unset {
        /// Name of the directive.
        name: String,
        /// nginx's default.
        default: String,
    },
    /// A listener that has nginx's default backlog, which is long.
    DefaultBacklog {
        /// The `listen` directive.
        #[serde(flatten)]
        listen: FileLine,
        /// nginx's default.
        backlog: u64,
    },
    /// A listener that has nginx's default backlog, which is short.
    BacklogUnset {
        /// The `listen` directive.
        #[serde(flatten)]
        listen: FileLine,
        /// nginx's default.
        backlog: u64,
    },
    /// `proxy_http_version` is not set, in an nginx in which 1.0 is the default.
    HttpVersionUnset,
    /// The `Connection` header is not set, in an nginx in which `close` is the default.
    ConnectionUnset,
    /// `keepalive_requests` is not set.
    RequestsUnset {
        /// The default of this nginx.
        default: u64,
        /// Version of nginx with a higher default.
        until: String,
    },
    /// A balancing method that replaces the `keepalive` in front of it.
    BehindKeepalive(FileLine),
    /// Further places that pass requests on.
    FurtherPlaces {
        /// Their number.
        places: usize,
    },
    /// nginx's version is not known, and taken to be an old one.
    UnknownVersion,
    /// No `listen` directive sets the size of a buffer.
    NoSocketBuffers,
    /// A line of a sysctl file.
    SysctlLine(SysctlLine),
    /// A line of a sysctl file that a later one overrides.
    OverriddenLine(SysctlLine),
    /// The line that overrides it.
    WinningLine(SysctlLine),
    /// A line of a sysctl file that differs from the kernel.
    LineNotLive {
        /// The line.
        #[serde(flatten)]
        line: SysctlLine,
        /// The kernel's value.
        live: String,
    },
    /// The name of a sysctl that a line has with /proc/sys/ in front of it.
    SysctlName {
        /// The name.
        name: String,
    },
    /// No file in sysctl.d leads to /etc/sysctl.conf.
    NoLinkToSysctlConf,
    /// A limit of descriptors of the proxy's unit.
    UnitLimit(UnitLimit),
}

/// Evidence that was read from the kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HostEvidence {
    /// A live sysctl.
    Sysctl {
        /// Dotted name.
        name: String,
        /// Value, runs of blanks replaced by single ones.
        value: String,
    },
    /// Soft limit of a worker's descriptors.
    WorkerLimit {
        /// Process id of the worker.
        pid: u32,
        /// The limit; `u64::MAX`: none.
        soft: u64,
    },
    /// Hard limit of a worker's descriptors.
    HardLimit {
        /// Process id of the worker.
        pid: u32,
        /// The limit; `u64::MAX`: none.
        hard: u64,
    },
    /// Soft limit of all workers' descriptors.
    WorkersLimit {
        /// The limit; `u64::MAX`: none.
        limit: u64,
        /// Evidence of it.
        evidence: Box<Evidence>,
    },
    /// Files that the host has open now.
    OpenFiles {
        /// Their number.
        files: u64,
    },
    /// A range of local ports in which those of listeners are not reserved.
    UnreservedPorts {
        /// First port of the range.
        low: u64,
        /// Last port of the range.
        high: u64,
    },
    /// Queue of a listener now.
    Queue {
        /// Local address.
        address: String,
        /// Connections that wait to be accepted.
        waiting: u32,
        /// Connections that may wait.
        backlog: u32,
    },
    /// Overflows of accept queues since boot.
    ListenCounters {
        /// `ListenOverflows`.
        overflows: u64,
        /// `ListenDrops`.
        drops: u64,
    },
    /// A counter since boot (`TcpExt`).
    Counter {
        /// Its name.
        name: &'static str,
        /// Its value.
        count: u64,
    },
    /// Entries of the table of TIME_WAIT now.
    TimeWaitEntries {
        /// Number of entries.
        entries: u64,
    },
    /// Sockets in TIME_WAIT now.
    TimeWaitSockets {
        /// Their number.
        sockets: u64,
    },
    /// Memory of the host.
    Memory {
        /// Its size in bytes.
        bytes: u64,
    },
    /// CPUs that are online.
    CpusOnline {
        /// Number of CPUs.
        cpus: u64,
    },
    /// CPUs that the proxy may run on.
    CpusAllowed {
        /// Number of CPUs.
        cpus: u64,
    },
    /// CPU time that the proxy's control group may use.
    CpuQuota {
        /// Time in CPUs.
        cpus: f64,
    },
}

/// Evidence that was calculated from figures of the load and of settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Calculation {
    /// Connections of all workers, and those that clients take.
    WorkerConnections {
        /// Number of workers.
        workers: u64,
        /// Connections of each worker.
        connections: u64,
        /// Clients at once.
        clients: u64,
        /// Connections that they take.
        needed: u64,
    },
    /// Descriptors that a worker needs.
    Descriptors {
        /// Clients at once, with two descriptors each.
        clients: u64,
        /// Number of workers.
        workers: u64,
        /// Descriptors of a worker other than those of clients.
        of_its_own: u64,
        /// Descriptors in all.
        needed: u64,
    },
    /// Files that the kernel allows by itself, by the memory of the host.
    FilesByMemory {
        /// Memory in bytes.
        memory_bytes: u64,
        /// Number of files.
        files: u64,
    },
    /// Tuples that TIME_WAIT occupies.
    OccupiedTuples {
        /// New connections to origin servers per second.
        connections_per_second: f64,
        /// Seconds for which each occupies a tuple after its end.
        held_s: f64,
        /// Occupied tuples.
        tuples: u64,
    },
    /// Tuples that there are.
    Tuples {
        /// The local ports.
        #[serde(flatten)]
        ports: LocalPorts,
        /// Addresses of origin servers.
        origins: u64,
        /// Local ports × addresses.
        tuples: u64,
    },
    /// Local ports for each address of an origin server.
    PortsForOrigins {
        /// The local ports.
        #[serde(flatten)]
        ports: LocalPorts,
        /// Addresses of origin servers.
        origins: u64,
    },
    /// Connections that come during a pause in accepting.
    Burst {
        /// New connections per second.
        connections_per_second: f64,
        /// Length of the pause in seconds.
        pause_s: f64,
        /// Connections in that time.
        connections: u64,
    },
    /// Clients that may all connect at once.
    Reconnection {
        /// Number of clients.
        clients: u64,
    },
    /// Entries that connections take in the table of tracked connections.
    TrackedConnections {
        /// Connections open at once.
        open: u64,
        /// New connections per second.
        connections_per_second: f64,
        /// Seconds for which a closed connection keeps its entry.
        held_s: u64,
        /// Entries in all.
        needed: u64,
    },
    /// Connections of the load that a node of a cluster tracks.
    NodeConnections {
        /// Connections open at once, those of the proxy to backends included.
        open: u64,
        /// Closed connections that are tracked still.
        closed: u64,
        /// Seconds for which they are.
        held_s: f64,
    },
    /// Memory that all TCP sockets together may have.
    TcpMemory {
        /// Number of pages.
        pages: u64,
        /// Size of a page in bytes.
        page_bytes: u64,
    },
}

/// Ports for outgoing connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LocalPorts {
    /// First port of the range.
    pub low: u64,
    /// Last port of the range.
    pub high: u64,
    /// Ports of the range that are not reserved.
    pub ports: u64,
}

impl Statement {
    /// Returns the directive without its block, and its place.
    pub fn place(&self) -> FileLine {
        FileLine { file: self.file.to_string(), line: self.line, text: self.words() }
    }
}

impl From<&Statement> for Evidence {
    fn from(statement: &Statement) -> Evidence {
        FileEvidence::Line(statement.place()).into()
    }
}

impl From<&SysctlLine> for Evidence {
    fn from(line: &SysctlLine) -> Evidence {
        FileEvidence::SysctlLine(line.clone()).into()
    }
}

impl From<Listener> for Evidence {
    fn from(listener: Listener) -> Evidence {
        let Listener { address, waiting, backlog } = listener;
        HostEvidence::Queue { address: address.to_string(), waiting, backlog }.into()
    }
}

impl Facts {
    /// Returns a live sysctl as evidence; `None` if it could not be read.
    pub(crate) fn live(&self, name: &str) -> Option<Evidence> {
        let value = self.sysctls.get(name)?;
        Some(HostEvidence::Sysctl { name: name.to_owned(), value: value.clone() }.into())
    }
}
