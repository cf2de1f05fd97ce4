//! Findings of `weir doctor`: title and mechanism.

mod cluster;
mod evidence;
mod examination;

use weir_doctor::{
    AdviceProblem, CpuProblem, DescriptorProblem, HttpProblem, PortProblem, Problem, QueueProblem,
    SysctlFileProblem, TableProblem,
};
use weir_sentences::doctor::{mechanism, title};

use super::Row;

pub(super) use cluster::{evidence_rows as cluster_evidence, rows as cluster};
pub(super) use evidence::{calculations, of_files, of_hosts};
pub(super) use examination::{readings, rows as examination};

fn row(case: &'static str, subject_problem: impl Into<Problem>) -> Row {
    let problem = subject_problem.into();
    (case, format!("{}\n{}", title(&problem), mechanism(&problem)))
}

pub(super) fn limits() -> Vec<Row> {
    vec![
        row(
            "Too few connections of workers",
            DescriptorProblem::WorkerConnectionsTooFew { room: 768, clients: 1000 },
        ),
        row(
            "Too few descriptors",
            DescriptorProblem::DescriptorsTooFew { limit: 1024, needed: 10_032 },
        ),
        row(
            "More connections than descriptors",
            DescriptorProblem::WorkerConnectionsAboveDescriptors {
                connections: 65_535,
                limit: 1024,
            },
        ),
        row(
            "A limit that workers do not have",
            DescriptorProblem::RlimitNotTaken { set: 65_535, limit: 1024 },
        ),
        row(
            "A limit above that of the kernel",
            DescriptorProblem::DescriptorsAboveNrOpen { set: 2_000_000, nr_open: 1_048_576 },
        ),
        row(
            "Too few files of the host",
            DescriptorProblem::FileMaxTooLow { most: 10_000, needed: 21_312 },
        ),
        row(
            "A limit in limits.conf",
            DescriptorProblem::LimitsConfNotForServices { unit: "nginx.service".to_owned() },
        ),
        row("More workers than CPUs", CpuProblem::WorkersAboveCpus { workers: 2, cpus: 0.5 }),
        row("Fewer workers than CPUs", CpuProblem::WorkersBelowCpus { workers: 1, cpus: 8 }),
        row(
            "A listener that workers share",
            CpuProblem::ListenersShared { workers: 2, connections_per_second: 10_000.0 },
        ),
    ]
}

pub(super) fn queues_and_tables() -> Vec<Row> {
    vec![
        row(
            "Ports that run out",
            PortProblem::OriginPortsRunOut {
                requests_per_second: 1000.0,
                connections_per_second: 470,
            },
        ),
        row(
            "Fewer ports than clients",
            PortProblem::OriginPortsTooFew { clients: 30_000, tuples: 28_232 },
        ),
        row(
            "Listeners within the range of ports",
            PortProblem::ListenPortInRange { ports: vec![40_000, 40_001] },
        ),
        row(
            "A backlog above the bound of the kernel",
            QueueProblem::BacklogCapped { backlog: 511, somaxconn: 128 },
        ),
        row(
            "A bound of the kernel above every backlog",
            QueueProblem::SomaxconnInert { somaxconn: 32_768, backlog: 511, default_backlog: 511 },
        ),
        row(
            "A backlog that takes a restart",
            QueueProblem::BacklogNotInForce { queue: 511, settings: 900 },
        ),
        row(
            "A queue that a pause fills",
            QueueProblem::BacklogShort {
                queue: 128,
                connections_per_second: Some(2000.0),
                clients: 0,
            },
        ),
        row(
            "A queue that all clients fill",
            QueueProblem::BacklogShort { queue: 511, connections_per_second: None, clients: 1000 },
        ),
        row("Queues that overflowed", QueueProblem::ListenOverflows { overflows: 42 }),
        row("No SYN cookies", QueueProblem::SynQueueDrops { dropped: 0 }),
        row("Dropped SYNs", QueueProblem::SynQueueDrops { dropped: 4200 }),
        row("Clients that are reset", QueueProblem::AbortOnOverflow),
        row(
            "Too few tracked connections",
            TableProblem::ConntrackFull { entries: 61_000, most: 65_536, needed: 120_000 },
        ),
        row(
            "Tracked connections that are nearly too many",
            TableProblem::ConntrackFull { entries: 61_000, most: 65_536, needed: 12_400 },
        ),
        row("A short TIME_WAIT", TableProblem::TimeWaitCutShort { sockets: 5000 }),
        row(
            "Too little memory for TCP",
            TableProblem::TcpMem { pages: 300, needed: 4000, clients: 1000 },
        ),
        row(
            "More memory for TCP than there is",
            TableProblem::TcpMem { pages: 16_777_216, needed: 4000, clients: 1000 },
        ),
    ]
}

pub(super) fn configurations() -> Vec<Row> {
    let types = ["image/png", "video/*"].map(str::to_owned).to_vec();
    vec![
        row(
            "`keepalive` without the protocol",
            HttpProblem::OriginKeepaliveInert { is_set: true, is_map: false },
        ),
        row(
            "`keepalive` by default, and a `map` that closes",
            HttpProblem::OriginKeepaliveInert { is_set: false, is_map: true },
        ),
        row("No `keepalive`", HttpProblem::OriginKeepaliveMissing),
        row("Few requests for a connection", HttpProblem::KeepaliveRequestsLow { default: 1000 }),
        row("Clients that are not kept", HttpProblem::ClientKeepaliveOff),
        row("gzip of images", HttpProblem::GzipOfCompressed { types }),
        row("A log without a buffer", HttpProblem::AccessLogUnbuffered),
        row("accept_mutex", AdviceProblem::AcceptMutexAdvice),
    ]
}

pub(super) fn sysctls() -> Vec<Row> {
    let name = "net.core.somaxconn".to_owned();
    vec![
        row(
            "A low fs.file-max",
            AdviceProblem::FileMaxAdvice { value: 100_000, kernel_value: 419_430 },
        ),
        row(
            "A high fs.file-max",
            AdviceProblem::FileMaxAdvice { value: 1_048_576, kernel_value: 419_430 },
        ),
        row("tcp_fin_timeout", AdviceProblem::FinTimeoutAdvice),
        row("tcp_tw_reuse without timestamps", AdviceProblem::TwReuseAdvice { is_inert: true }),
        row("tcp_tw_reuse", AdviceProblem::TwReuseAdvice { is_inert: false }),
        row("Sizes of buffers", AdviceProblem::SocketBuffersInert),
        row("tcp_max_syn_backlog", AdviceProblem::SynBacklogInert),
        row("Settings without an effect", AdviceProblem::SysctlWithoutEffect),
        row(
            "A name that does not exist",
            SysctlFileProblem::SysctlNoSuchName { name: "sys.fs.file-max".to_owned() },
        ),
        row("tcp_tw_recycle in an old kernel", SysctlFileProblem::TwRecycleAdvice { exists: true }),
        row(
            "tcp_tw_recycle in a newer kernel",
            SysctlFileProblem::TwRecycleAdvice { exists: false },
        ),
        row("Half a range of ports", SysctlFileProblem::PortRangeHalf),
        row(
            "A range with privileged ports",
            SysctlFileProblem::PortRangePrivileged { low: 80, unprivileged: 1024 },
        ),
        row("A range with ends of one parity", SysctlFileProblem::PortRangeParity),
        row(
            "A line that is overridden",
            SysctlFileProblem::SysctlOverridden { name: name.clone(), value: "1024".to_owned() },
        ),
        row(
            "A line that the kernel did not take",
            SysctlFileProblem::SysctlNotLive {
                name,
                live: "4096".to_owned(),
                in_file: "1024".to_owned(),
            },
        ),
        row("/etc/sysctl.conf without a link", SysctlFileProblem::SysctlConfNotRead),
    ]
}
