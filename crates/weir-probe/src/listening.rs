//! Processes that listen at an address of this host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// State LISTEN in /proc/net/tcp (include/net/tcp_states.h).
const LISTEN: &str = "0A";

/// Processes of this host that listen at an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listening {
    /// Process ids; empty if none listens there, or none that this process may inspect (proc_pid_fd(5)).
    pub processes: Vec<u32>,
    /// A process in the listeners' network namespace, if that is not the calling thread's, as for a container.
    pub elsewhere: Option<u32>,
}

impl Listening {
    /// Searches the calling thread's network namespace and, if none listens there, other namespaces that have the
    /// address, provided that it is on a link of this host: behind a gateway it belongs to another host. Namespaces
    /// created by another user within a user namespace are left out: any address may be given to them. If several
    /// namespaces have the address, none is chosen.
    pub fn at(address: SocketAddr) -> Listening {
        let processes = listening_at(address);
        if !processes.is_empty() || address.ip().is_loopback() || !is_on_link(address.ip()) {
            return Listening { processes, elsewhere: None };
        }
        let mut homes = other_networks().into_iter().filter_map(|(network, pid)| {
            let folder = format!("/proc/{pid}/net");
            let mut processes = holders(&inodes_in(&folder, address));
            processes.retain(|pid| link_of(*pid, "net").as_ref() == Some(&network));
            let is_there = !processes.is_empty() && has_address(&folder, address.ip());
            is_there.then_some((pid, processes))
        });
        match (homes.next(), homes.next()) {
            (Some((pid, processes)), None) => Listening { elsewhere: Some(pid), processes },
            _ => Listening::default(),
        }
    }
}

/// Returns the ids of the processes with a socket listening at `address`, in the calling thread's network namespace;
/// empty if there are none, or none that this process may inspect (proc_pid_fd(5)).
pub fn listening_at(address: SocketAddr) -> Vec<u32> {
    holders(&inodes_in("/proc/thread-self/net", address))
}

/// Returns the sockets that listen at an address, in the form of links to them, from the tables in a folder
/// (proc_pid_net(5)).
fn inodes_in(folder: &str, address: SocketAddr) -> BTreeSet<String> {
    ["tcp", "tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(format!("{folder}/{table}")).ok())
        .flat_map(|text| inodes(&text, address))
        .map(|inode| format!("socket:[{inode}]"))
        .collect()
}

/// Returns the processes that have one of these sockets open.
fn holders(sockets: &BTreeSet<String>) -> Vec<u32> {
    if sockets.is_empty() {
        return Vec::new();
    }
    every_process()
        .filter(|pid| {
            let open = fs::read_dir(format!("/proc/{pid}/fd"));
            let mut links = open.into_iter().flatten().flatten();
            links.any(|link| {
                let target = fs::read_link(link.path());
                target
                    .is_ok_and(|target| target.to_str().is_some_and(|text| sockets.contains(text)))
            })
        })
        .collect()
}

fn every_process() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the network namespaces other than the calling thread's, each with one of its processes that has the calling
/// thread's user namespace: only someone privileged there can have put it into that network.
fn other_networks() -> BTreeMap<PathBuf, u32> {
    let [own_network, own_users] =
        ["net", "user"].map(|kind| fs::read_link(format!("/proc/thread-self/ns/{kind}")).ok());
    let mut first_in = BTreeMap::new();
    for pid in every_process() {
        let network = link_of(pid, "net").filter(|_| link_of(pid, "user") == own_users);
        if let Some(network) = network.filter(|network| Some(network) != own_network.as_ref()) {
            first_in.entry(network).or_insert(pid);
        }
    }
    first_in
}

/// Returns the link to a namespace of a process, as in namespaces(7).
fn link_of(pid: u32, kind: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()
}

/// Returns true if the most specific route to an address has no gateway, according to `route` and `ipv6_route`
/// (proc_pid_net(5)).
fn is_on_link(address: IpAddr) -> bool {
    let folder = "/proc/thread-self/net";
    let table = match address {
        IpAddr::V4(_) => "route",
        IpAddr::V6(_) => "ipv6_route",
    };
    let text = fs::read_to_string(format!("{folder}/{table}")).unwrap_or_default();
    is_direct(&text, address)
}

/// Returns true if the most specific route in this table that matches an address has no gateway.
fn is_direct(text: &str, address: IpAddr) -> bool {
    let fitting = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split_ascii_whitespace().collect();
        match address {
            IpAddr::V4(address) => {
                let [to, gateway, mask] = [1, 2, 7].map(|at| word(cells.get(at)?));
                let (mask, address) = (mask?, u32::from_ne_bytes(address.octets()));
                (address & mask == to?).then_some((mask.count_ones(), gateway? == 0))
            }
            IpAddr::V6(address) => {
                let length = u32::from_str_radix(cells.get(1)?, 16).ok()?;
                let to = u128::from_str_radix(cells.first()?, 16).ok()?;
                let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
                let is_direct = cells.get(4)?.bytes().all(|digit| digit == b'0');
                (address.to_bits() & mask == to & mask).then_some((length, is_direct))
            }
        }
    });
    fitting.max_by_key(|(length, _)| *length).is_some_and(|(_, is_direct)| is_direct)
}

/// Parses 32 bits in the host's byte order, the format of `route`.
fn word(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

/// Returns true if an interface of a network namespace has an address, according to the tables in its folder
/// (proc_pid_net(5)).
fn has_address(folder: &str, address: IpAddr) -> bool {
    let (table, has): (_, fn(&str, IpAddr) -> bool) = match address {
        IpAddr::V4(_) => ("fib_trie", has_leaf),
        IpAddr::V6(_) => ("if_inet6", has_line),
    };
    fs::read_to_string(format!("{folder}/{table}")).is_ok_and(|text| has(&text, address))
}

/// Searches `fib_trie`: a host's own address is a leaf, `|-- 10.0.0.2`, with a line `/32 host LOCAL` below it.
fn has_leaf(text: &str, address: IpAddr) -> bool {
    let leaf = format!("|-- {address}");
    let mut is_below = false;
    text.lines().map(str::trim).any(|line| {
        if line.starts_with(['|', '+']) {
            is_below = line == leaf;
        }
        is_below && line == "/32 host LOCAL"
    })
}

/// Searches `if_inet6`: lines begin with an address of 32 hexadecimal digits.
fn has_line(text: &str, address: IpAddr) -> bool {
    let IpAddr::V6(address) = address else {
        return false;
    };
    let digits = format!("{:032x}", address.to_bits());
    text.lines().any(|line| line.starts_with(&digits))
}

/// The error log that one of these processes has open: the folder that stands for `/` where that process is, and the
/// path in it; `None`: there is none that can be told by its name, `error.log` or the like.
pub fn error_log_of(pids: &[u32]) -> Option<(PathBuf, PathBuf)> {
    pids.iter().find_map(|pid| {
        let mut files = fs::read_dir(format!("/proc/{pid}/fd"))
            .ok()?
            .flatten()
            .filter_map(|link| fs::read_link(link.path()).ok());
        let log = files.find(|path| {
            let file = path.file_name().and_then(|file| file.to_str());
            path.is_absolute()
                && file.is_some_and(|file| file.contains("error") && file.ends_with(".log"))
        })?;
        Some((PathBuf::from(format!("/proc/{pid}/root")), log))
    })
}

/// Users who made the sockets that listen at an address of the calling thread's network namespace. A proxy's that root
/// started stay root's when the proxy drops its rights.
pub fn users_listening_at(address: SocketAddr) -> BTreeSet<u32> {
    let mut users = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let Ok(file) = File::open(format!("/proc/thread-self/net/{table}")) else {
            continue;
        };
        // Listening sockets come first; behind them is every connection of the host.
        let listening = BufReader::new(file)
            .lines()
            .skip(1)
            .map_while(Result::ok)
            .map_while(|line| listener_of(&line));
        users.extend(listening.filter(|it| it.is_at(address)).map(|it| it.user));
    }
    users
}

/// A socket that listens.
struct Listener {
    at: SocketAddr,
    user: u32,
    inode: String,
}

impl Listener {
    /// Returns true if connections to an address come to it: at that address, or at all addresses of the port.
    fn is_at(&self, address: SocketAddr) -> bool {
        let host = self.at.ip();
        self.at.port() == address.port()
            && (host.is_unspecified() || host.to_canonical() == address.ip().to_canonical())
    }
}

/// Returns the inodes of sockets that listen at an address or at all addresses of its port, from the lines of
/// /proc/net/tcp or tcp6 (proc_pid_net(5)).
fn inodes(text: &str, address: SocketAddr) -> Vec<String> {
    text.lines()
        .skip(1)
        .filter_map(listener_of)
        .filter(|listener| listener.is_at(address))
        .map(|listener| listener.inode)
        .collect()
}

/// The socket of a line of such a table; `None`: it does not listen.
fn listener_of(line: &str) -> Option<Listener> {
    let cells: Vec<&str> = line.split_ascii_whitespace().collect();
    let [local, state, user, inode] = [1, 3, 7, 9].map(|at| cells.get(at).copied());
    let (host, port) = local?.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    (state? == LISTEN).then_some(Listener {
        at: SocketAddr::new(host_of(host)?, port),
        user: user?.parse().ok()?,
        inode: inode?.to_owned(),
    })
}

/// Parses an address in the kernel's format: words of 32 bits in the host's byte order.
fn host_of(text: &str) -> Option<IpAddr> {
    match text.len() {
        8 => Some(IpAddr::from(Ipv4Addr::from(parse_word(text, 0)?))),
        32 => {
            let words = [
                parse_word(text, 0)?,
                parse_word(text, 8)?,
                parse_word(text, 16)?,
                parse_word(text, 24)?,
            ]
            .concat();
            Some(IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?)))
        }
        _ => None,
    }
}

fn parse_word(text: &str, at: usize) -> Option<[u8; 4]> {
    Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_is_found_by_its_address_and_by_that_of_all() {
        let pid = std::process::id();
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(bound) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let address = if bound.starts_with("[::1]") {
                SocketAddr::from((Ipv6Addr::LOCALHOST, port))
            } else {
                SocketAddr::from((Ipv4Addr::LOCALHOST, port))
            };
            // A child that another test starts just then has it too, until it runs its program.
            assert!(listening_at(address).contains(&pid), "{bound}");
            let user = rustix::process::geteuid().as_raw();
            assert_eq!(users_listening_at(address), [user].into(), "{bound}");
            drop(listener);
            assert!(!listening_at(address).contains(&pid), "{bound}");
        }
    }

    /// Tables of a host with a default route through 10.0.0.1 and a bridge for containers.
    #[test]
    fn an_address_behind_a_gateway_is_another_host_s() {
        let v4 = "Iface Destination Gateway Flags RefCnt Use Metric Mask\n\
                  eth0 00000000 0100000A 0003 0 0 0 00000000\n\
                  eth0 0000000A 00000000 0001 0 0 0 00FFFFFF\n\
                  br0 000011AC 00000000 0001 0 0 0 0000FFFF\n\
                  eth0 000911AC 0100000A 0003 0 0 0 00FFFFFF\n";
        let zero = "0".repeat(32);
        let v6 = format!(
            "fd000000000000000000000000000000 40 {zero} 00 {zero} 00000100 1 0 1 br0\n\
             {zero} 00 {zero} 00 fe800000000000000000000000000001 00000100 1 0 3 eth0\n"
        );
        for (address, expected) in [
            ("172.17.0.2", true),
            ("172.17.9.2", false),
            ("198.51.100.1", false),
            ("fd00::2", true),
            ("2001:db8::1", false),
        ] {
            let address: IpAddr = address.parse().unwrap();
            let text = if address.is_ipv4() { v4 } else { &v6 };
            assert_eq!(is_direct(text, address), expected, "{address}");
        }
    }

    #[test]
    fn other_addresses_of_the_same_port_are_not_meant() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening_at(SocketAddr::from(([127, 0, 0, 2], port))).is_empty());
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // A connection's own port is nobody's listener.
        assert!(listening_at(client.local_addr().unwrap()).is_empty());
    }
}
