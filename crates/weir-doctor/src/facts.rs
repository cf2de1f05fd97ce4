//! Facts read from a host and its proxy, without judgement. A fact that could not be read is `None` or absent, and
//! [`Facts::unread`] says why.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;

use crate::configuration::Configuration;

/// The load that the host is to carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadDemand {
    /// Client connections open at once.
    pub connections: Option<u64>,
    /// Requests per second.
    pub rate: Option<f64>,
    /// New client connections per second.
    pub connections_per_second: Option<f64>,
}

impl LoadDemand {
    /// Returns true if any load was given.
    pub fn is_some(&self) -> bool {
        self.connections.is_some() || self.rate.is_some() || self.connections_per_second.is_some()
    }
}

/// A host and its proxy.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The load to judge by.
    pub asked: LoadDemand,
    /// Release of the kernel, as in uname(2).
    pub kernel: Option<String>,
    /// Live sysctls by dotted name, in the proxy's network namespace.
    pub sysctls: BTreeMap<String, String>,
    /// Lines of sysctl files in the order in which systemd-sysctl(8) applies them: the last one of
    /// a key wins.
    pub sysctl_lines: Vec<SysctlLine>,
    /// Lines of limits.conf(5) files that set `nofile`.
    pub limit_lines: Vec<FileLine>,
    /// Descriptor limit that systemd gives the proxy's unit.
    pub unit_limit: Option<UnitLimit>,
    /// Processes of the running proxy; `None` if no proxy runs.
    pub proxy: Option<Proxy>,
    /// Version of nginx, as in `1.22.1`.
    pub nginx_version: Option<[u32; 3]>,
    /// The proxy's configuration.
    pub configuration: Option<Configuration>,
    /// TCP listeners and the queues that the kernel keeps for them.
    pub listeners: Option<Vec<Listener>>,
    /// `TcpExt` counters since boot (proc_pid_net(5)), in the proxy's network namespace.
    pub counters: BTreeMap<String, u64>,
    /// TCP sockets in TIME_WAIT now.
    pub time_wait: Option<u64>,
    /// Open file handles of the whole host (first number of fs.file-nr).
    pub open_files: Option<u64>,
    /// CPUs online.
    pub cpus_online: Option<u64>,
    /// CPUs that the proxy may run on.
    pub cpus_allowed: Option<u64>,
    /// Memory of the host, bytes.
    pub memory_bytes: Option<u64>,
    /// Bounds set by the proxy's control group.
    pub cgroup: Cgroup,
    /// Sources that were read.
    pub looked_at: Vec<Reading>,
    /// Sources that could not be read, and why.
    pub unread: Vec<Unread>,
}

impl Facts {
    /// Returns a live sysctl that is a single number.
    pub fn sysctl(&self, name: &str) -> Option<u64> {
        self.sysctls.get(name)?.parse().ok()
    }

    /// Returns the numbers of a live sysctl that has several.
    pub fn sysctl_numbers(&self, name: &str) -> Vec<u64> {
        let text = self.sysctls.get(name).map_or("", String::as_str);
        text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
    }

    /// Iterates over the lines of sysctl files that set this key.
    pub fn lines_of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a SysctlLine> {
        self.sysctl_lines.iter().filter(move |line| line.key == key)
    }

    /// Returns the line of a key that wins at boot.
    pub fn winning_line(&self, key: &str) -> Option<&SysctlLine> {
        let mut lines = self.sysctl_lines.iter();
        lines.rfind(|line| line.applied && line.key == key)
    }
}

/// One assignment in a sysctl file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SysctlLine {
    /// Path of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Dotted name.
    pub key: String,
    /// Value, blanks trimmed.
    pub value: String,
    /// True if systemd-sysctl(8) reads this file at boot.
    pub applied: bool,
    /// True if the kernel has this key, with a file under /proc/sys.
    pub exists: bool,
}

/// A line of a file, or the beginning of a directive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileLine {
    /// Path of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Words of the line or the directive, without a comment.
    pub text: String,
}

/// LimitNOFILE= of a unit (systemd.exec(5)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnitLimit {
    /// Name of the unit.
    pub unit: String,
    /// Soft limit of descriptors; `u64::MAX` for infinity, `None` if it is not a number.
    pub soft: Option<u64>,
    /// Place where it is set.
    #[serde(flatten)]
    pub origin: LimitOrigin,
}

/// Origin of a unit's limit of descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "origin", rename_all = "snake_case")]
pub enum LimitOrigin {
    /// LimitNOFILE= of the unit.
    Unit(FileLine),
    /// DefaultLimitNOFILE= of systemd's configuration.
    Manager(FileLine),
    /// The default of systemd itself.
    Default,
}

/// Processes of a running proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Process id of the master.
    pub master: u32,
    /// Worker processes.
    pub workers: Vec<Process>,
    /// The systemd unit that the proxy runs in; `None` if it is not a service of the system.
    pub unit: Option<String>,
    /// Path of the running program; `None` if it cannot be read or is not this file on this host.
    pub program: Option<String>,
    /// Folder given by `-p` when the proxy was started.
    pub prefix: Option<String>,
    /// Path of the configuration file that the proxy was started with.
    pub file: Option<String>,
    /// True if its root folder differs from this process's, as in a container.
    pub own_root: bool,
    /// True if its network namespace differs from this process's.
    pub own_network: bool,
}

/// A worker process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Soft and hard limit of descriptors; `u64::MAX` means unlimited.
    pub nofile: Option<(u64, u64)>,
}

/// A listening TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// Local address.
    pub address: SocketAddr,
    /// Connections waiting to be accepted.
    pub waiting: u32,
    /// Maximum number of connections that may wait.
    pub backlog: u32,
}

/// Bounds of a control group, the tightest on the way to the root.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cgroup {
    /// CPU time that the group may use, in CPUs.
    pub cpus: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// A source that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Reading {
    /// Processes of nginx.
    Processes {
        /// Process id of the master.
        master: u32,
        /// Number of workers.
        workers: usize,
    },
    /// nginx's configuration.
    Configuration {
        /// Path of the main file.
        file: String,
        /// Number of files, each counted as often as it is included.
        files: usize,
    },
    /// Version that nginx reports.
    Version {
        /// Path of the program.
        program: String,
        /// The version.
        version: String,
    },
    /// The proxy's own network namespace.
    Network,
    /// Live sysctls.
    Sysctls {
        /// Number of sysctls.
        count: usize,
    },
    /// `TcpExt` counters.
    Counters,
    /// Listeners and their queues.
    Listeners,
    /// Limits of control groups.
    ControlGroups,
    /// Sysctl files.
    SysctlFiles {
        /// Number of assignments.
        assignments: usize,
    },
    /// limits.conf(5) files.
    LimitsConf,
    /// The proxy's unit.
    Unit {
        /// Its name.
        name: String,
    },
    /// Pods of a cluster.
    Pods {
        /// Their namespace.
        namespace: String,
        /// Context of kubectl's configuration.
        context: String,
        /// Number of pods.
        pods: usize,
    },
    /// Nodes of a cluster.
    Nodes {
        /// Their names.
        names: Vec<String>,
    },
}

/// A source that was looked for and could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unread {
    /// The source.
    pub what: String,
    /// Reason, and the remedy if there is one.
    pub why: String,
}
