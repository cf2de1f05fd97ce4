//! Evidence of findings, each in one line.

use weir_doctor::{
    Calculation, Evidence, FileEvidence, FileLine, HostEvidence, LimitOrigin, LocalPorts,
    SysctlLine, UnitLimit,
};

use super::cluster;
use crate::numbers::{self, count, counted, limit, rounded_rate};

/// Returns a piece of evidence in one line.
pub fn evidence(evidence: &Evidence) -> String {
    match evidence {
        Evidence::File(evidence) => of_file(evidence),
        Evidence::Host(evidence) => of_host(evidence),
        Evidence::Calculation(evidence) => calculation(evidence),
        Evidence::Cluster(evidence) => cluster::evidence(evidence),
    }
}

fn of_file(evidence: &FileEvidence) -> String {
    match evidence {
        FileEvidence::Line(line) => place(line),
        FileEvidence::Unset { name, default } => format!("{name} is not set: {default}"),
        FileEvidence::DefaultBacklog { listen, backlog } => {
            format!("{} (backlog is {backlog} unless set)", place(listen))
        }
        FileEvidence::BacklogUnset { listen, backlog } => {
            format!("{}: backlog is not set: {backlog}", place(listen))
        }
        FileEvidence::HttpVersionUnset => {
            "proxy_http_version is not set: 1.0 before nginx 1.29.7".to_owned()
        }
        FileEvidence::ConnectionUnset => {
            "proxy_set_header Connection is not set: `close` before nginx 1.29.7".to_owned()
        }
        FileEvidence::RequestsUnset { default, until } => {
            format!("not set: {default} before nginx {until}")
        }
        FileEvidence::BehindKeepalive(line) => format!("{}, behind `keepalive`", place(line)),
        FileEvidence::FurtherPlaces { places } => {
            let verb = if *places == 1 { "passes" } else { "pass" };
            format!("and {} that {verb} requests on", counted(*places as u64, "more place"))
        }
        FileEvidence::UnknownVersion => {
            "nginx's version is not known: taken to be before 1.29.7".to_owned()
        }
        FileEvidence::NoSocketBuffers => "no listen directive has rcvbuf= or sndbuf=".to_owned(),
        FileEvidence::SysctlLine(line) => sysctl_line(line),
        FileEvidence::OverriddenLine(line) => format!("{} (lost)", sysctl_line(line)),
        FileEvidence::WinningLine(line) => format!("{} (wins)", sysctl_line(line)),
        FileEvidence::LineNotLive { line, live } => {
            format!("{}   live: {live}", sysctl_line(line))
        }
        FileEvidence::SysctlName { name } => {
            format!("the name is `{name}`: /proc/sys/ is its folder, not a part of the name")
        }
        FileEvidence::NoLinkToSysctlConf => "no file in sysctl.d leads to it".to_owned(),
        FileEvidence::UnitLimit(UnitLimit { unit, soft, origin }) => match origin {
            LimitOrigin::Unit(line) => place(line),
            LimitOrigin::Manager(line) => format!("{unit} has no LimitNOFILE; {}", place(line)),
            LimitOrigin::Default => {
                let limit = soft.unwrap_or_default();
                format!("{unit} has no LimitNOFILE; systemd's default is {limit}")
            }
        },
    }
}

fn place(FileLine { file, line, text }: &FileLine) -> String {
    format!("{file}:{line}: {text}")
}

fn sysctl_line(SysctlLine { file, line, key, value, .. }: &SysctlLine) -> String {
    format!("{file}:{line}: {key} = {value}")
}

fn of_host(evidence: &HostEvidence) -> String {
    match evidence {
        HostEvidence::Sysctl { name, value } => format!("{name} = {value}"),
        HostEvidence::WorkerLimit { pid, soft } => {
            format!("/proc/{pid}/limits: Max open files {}", limit(*soft))
        }
        HostEvidence::HardLimit { pid, hard } => {
            format!("/proc/{pid}/limits: hard limit {}", limit(*hard))
        }
        HostEvidence::WorkersLimit { limit, evidence } => {
            format!("{} (workers: {})", self::evidence(evidence), numbers::limit(*limit))
        }
        HostEvidence::OpenFiles { files } => format!("fs.file-nr: {} open now", count(*files)),
        HostEvidence::UnreservedPorts { low, high } => {
            format!("net.ipv4.ip_local_port_range = {low} {high}, and the port is not reserved")
        }
        HostEvidence::Queue { address, waiting, backlog } => format!(
            "{address} now: {} waiting, room for {} (sock_diag)",
            count(u64::from(*waiting)),
            count(u64::from(*backlog))
        ),
        HostEvidence::ListenCounters { overflows, drops } => {
            format!("TcpExt: ListenOverflows {overflows}, ListenDrops {drops}")
        }
        HostEvidence::Counter { name, count } => format!("TcpExt: {name} {count}"),
        HostEvidence::TimeWaitEntries { entries } => {
            format!("{} in TIME_WAIT now", count(*entries))
        }
        HostEvidence::TimeWaitSockets { sockets } => {
            format!("{} in TIME_WAIT now", counted(*sockets, "socket"))
        }
        HostEvidence::Memory { bytes } => format!("memory: {} MiB", count(bytes >> 20)),
        HostEvidence::CpusOnline { cpus } => format!("{} online", counted(*cpus, "CPU")),
        HostEvidence::CpusAllowed { cpus } => {
            format!("{} allowed (Cpus_allowed_list)", counted(*cpus, "CPU"))
        }
        HostEvidence::CpuQuota { cpus } => format!("control group quota: {cpus:.2} CPUs"),
    }
}

fn calculation(calculation: &Calculation) -> String {
    match calculation {
        Calculation::WorkerConnections { workers, connections, clients, needed } => format!(
            "{} × {} = {} connections; {} clients take {}",
            counted(*workers, "worker"),
            count(*connections),
            count(workers.saturating_mul(*connections)),
            count(*clients),
            count(*needed)
        ),
        Calculation::Descriptors { clients, workers, of_its_own, needed } => format!(
            "{} clients × 2 descriptors / {} + {of_its_own} of its own = {}",
            count(*clients),
            counted(*workers, "worker"),
            count(*needed)
        ),
        Calculation::FilesByMemory { memory_bytes, files } => format!(
            "memory {} MiB: the kernel's own value is about {}",
            count(memory_bytes >> 20),
            count(*files)
        ),
        Calculation::OccupiedTuples { connections_per_second, held_s, tuples } => format!(
            "{}/s × {held_s} s in TIME_WAIT = {} tuples",
            rounded_rate(*connections_per_second),
            count(*tuples)
        ),
        Calculation::Tuples { ports: LocalPorts { low, high, ports }, origins, tuples } => format!(
            "{} (net.ipv4.ip_local_port_range = {low} {high}) × {} = {} tuples",
            counted(*ports, "local port"),
            counted(*origins, "origin address"),
            count(*tuples)
        ),
        Calculation::PortsForOrigins { ports: LocalPorts { low, high, ports }, origins } => {
            format!(
                "net.ipv4.ip_local_port_range = {low} {high}: {} × {}",
                counted(*ports, "local port"),
                counted(*origins, "origin address")
            )
        }
        Calculation::Burst { connections_per_second, pause_s, connections } => format!(
            "{} connections/s × {pause_s} s without an accept = {}",
            rounded_rate(*connections_per_second),
            count(*connections)
        ),
        Calculation::Reconnection { clients } => {
            format!("{} clients, for example when all reconnect after a restart", count(*clients))
        }
        Calculation::TrackedConnections { open, connections_per_second, held_s, needed } => {
            format!(
                "{} open + {} new/s × {held_s} s in TIME_WAIT = {}",
                count(*open),
                rounded_rate(*connections_per_second),
                count(*needed)
            )
        }
        Calculation::NodeConnections { open, closed, held_s } => format!(
            "the load: {} for clients and the proxy's own to backends, {} that were closed in the \
             last {held_s:.0} s",
            count(*open),
            count(*closed)
        ),
        Calculation::TcpMemory { pages, page_bytes } => format!(
            "{} pages of {page_bytes} bytes = {} MiB",
            count(*pages),
            count(pages.saturating_mul(*page_bytes) >> 20)
        ),
    }
}
