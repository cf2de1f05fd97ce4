//! Evidence of findings.

use weir_doctor::{
    Calculation, Evidence, FileEvidence, FileLine, HostEvidence, LimitOrigin, LocalPorts,
    SysctlLine, UnitLimit,
};
use weir_sentences::doctor::evidence;

use crate::table::Row;

fn row(case: &'static str, one: impl Into<Evidence>) -> Row {
    (case, evidence(&one.into()))
}

fn line(file: &str, line: usize, text: &str) -> FileLine {
    FileLine { file: file.to_owned(), line, text: text.to_owned() }
}

fn sysctl_line() -> SysctlLine {
    SysctlLine {
        file: "/etc/sysctl.d/50-tuning.conf".to_owned(),
        line: 4,
        key: "net.core.somaxconn".to_owned(),
        value: "32768".to_owned(),
        applied: true,
        exists: true,
    }
}

fn unit_limit(soft: u64, origin: LimitOrigin) -> FileEvidence {
    FileEvidence::UnitLimit(UnitLimit {
        unit: "nginx.service".to_owned(),
        soft: Some(soft),
        origin,
    })
}

pub(in crate::table) fn of_files() -> Vec<Row> {
    let site = "/etc/nginx/sites-enabled/default";
    let listen = line(site, 5, "listen 80");
    let unit = line("/etc/systemd/system/nginx.service", 7, "LimitNOFILE=65536");
    let manager = line("/etc/systemd/system.conf", 3, "DefaultLimitNOFILE=65536");
    vec![
        row("A directive", FileEvidence::Line(line(site, 7, "proxy_pass http://origin"))),
        row(
            "A directive that is not set",
            FileEvidence::Unset {
                name: "worker_connections".to_owned(),
                default: "512".to_owned(),
            },
        ),
        row(
            "A long backlog by default",
            FileEvidence::DefaultBacklog { listen: listen.clone(), backlog: 511 },
        ),
        row("A short backlog by default", FileEvidence::BacklogUnset { listen, backlog: 511 }),
        row("HTTP/1.0 by default", FileEvidence::HttpVersionUnset),
        row("`Connection: close` by default", FileEvidence::ConnectionUnset),
        row(
            "Few requests by default",
            FileEvidence::RequestsUnset { default: 100, until: "1.19.10".to_owned() },
        ),
        row(
            "A balancing method behind `keepalive`",
            FileEvidence::BehindKeepalive(line(site, 3, "least_conn")),
        ),
        row("Further places", FileEvidence::FurtherPlaces { places: 2 }),
        row("An unknown version", FileEvidence::UnknownVersion),
        row("Buffers of default size", FileEvidence::NoSocketBuffers),
        row("A line of a sysctl file", FileEvidence::SysctlLine(sysctl_line())),
        row("A line that is overridden", FileEvidence::OverriddenLine(sysctl_line())),
        row("A line that wins", FileEvidence::WinningLine(sysctl_line())),
        row(
            "A line that is not live",
            FileEvidence::LineNotLive { line: sysctl_line(), live: "4096".to_owned() },
        ),
        row("A name with its folder", FileEvidence::SysctlName { name: "fs.file-max".to_owned() }),
        row("A file that is not read", FileEvidence::NoLinkToSysctlConf),
        row("The limit of a unit", unit_limit(65_536, LimitOrigin::Unit(unit))),
        row("The limit of all units", unit_limit(65_536, LimitOrigin::Manager(manager))),
        row("The limit of systemd", unit_limit(1024, LimitOrigin::Default)),
    ]
}

pub(in crate::table) fn of_hosts() -> Vec<Row> {
    let limit = HostEvidence::WorkerLimit { pid: 101, soft: 1024 };
    let workers =
        HostEvidence::WorkersLimit { limit: 1024, evidence: Box::new(limit.clone().into()) };
    let address = "0.0.0.0:80".to_owned();
    vec![
        row(
            "A sysctl",
            HostEvidence::Sysctl { name: "fs.nr_open".to_owned(), value: "1048576".to_owned() },
        ),
        row("The limit of a worker", limit),
        row("A worker without a limit", HostEvidence::WorkerLimit { pid: 101, soft: u64::MAX }),
        row("The hard limit of a worker", HostEvidence::HardLimit { pid: 101, hard: 20_000 }),
        row("The limit of all workers", workers),
        row("Open files", HostEvidence::OpenFiles { files: 1312 }),
        row(
            "Ports that are not reserved",
            HostEvidence::UnreservedPorts { low: 32_768, high: 60_999 },
        ),
        row("A queue", HostEvidence::Queue { address, waiting: 3, backlog: 511 }),
        row("Overflows", HostEvidence::ListenCounters { overflows: 42, drops: 43 }),
        row("A counter", HostEvidence::Counter { name: "TCPReqQFullDrop", count: 4200 }),
        row("Entries of TIME_WAIT", HostEvidence::TimeWaitEntries { entries: 4200 }),
        row("A socket in TIME_WAIT", HostEvidence::TimeWaitSockets { sockets: 1 }),
        row("Memory", HostEvidence::Memory { bytes: 4 << 30 }),
        row("CPUs of the host", HostEvidence::CpusOnline { cpus: 2 }),
        row("CPUs of the proxy", HostEvidence::CpusAllowed { cpus: 1 }),
        row("A quota", HostEvidence::CpuQuota { cpus: 0.5 }),
    ]
}

pub(in crate::table) fn calculations() -> Vec<Row> {
    let ports = LocalPorts { low: 32_768, high: 60_999, ports: 28_232 };
    vec![
        row(
            "Connections of workers",
            Calculation::WorkerConnections {
                workers: 2,
                connections: 768,
                clients: 1000,
                needed: 2000,
            },
        ),
        row(
            "Descriptors of a worker",
            Calculation::Descriptors { clients: 1000, workers: 2, of_its_own: 32, needed: 1032 },
        ),
        row(
            "Files by memory",
            Calculation::FilesByMemory { memory_bytes: 4 << 30, files: 419_430 },
        ),
        row(
            "Tuples in TIME_WAIT",
            Calculation::OccupiedTuples {
                connections_per_second: 1000.0,
                held_s: 60.0,
                tuples: 60_000,
            },
        ),
        row("Tuples", Calculation::Tuples { ports: ports.clone(), origins: 1, tuples: 28_232 }),
        row("Ports for origin servers", Calculation::PortsForOrigins { ports, origins: 2 }),
        row(
            "A pause in accepting",
            Calculation::Burst { connections_per_second: 2000.0, pause_s: 0.1, connections: 200 },
        ),
        row("All clients at once", Calculation::Reconnection { clients: 1000 }),
        row(
            "Tracked connections",
            Calculation::TrackedConnections {
                open: 400,
                connections_per_second: 100.0,
                held_s: 120,
                needed: 12_400,
            },
        ),
        row(
            "Connections of a node",
            Calculation::NodeConnections { open: 200_000, closed: 60_000, held_s: 120.0 },
        ),
        row("Memory of TCP", Calculation::TcpMemory { pages: 91_404, page_bytes: 4096 }),
    ]
}
