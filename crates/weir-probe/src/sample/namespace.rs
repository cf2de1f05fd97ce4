//! Tables of a network namespace: `network`, `listeners`, `sockets` and `connections`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use rustix::fs::stat;

use super::Whose;
use super::connections::together;
use super::diagnosis::{Connection, Diagnosis, ESTABLISHED, STATES, SYN_RECV, Socket};
use super::owner::{Drops, Owned, Owner};
use super::pace::Pace;
use super::rows::{Counter, Rows, Why, absent};
use super::source::{Files, Source, named, unread};
use super::told::{NOT_TOLD, PodFiles};
use crate::network::counter;

/// Maximum number of connections of each side that are inspected.
const LOOKED_AT: usize = 200;

/// Columns of `network`, with their group and name in netstat, snmp and sockstat.
const COUNTED: [(&str, &str, &str); 18] = [
    ("listen_overflows", "TcpExt:", "ListenOverflows"),
    ("listen_drops", "TcpExt:", "ListenDrops"),
    ("req_q_full_drop", "TcpExt:", "TCPReqQFullDrop"),
    ("req_q_full_cookies", "TcpExt:", "TCPReqQFullDoCookies"),
    ("time_wait_overflow", "TcpExt:", "TCPTimeWaitOverflow"),
    ("abort_on_memory", "TcpExt:", "TCPAbortOnMemory"),
    ("abort_on_timeout", "TcpExt:", "TCPAbortOnTimeout"),
    ("backlog_drop", "TcpExt:", "TCPBacklogDrop"),
    ("syn_retransmitted", "TcpExt:", "TCPSynRetrans"),
    ("timeouts", "TcpExt:", "TCPTimeouts"),
    ("retransmitted", "Tcp:", "RetransSegs"),
    ("out_resets", "Tcp:", "OutRsts"),
    ("in_errors", "Tcp:", "InErrs"),
    ("active_opens", "Tcp:", "ActiveOpens"),
    ("passive_opens", "Tcp:", "PassiveOpens"),
    ("attempt_fails", "Tcp:", "AttemptFails"),
    ("established_resets", "Tcp:", "EstabResets"),
    ("in_use", "TCP:", "inuse"),
];

/// Readers of one network namespace, usable from any thread.
#[derive(Debug)]
pub struct Namespace {
    id: Option<u64>,
    netstat: Source,
    snmp: Source,
    sockstat: Source,
    device: Source,
    ports: Source,
    conntrack: Source,
    conntrack_most: Source,
    conntrack_stat: Source,
    sockets: Result<Diagnosis, Why>,
    links: Result<Diagnosis, Why>,
    pace: Pace,
    /// Separate pace for sockets in TIME_WAIT, which far outnumber the others.
    closed_pace: Pace,
    /// Processes whose sockets are read, if others have sockets in the namespace, too.
    owner: Option<Owner>,
    /// Latest counts of the owner's sockets.
    owned: Owned,
    /// Connections dropped by the owner's listeners: overflows and all drops.
    drops: [Drops; 2],
}

/// Totals of the listeners at a port.
#[derive(Debug, Default, Clone, Copy)]
struct Listener {
    sockets: u64,
    queue: u64,
    backlog: u64,
}

/// Sockets of one side: inbound or outbound.
#[derive(Debug, Default)]
struct Side {
    by_state: [u64; STATES.len()],
    looked_at: Vec<Socket>,
}

impl Namespace {
    /// Opens the network namespace of the calling thread.
    pub fn of_this_thread() -> Namespace {
        Namespace {
            id: stat("/proc/thread-self/ns/net").ok().map(|found| found.st_ino),
            sockets: map_refusal(Diagnosis::of_sockets()),
            links: map_refusal(Diagnosis::of_links()),
            // `/proc/net` is the namespace of the process's first thread; what is open stays the namespace's.
            ..Namespace::of(&Files::Here, "/proc/thread-self/net")
        }
    }

    /// Opens the network namespace of a pod. Its sockets cannot be listed.
    pub(super) fn of_pod(told: &PodFiles) -> Namespace {
        Namespace::of(&Files::PodFiles(told.clone()), "/proc/net")
    }

    fn of(files: &Files, folder: &str) -> Namespace {
        Namespace {
            id: None,
            netstat: files.open(format!("{folder}/netstat")),
            snmp: files.open(format!("{folder}/snmp")),
            sockstat: files.open(format!("{folder}/sockstat")),
            device: files.open(format!("{folder}/dev")),
            ports: files.open("/proc/sys/net/ipv4/ip_local_port_range"),
            conntrack: files.open("/proc/sys/net/netfilter/nf_conntrack_count"),
            conntrack_most: files.open("/proc/sys/net/netfilter/nf_conntrack_max"),
            conntrack_stat: files.open(format!("{folder}/stat/nf_conntrack")),
            sockets: Err(NOT_TOLD.into()),
            links: Err(NOT_TOLD.into()),
            pace: Pace::default(),
            closed_pace: Pace::default(),
            owner: None,
            owned: Owned::default(),
            drops: [Drops::default(); 2],
        }
    }

    /// Opens the network namespace of the calling thread, but reads only the sockets of these processes and their
    /// children.
    pub fn of_processes(roots: Vec<u32>) -> Namespace {
        Namespace { owner: Some(Owner::new(roots)), ..Namespace::of_this_thread() }
    }

    /// Returns true if both are readers of the same, entire namespace.
    pub(super) fn is(&self, other: &Namespace) -> bool {
        let are_whole = self.owner.is_none() && other.owner.is_none();
        are_whole && self.id.is_some() && self.id == other.id
    }

    pub(super) fn read(&mut self, whose: &Whose, rows: &mut Rows<'_>) {
        let dropped = self.read_sockets(whose, rows);
        if let Err(why) = &dropped {
            for table in ["listeners", "sockets", "connections"] {
                rows.miss_table(table, whose.role, why);
            }
        }
        let mut values = self.network();
        if self.owner.is_some() {
            self.keep_owned(&mut values, dropped);
        }
        rows.of(whose, "network", Vec::new(), &values);
    }

    /// Replaces values of the namespace by those of the owner's sockets. Counts of opened connections become unknown:
    /// the kernel does not count them per process.
    fn keep_owned(&mut self, values: &mut [(&'static str, Counter)], dropped: Result<u64, Why>) {
        let [overflows, drops] = &mut self.drops;
        for (column, value) in values {
            *value = match *column {
                "listen_overflows" => count_own(overflows, &dropped, value),
                "listen_drops" => count_own(drops, &dropped, value),
                "time_wait" => self.owned.time_wait.map_or_else(absent, Ok),
                "in_use" => self.owned.in_use.map_or_else(absent, Ok),
                "active_opens" | "passive_opens" => {
                    Err("others have sockets in the server's network namespace".into())
                }
                _ => continue,
            };
        }
    }

    fn network(&mut self) -> Vec<(&'static str, Counter)> {
        let (netstat, snmp) = (text_of(&mut self.netstat), text_of(&mut self.snmp));
        let sockstat = text_of(&mut self.sockstat);
        let mut values: Vec<(&'static str, Counter)> = COUNTED
            .iter()
            .map(|&(column, group, name)| {
                let value = match group {
                    "TcpExt:" => read_counter(&netstat, |text| counter(text, group, name), name),
                    "Tcp:" => read_counter(&snmp, |text| counter(text, group, name), name),
                    _ => read_counter(&sockstat, |text| of_tcp(text, name), name),
                };
                (column, value)
            })
            .collect();
        for (column, name) in [("time_wait", "tw"), ("orphans", "orphan"), ("mem_pages", "mem")] {
            let value = read_counter(&sockstat, |text| of_tcp(text, name), name);
            values.push((column, value));
        }
        let device = text_of(&mut self.device);
        let is_untracked = self.is_untracked();
        let tracked = text_of(&mut self.conntrack_stat);
        for (column, name) in
            [("conntrack_insert_failed", "insert_failed"), ("conntrack_drop", "drop")]
        {
            let value = if is_untracked {
                Ok(0)
            } else {
                read_counter(&tracked, |text| of_conntrack(text, name), name)
            };
            values.push((column, value));
        }
        values.extend([("rx_drops", of_links(&device, 3)), ("tx_drops", of_links(&device, 11))]);
        values.extend([
            ("local_ports", self.ports.parsed(ports)),
            (
                "conntrack",
                if is_untracked {
                    Ok(0)
                } else {
                    self.conntrack.parsed(|text| text.trim().parse().ok())
                },
            ),
            ("conntrack_most", self.conntrack_most.parsed(|text| text.trim().parse().ok())),
            ("qdisc_drops", ask_kernel(&mut self.links, Diagnosis::discipline_drops)),
        ]);
        values
    }

    /// Returns true if this host's kernel tracks no connections, because its module is not loaded.
    fn is_untracked(&self) -> bool {
        let is_here = self.id.is_some();
        is_here && !Path::new("/proc/sys/net/netfilter/nf_conntrack_count").exists()
    }

    /// Reads listeners always, other sockets when their time has come. Returns the number of connections that the
    /// listeners have dropped.
    fn read_sockets(&mut self, whose: &Whose, rows: &mut Rows<'_>) -> Result<u64, Why> {
        let mut all = Vec::new();
        ask_kernel(&mut self.sockets, |kernel| kernel.listeners(&mut |socket| all.push(socket)))?;
        let (sockets, pace, owner) = (&mut self.sockets, &mut self.pace, &mut self.owner);
        let counted = pace
            .paced(|| {
                owner.as_mut().map_or(Ok(()), Owner::look)?;
                count(sockets, &all, owner.as_ref())
            })
            .transpose()?;
        if let Some(counted) = &counted {
            self.owned.in_use = Some(counted.in_use);
        }
        if owner.is_some() {
            let closed = self.closed_pace.paced(|| count_closed(sockets, &all, owner.as_ref()));
            self.owned.time_wait = closed.transpose()?.or(self.owned.time_wait);
        }
        let own_sockets = all
            .iter()
            .filter(|socket| self.owner.as_ref().is_none_or(|owner| owner.has(socket.inode)));
        let mut listeners: BTreeMap<u16, Listener> = BTreeMap::new();
        let mut dropped = 0;
        for socket in own_sockets {
            listeners.entry(socket.port).or_default().add(socket);
            dropped += u64::from(socket.drops.unwrap_or(0));
        }
        for (port, listener) in &listeners {
            let half_open = counted.as_ref().map_or_else(absent, |counted| {
                Ok(counted.half_open.get(port).copied().unwrap_or(0))
            });
            let values = [
                ("sockets", Ok(listener.sockets)),
                ("queue", Ok(listener.queue)),
                ("backlog", Ok(listener.backlog)),
                ("syn_recv", half_open),
            ];
            rows.of(whose, "listeners", vec![port.to_string()], &values);
        }
        for (side, sockets, connections) in counted.into_iter().flat_map(|counted| counted.sides) {
            for (state, count) in STATES.iter().zip(sockets.by_state) {
                if count > 0 {
                    let keys = vec![side.to_owned(), (*state).to_owned()];
                    rows.of(whose, "sockets", keys, &[("count", Ok(count))]);
                }
            }
            if !connections.is_empty() {
                rows.of(whose, "connections", vec![side.to_owned()], &together(&connections));
            }
        }
        Ok(dropped)
    }
}

impl Listener {
    fn add(&mut self, socket: &Socket) {
        self.sockets += 1;
        let (queue, backlog) = (socket.receive_queue.into(), socket.send_queue.into());
        if self.sockets == 1 || queue > self.queue {
            (self.queue, self.backlog) = (queue, backlog);
        }
    }
}

/// Counts of sockets that do not listen.
struct Counted {
    half_open: BTreeMap<u16, u64>,
    sides: [(&'static str, Side, Vec<Connection>); 2],
    in_use: u64,
}

/// Returns the ports of all listeners, and of the owner's.
fn ports_of(listeners: &[Socket], owner: Option<&Owner>) -> [BTreeSet<u16>; 2] {
    let mut ports = [BTreeSet::new(), BTreeSet::new()];
    for listener in listeners {
        ports[0].insert(listener.port);
        if owner.is_none_or(|owner| owner.has(listener.inode)) {
            ports[1].insert(listener.port);
        }
    }
    ports
}

/// Counts outbound sockets in TIME_WAIT, except those of the owner's clients. Such sockets belong to no process any
/// more.
fn count_closed(
    kernel: &mut Result<Diagnosis, Why>,
    listeners: &[Socket],
    owner: Option<&Owner>,
) -> Result<u64, Why> {
    let [all_ports, own_ports] = ports_of(listeners, owner);
    let mut time_wait = 0;
    ask_kernel(kernel, |kernel| {
        kernel.closed(&mut |socket| {
            let is_outbound = !all_ports.contains(&socket.port);
            let is_of_clients = own_ports.contains(&socket.remote_port);
            time_wait += u64::from(is_outbound && !is_of_clients);
        })
    })?;
    Ok(time_wait)
}

/// Counts sockets by side: those at the port of a listener are inbound. With an owner, listeners and outbound sockets
/// of other processes are ignored.
fn count(
    kernel: &mut Result<Diagnosis, Why>,
    listeners: &[Socket],
    owner: Option<&Owner>,
) -> Result<Counted, Why> {
    let [_, own_ports] = ports_of(listeners, owner);
    let mut half_open: BTreeMap<u16, u64> = BTreeMap::new();
    let (mut inbound, mut outbound) = (Side::default(), Side::default());
    ask_kernel(kernel, |kernel| {
        kernel.others(&mut |socket| {
            if own_ports.contains(&socket.port) {
                if socket.state == SYN_RECV {
                    *half_open.entry(socket.port).or_default() += 1;
                }
                inbound.add(socket);
            } else if owner.is_none_or(|owner| owner.has(socket.inode)) {
                outbound.add(socket);
            }
        })
    })?;
    let in_use = inbound.count() + outbound.count();
    let in_connections = ask_kernel(kernel, |kernel| kernel.connections(&inbound.looked_at))?;
    let out_connections = ask_kernel(kernel, |kernel| kernel.connections(&outbound.looked_at))?;
    Ok(Counted {
        half_open,
        sides: [("inbound", inbound, in_connections), ("outbound", outbound, out_connections)],
        in_use,
    })
}

impl Side {
    fn count(&self) -> u64 {
        self.by_state.iter().sum()
    }

    /// Counts a socket, and keeps the first established ones for inspection: the kernel lists sockets by a hash of
    /// their addresses, so these are as good as any.
    fn add(&mut self, socket: Socket) {
        let state = usize::from(socket.state).wrapping_sub(1);
        if let Some(count) = self.by_state.get_mut(state) {
            *count += 1;
        }
        if socket.state == ESTABLISHED && self.looked_at.len() < LOOKED_AT {
            self.looked_at.push(socket);
        }
    }
}

/// Runs a query, or returns the reason why the kernel cannot be queried.
fn ask_kernel<T>(
    kernel: &mut Result<Diagnosis, Why>,
    ask: impl FnOnce(&mut Diagnosis) -> io::Result<T>,
) -> Result<T, Why> {
    ask(kernel.as_mut().map_err(|why| why.clone())?)
        .map_err(|error| unread(Path::new("sock_diag(7)"), &error))
}

fn text_of(source: &mut Source) -> Result<String, Why> {
    source.text().map(str::to_owned)
}

/// Returns a number found in a text, or the reason why there is none.
fn read_counter(
    text: &Result<String, Why>,
    find: impl FnOnce(&str) -> Option<u64>,
    name: &str,
) -> Counter {
    find(text.as_ref().map_err(Why::clone)?)
        .ok_or_else(|| format!("this kernel does not count {name}").into())
}

/// Returns a field of the line `TCP: inuse 4 orphan 0 tw 14 alloc 4 mem 0` of sockstat.
fn of_tcp(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    named(&line.replace(&format!(" {name} "), &format!("\n{name} ")), name)
}

/// Sums a column of nf_conntrack over all CPUs. Values are hexadecimal; the first line has the names.
fn of_conntrack(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    let mut names = lines.next()?.split_ascii_whitespace();
    let column = names.position(|column_name| column_name == name)?;
    lines
        .map(|line| {
            let hex = line.split_ascii_whitespace().nth(column)?;
            u64::from_str_radix(hex, 16).ok()
        })
        .sum()
}

/// `32768\t60999`, both ends included.
fn ports(text: &str) -> Option<u64> {
    crate::host::range_of(text).map(|range| range.count() as u64)
}

/// Sums a column of net/dev over all links: 3 for dropped when receiving, 11 for dropped when sending.
fn of_links(text: &Result<String, Why>, place: usize) -> Counter {
    read_counter(
        text,
        |text| {
            text.lines()
                .skip(2)
                .map(|line| {
                    let (_, numbers) = line.split_once(':')?;
                    numbers.split_ascii_whitespace().nth(place)?.parse::<u64>().ok()
                })
                .sum()
        },
        "net/dev",
    )
}

fn map_refusal(opened: io::Result<Diagnosis>) -> Result<Diagnosis, Why> {
    opened.map_err(|error| Why::from(format!("cannot ask the kernel: {error}")))
}

fn count_own(drops: &mut Drops, dropped: &Result<u64, Why>, all: &Counter) -> Counter {
    Ok(drops.counted(dropped.clone()?, all.clone()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_namespace_are_found_by_their_names() {
        let text =
            "sockets: used 33\nTCP: inuse 4 orphan 1 tw 14 alloc 4 mem 9\nUDP: inuse 7 mem 0\n";
        let counts = ["inuse", "orphan", "tw", "mem", "used"].map(|name| of_tcp(text, name));
        assert_eq!(counts, [Some(4), Some(1), Some(14), Some(9), None]);
        let text = "entries found insert_failed drop\n0a 1 0f 2\n0a 1 01 3\n";
        let counts = ["insert_failed", "drop", "none"].map(|name| of_conntrack(text, name));
        assert_eq!(counts, [Some(16), Some(5), None]);
        let text = Ok("Inter-| Receive\n face |bytes\n lo: 1 1 1 5 1 1 1 1 2 2 2 7 2 2 2 2\n\
                    eth0: 1 1 1 6 1 1 1 1 2 2 2 8 2 2 2 2\n"
            .to_owned());
        assert_eq!((of_links(&text, 3), of_links(&text, 11)), (Ok(11), Ok(15)));
        assert_eq!(ports("32768\t32777\n"), Some(10));
    }
}
