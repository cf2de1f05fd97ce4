//! Measures how long connections wait in the accept queues of proxies, and counts retransmitted segments, with BPF
//! programs at tracepoints (`bpf/waits.bpf.c`). Neither appears in a proxy's own log or in counters of the kernel,
//! which know the length of a queue and the segments of a whole namespace.
//!
//! Every system call of the machine passes one of the programs while the meter exists, so it is created only on
//! request. Connections accepted through an io_uring are not measured.

use std::io;
use std::net::{IpAddr, SocketAddr};

use aya::maps::{HashMap, PerCpuArray};
use aya::programs::{Program, RawTracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use nix::libc::{SYS_accept, SYS_accept4};

use crate::ProbeError;

/// Compiled object of `bpf/waits.bpf.c`.
const PROGRAMS: &[u8] = aya::include_bytes_aligned!("bpf/waits.bpf.o");

/// BPF programs of the object, and the tracepoint of each.
const TRACEPOINTS: [(&str, &str); 4] = [
    ("established", "inet_sock_set_state"),
    ("accepted", "sys_exit"),
    ("segment_again", "tcp_retransmit_skb"),
    ("synack_again", "tcp_retransmit_synack"),
];

/// Number of classes of waits: below 1 µs, 2 µs, 4 µs and so on; the last contains all longer ones.
pub const BUCKETS: usize = 24;

/// Maximum number of proxies.
const SLOTS: u32 = 256;

type Counts = [u64; 2 * BUCKETS + 3];
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Measurements of one proxy since the meter was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Connections by the class of their wait.
    pub connections: [u64; BUCKETS],
    /// Sum of the waits in each class, nanoseconds.
    pub wait_ns: [u64; BUCKETS],
    /// Segments retransmitted by connections to the proxy's ports.
    pub inbound: u64,
    /// Segments retransmitted by all other connections of its network namespace; `None` if the namespace is not the
    /// proxy's alone.
    pub outbound: Option<u64>,
    /// Segments retransmitted to the proxy by clients on this host, over IPv4.
    pub clients: u64,
}

/// Listening addresses of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listens {
    /// Inode of its network namespace (/proc/PID/ns/net).
    pub namespace: u64,
    /// Addresses that it listens on.
    pub addresses: Vec<SocketAddr>,
    /// True if everything in the namespace belongs to the proxy.
    pub is_alone: bool,
}

/// Meter of accept queues. Its programs run until it is dropped.
pub struct WaitMeter {
    programs: Ebpf,
    /// True for each proxy that is alone in its namespace.
    proxies: Vec<bool>,
}

impl std::fmt::Debug for WaitMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WaitMeter").field(&self.proxies).finish()
    }
}

impl WaitMeter {
    /// Loads the programs for some proxies.
    ///
    /// # Errors
    /// Fails without root or CAP_BPF and CAP_PERFMON, on a kernel without BTF and these tracepoints, or for more than
    /// 256 proxies.
    pub fn watch(proxies: &[Listens]) -> Result<WaitMeter, ProbeError> {
        Ok(WaitMeter {
            programs: load(proxies).map_err(|error| {
                ProbeError::read("accept queues by eBPF", io::Error::other(error))
            })?,
            proxies: proxies.iter().map(|proxy| proxy.is_alone).collect(),
        })
    }

    /// Returns the measurements of a proxy, by its index in the argument of [`WaitMeter::watch`]; `None` if they cannot
    /// be read.
    pub fn waits(&self, place: usize) -> Option<Waits> {
        let is_alone = *self.proxies.get(place)?;
        let counts = self.programs.map("counts")?;
        let counts = PerCpuArray::<_, Counts>::try_from(counts).ok()?;
        let per_cpu = counts.get(&u32::try_from(place).ok()?, 0).ok()?;
        let sum = |at: usize| per_cpu.iter().map(|of_cpu| of_cpu[at]).sum();
        Some(Waits {
            connections: std::array::from_fn(sum),
            wait_ns: std::array::from_fn(|bucket| sum(BUCKETS + bucket)),
            inbound: sum(2 * BUCKETS),
            outbound: is_alone.then(|| sum(2 * BUCKETS + 1)),
            clients: sum(2 * BUCKETS + 2),
        })
    }
}

fn load(proxies: &[Listens]) -> Result<Ebpf, Cause> {
    if proxies.len() > SLOTS as usize {
        return Err("there are too many proxies".into());
    }
    let btf = Btf::from_sys_fs()?;
    let [accept, accept4] = [SYS_accept, SYS_accept4].map(|number| number as u64);
    let mut programs = EbpfLoader::new()
        .btf(Some(&btf))
        .override_global("accept_call", &accept, true)
        .override_global("accept4_call", &accept4, true)
        .load(PROGRAMS)?;
    let map = programs.map_mut("owners").ok_or("the object lacks a map")?;
    let mut owners: HashMap<_, u64, u32> = HashMap::try_from(map)?;
    for (place, proxy) in (0..).zip(proxies) {
        let ports = proxy.addresses.iter().map(SocketAddr::port);
        for port in ports.chain(proxy.is_alone.then_some(0)) {
            owners.insert(proxy.namespace << 16 | u64::from(port), place, 0)?;
        }
        for address in &proxy.addresses {
            if let IpAddr::V4(ip) = address.ip() {
                let key = u64::from(ip.to_bits()) << 16 | u64::from(address.port());
                owners.insert(1 << 63 | key, place, 0)?;
            }
        }
    }
    for (name, tracepoint) in TRACEPOINTS {
        let program: &mut Program =
            programs.program_mut(name).ok_or("the object lacks a program")?;
        let program: &mut RawTracePoint = program.try_into()?;
        program.load()?;
        program.attach(tracepoint)?;
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    use super::*;

    /// Creates a meter of these addresses on this host; `None` without the privileges.
    fn meter(addresses: &[SocketAddr]) -> Option<WaitMeter> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines();
        let held = u64::from_str_radix(
            lines.find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim(),
            16,
        )
        .unwrap();
        // capabilities(7): CAP_PERFMON, CAP_BPF.
        let is_allowed = [38, 39].iter().all(|bit| held & 1 << bit != 0);
        let namespace = std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
        let listens = Listens { namespace, addresses: addresses.to_vec(), is_alone: false };
        match WaitMeter::watch(&[listens]) {
            Ok(meter) => Some(meter),
            Err(error) => {
                assert!(!is_allowed || Btf::from_sys_fs().is_err(), "{error:?}");
                eprintln!("skipped: {error}");
                None
            }
        }
    }

    #[test]
    fn a_connection_waits_from_when_it_is_established_until_it_is_accepted() {
        let [watched, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [at, at_other] = [&watched, &other].map(|one| one.local_addr().unwrap());
        let Some(meter) = meter(&[at]) else {
            return;
        };
        assert_eq!(meter.waits(0).unwrap(), Waits::default());
        let held: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(at).unwrap()).collect();
        let elsewhere = TcpStream::connect(at_other).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let accepted: Vec<_> = (0..2).map(|_| watched.accept().unwrap()).collect();
        let accepted_elsewhere = other.accept().unwrap();
        let waits = meter.waits(0).unwrap();
        assert_eq!(waits.connections.iter().sum::<u64>(), 2, "{waits:?}");
        // 2^18 µs are 262 ms.
        assert_eq!(waits.connections[..19].iter().sum::<u64>(), 0, "{waits:?}");
        let wait_ns: u64 = waits.wait_ns.iter().sum();
        assert!(wait_ns >= 600_000_000, "{waits:?}");
        assert_eq!((waits.inbound, waits.outbound), (0, None));
        assert_eq!(meter.waits(1), None);
        drop((held, elsewhere, accepted, accepted_elsewhere));
    }

    #[test]
    fn what_clients_send_again_because_a_queue_is_full_is_seen() {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        listen(&listener, 1).unwrap();
        let at = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
        let Some(meter) = meter(&[at]) else {
            return;
        };
        // Two fit; the SYN of another one is sent again after a second.
        let patience = Duration::from_millis(1500);
        let held: Vec<_> = (0..4).map(|_| TcpStream::connect_timeout(&at, patience)).collect();
        let waits = meter.waits(0).unwrap();
        assert!(waits.clients >= 1, "{waits:?}");
        assert_eq!(waits.connections.iter().sum::<u64>(), 0, "{waits:?}");
        drop(held);
    }
}
