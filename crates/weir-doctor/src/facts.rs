//! What was read of a host and its proxy, without judgement. Whatever could not be read is `None`
//! or absent, and [`Facts::unread`] says why.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;

use crate::configuration::Configuration;

/// The load that the host is to carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asked {
    /// Client connections open at once.
    pub connections: Option<u64>,
    /// Requests per second.
    pub rate: Option<f64>,
    /// New client connections per second.
    pub connections_per_second: Option<f64>,
}

impl Asked {
    /// Whether any load was named.
    pub fn is_some(&self) -> bool {
        self.connections.is_some() || self.rate.is_some() || self.connections_per_second.is_some()
    }
}

/// A host and its proxy.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The load to judge by.
    pub asked: Asked,
    /// Release of the kernel, as uname(2) has it.
    pub kernel: Option<String>,
    /// Live sysctls by dotted name, in the proxy's network namespace.
    pub sysctls: BTreeMap<String, String>,
    /// Lines of sysctl files in the order in which systemd-sysctl(8) applies them: the last one of
    /// a key wins.
    pub sysctl_lines: Vec<SysctlLine>,
    /// Lines of limits.conf(5) files that set `nofile`.
    pub limit_lines: Vec<LimitLine>,
    /// What systemd gives the proxy's unit.
    pub unit_limit: Option<UnitLimit>,
    /// The proxy's processes, when it runs.
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
    /// What its control group leaves it.
    pub cgroup: Cgroup,
    /// What was looked at, for the reader.
    pub looked_at: Vec<String>,
    /// What could not be, and why.
    pub unread: Vec<Unread>,
}

impl Facts {
    /// A live sysctl that is one number.
    pub fn sysctl(&self, name: &str) -> Option<u64> {
        self.sysctls.get(name)?.parse().ok()
    }

    /// The numbers of a live sysctl that has several.
    pub fn sysctl_numbers(&self, name: &str) -> Vec<u64> {
        let text = self.sysctls.get(name).map_or("", String::as_str);
        text.split_ascii_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect()
    }

    /// Every line of the sysctl files that sets this key.
    pub fn lines_of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a SysctlLine> {
        self.sysctl_lines.iter().filter(move |line| line.key == key)
    }

    /// As evidence, the line of a key that wins at boot.
    pub(crate) fn winning_evidence(&self, key: &str) -> Option<String> {
        self.winning_line(key).map(SysctlLine::evidence)
    }

    /// The line of a key that wins at boot.
    pub fn winning_line(&self, key: &str) -> Option<&SysctlLine> {
        let mut lines = self.sysctl_lines.iter();
        lines.rfind(|line| line.applied && line.key == key)
    }
}

/// One assignment in a sysctl file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysctlLine {
    /// Path of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Dotted name.
    pub key: String,
    /// Value, blanks trimmed.
    pub value: String,
    /// Whether systemd-sysctl(8) reads this file at boot.
    pub applied: bool,
    /// Whether the kernel has the key: its file is under /proc/sys.
    pub exists: bool,
}

impl SysctlLine {
    /// `FILE:LINE: KEY = VALUE`.
    pub fn evidence(&self) -> String {
        let SysctlLine {
            file,
            line,
            key,
            value,
            ..
        } = self;
        format!("{file}:{line}: {key} = {value}")
    }
}

/// A line of limits.conf(5) about `nofile`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitLine {
    /// Path of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// As it stands.
    pub text: String,
}

/// LimitNOFILE= of a unit (systemd.exec(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitLimit {
    /// Name of the unit.
    pub unit: String,
    /// `FILE:LINE` and the assignment that counts, when there is one.
    pub evidence: Option<String>,
    /// Soft limit that it sets.
    pub soft: Option<u64>,
}

/// Processes of a proxy that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its master process.
    pub master: u32,
    /// Its workers.
    pub workers: Vec<Process>,
    /// The systemd unit that it runs in.
    pub unit: Option<String>,
    /// The program that it is, where that can be seen and named here.
    pub program: Option<String>,
    /// The folder that it was started with by `-p`.
    pub prefix: Option<String>,
    /// The configuration file that it was started with.
    pub file: Option<String>,
    /// Whether its root folder is another one than this process's, as in a container.
    pub own_root: bool,
    /// Whether its network namespace is another one than this process's.
    pub own_network: bool,
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Soft and hard limit of descriptors; `u64::MAX` is none.
    pub nofile: Option<(u64, u64)>,
}

/// A TCP socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// Where.
    pub address: SocketAddr,
    /// Connections that wait to be accepted.
    pub waiting: u32,
    /// How many may.
    pub backlog: u32,
}

/// Bounds of a control group, the tightest on the way to the root.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cgroup {
    /// CPUs' worth of time that it may use.
    pub cpus: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// Something that was looked for and not had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unread {
    /// What.
    pub what: String,
    /// Why not, and what it would take.
    pub why: String,
}
