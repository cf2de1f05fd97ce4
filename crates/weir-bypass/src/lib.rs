//! Socket-level bypass of the kernel's TCP between two ends on one host (sockmap).
//!
//! The bytes that one end sends are put straight into the other end's receive queue: no TCP/IP, no softirq, no device.
//! Handshake and close stay TCP's. Three BPF programs implement it; `bpf/sockmap.bpf.c` also explains why no byte
//! overtakes another and how the sender waits for a slow reader. The compiled object is part of the source, so that a
//! build needs no clang; `make bpf` rebuilds it.
//!
//! Sockets are added when their handshake ends, and only those of this process's cgroup: both ends must be processes in
//! it or in groups below. The kernel removes everything when the process ends, however it ends: nothing is pinned, and
//! only descriptors hold the programs.
//!
//! Several bypasses may be attached in one cgroup. A [`Hop`] that names the network namespaces of its ends takes no
//! sockets of other namespaces, whatever their addresses. A hop that names none takes all sockets with its address, so
//! two such hops in one cgroup must not have the same address.
//!
//! # Differences that a program on a bypassed socket notices
//!
//! Observed on Linux 6.18:
//!
//! * `MSG_TRUNC` copies instead of dropping: `recv` with it needs a buffer of the full length.
//! * `MSG_WAITALL` does not wait.
//! * A `close` with bytes unread ends with FIN instead of RST.
//! * `splice` from a bypassed socket returns only bytes that came by TCP, never redirected ones: a program
//!   that splices from it waits for ever. `splice` to it works, as does `sendfile`.
//! * A `recv` that blocks may fail with EAGAIN instead of waiting: when FIN or RST comes, or bytes by
//!   TCP (a message that met a full queue). When repeated, it goes on. Programs with non-blocking
//!   sockets, such as proxies, do not notice.
//!
//! Not tested, and not to be used on bypassed sockets until tested: `SO_RCVLOWAT`, `MSG_ZEROCOPY`, kernel TLS.
//! Redirected bytes do not pass through TCP, so its counters, packet filters and captures cannot show them.
//!
//! Every [`Bypass::attach`] tests that FIONREAD counts redirected and other bytes together; otherwise nginx would stop
//! reading.

mod cgroup;
mod endpoint;
mod error;
mod namespace;
mod trial;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use aya::maps::{HashMap, MapData, PerCpuArray, SockHash};
use aya::programs::{CgroupAttachMode, SkMsg, SkSkb, SockOps};
use aya::util::KernelVersion;
use aya::{Btf, Ebpf, EbpfLoader};

pub use error::BypassError;
pub use namespace::{Ends, Namespace};

use endpoint::{Key, Leg, Row};

/// Compiled object of `bpf/sockmap.bpf.c`.
const PROGRAMS: &[u8] = aya::include_bytes_aligned!("bpf/sockmap.bpf.o");
/// Maximum number of hops; `HOPS_MAX` in `bpf/sockmap.bpf.c`.
const HOPS_MAX: u32 = 1024;
/// Maximum number of sockets; `SOCKETS_MAX` in `bpf/sockmap.bpf.c`.
const SOCKETS_MAX: u32 = 1 << 18;
/// Key of a socket; `struct tuple` in `bpf/sockmap.bpf.c`.
type Tuple = [u32; 10];

/// One leg between two ends: all connections to one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Address that clients connect to. If unspecified (`0.0.0.0`, `[::]`), its port at any address.
    pub server: SocketAddr,
    /// Network namespaces of both ends; `None`: any namespaces.
    pub namespaces: Option<Ends>,
}

impl From<SocketAddr> for Hop {
    /// Makes a hop in any namespaces.
    fn from(server: SocketAddr) -> Hop {
        Hop { server, namespaces: None }
    }
}

/// Counts of sockets and messages. A message is the data of one send call, or a part of it of up to 544 KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sockets added to the bypass: two for a connection with both ends in it.
    pub sockets: u64,
    /// Messages redirected.
    pub redirected: u64,
    /// Bytes of redirected messages.
    pub redirected_bytes: u64,
    /// Messages left to TCP because the peer is not in the bypass: it is on another host, in another cgroup, or has
    /// closed.
    pub alone: u64,
    /// Messages left to TCP because earlier messages sent by TCP are still unread.
    pub behind: u64,
    /// Messages left to TCP because the peer's queue holds 256 KiB, or memory for TCP is scarce.
    pub full: u64,
    /// Bytes of messages left to TCP. If the kernel has no room for a whole message, the rest comes again and is
    /// counted again.
    pub tcp_bytes: u64,
    /// Sockets that should have been added but were not: there is room for 262,144, or memory is scarce. Their messages
    /// go by TCP and are not counted.
    pub refused: u64,
}

impl Counts {
    /// Returns the number of messages left to TCP.
    pub fn left_to_tcp(&self) -> u64 {
        self.alone + self.behind + self.full
    }

    /// Returns the share of redirected bytes in all bytes, 0 to 1; `None` if there are no bytes.
    pub fn redirected_share(&self) -> Option<f64> {
        let all = self.redirected_bytes + self.tcp_bytes;
        (all > 0).then(|| self.redirected_bytes as f64 / all as f64)
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.sockets += other.sockets;
        self.redirected += other.redirected;
        self.redirected_bytes += other.redirected_bytes;
        self.alone += other.alone;
        self.behind += other.behind;
        self.full += other.full;
        self.tcp_bytes += other.tcp_bytes;
        self.refused += other.refused;
    }
}

/// Counts since the bypass was attached, or since the hop was added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sum of all hops.
    pub total: Counts,
    /// Counts by hop, in the order of addresses.
    pub hops: Vec<(SocketAddr, Counts)>,
}

/// An attached bypass; dropping it detaches it.
///
/// Dropping it while bypassed connections are open loses the bytes that their ends have not read: end the load first.
pub struct Bypass {
    hops: HashMap<MapData, Key, Leg>,
    asked: HashMap<MapData, u64, u64>,
    counts: PerCpuArray<MapData, Row>,
    /// Row of `counts` by endpoint.
    rows: BTreeMap<SocketAddr, u32>,
    /// Owner of the programs, the link and the maps.
    _programs: Ebpf,
}

impl std::fmt::Debug for Bypass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bypass").field("hops", &self.rows.keys()).finish_non_exhaustive()
    }
}

/// Checks whether connections can be bypassed on this host, by bypassing one on loopback.
///
/// # Errors
/// Connections cannot be bypassed; the error gives the reason and the remedy.
pub fn available() -> Result<(), BypassError> {
    Bypass::attach(&[]).map(drop)
}

impl Bypass {
    /// Bypasses all connections to these endpoints that begin from now on.
    ///
    /// # Errors
    /// The kernel does not allow the bypass or does it wrongly. Nothing is left behind then.
    pub fn attach(hops: &[Hop]) -> Result<Bypass, BypassError> {
        let mut bypass = Bypass::load(SOCKETS_MAX)?;
        trial::run(&mut bypass)?;
        for hop in hops {
            bypass.add(*hop)?;
        }
        Ok(bypass)
    }

    /// Loads and attaches the programs with room for `room` sockets.
    fn load(room: u32) -> Result<Bypass, BypassError> {
        // Before 5.7 the loader would attach without a link, which outlives its process.
        let kernel = KernelVersion::current().map_err(|e| BypassError::Refused {
            doing: "read the kernel's version",
            words: e.to_string(),
        })?;
        if kernel < KernelVersion::new(5, 17, 0) {
            return Err(BypassError::KernelTooOld(format!("{kernel:?}")));
        }
        let cgroup = cgroup::of_this_process()?;
        let btf = Btf::from_sys_fs().map_err(BypassError::NoBtf)?;
        let mut programs = EbpfLoader::new()
            .btf(Some(&btf))
            .map_max_entries("sockets", room)
            .load(PROGRAMS)
            .map_err(|e| BypassError::loading("load the maps of the bypass", e))?;
        start(&mut programs, &cgroup)?;
        Ok(Bypass {
            hops: take_map(&mut programs, "hops")?,
            asked: take_map(&mut programs, "asked")?,
            counts: take_map(&mut programs, "counts")?,
            rows: BTreeMap::new(),
            _programs: programs,
        })
    }

    /// Returns the network namespace of the calling thread. The namespace is found through a connection on its loopback
    /// interface, which has to be up.
    ///
    /// # Errors
    /// The connection cannot be made, or the kernel refused.
    pub fn namespace_of_this_thread(&mut self) -> Result<Namespace, BypassError> {
        namespace::of_this_thread(&mut self.asked)
    }

    /// Bypasses the connections to another endpoint that begin from now on.
    ///
    /// # Errors
    /// The endpoint is bypassed already, or there is no room.
    pub fn add(&mut self, hop: Hop) -> Result<(), BypassError> {
        if self.rows.keys().any(|other| endpoint::key(*other) == endpoint::key(hop.server)) {
            return Err(BypassError::Twice(hop.server));
        }
        let row = (0..HOPS_MAX)
            .find(|row| !self.rows.values().any(|used| used == row))
            .ok_or(BypassError::TooManyHops { hop: hop.server, room: HOPS_MAX })?;
        let doing = "add an endpoint to the bypass";
        let cpus = aya::util::nr_cpus().map_err(|(_, e)| BypassError::Trial(e))?;
        let zeros = aya::maps::PerCpuValues::try_from(vec![Row::default(); cpus])?;
        self.counts.set(row, zeros, 0).map_err(|e| BypassError::map(doing, e))?;
        self.hops
            .insert(endpoint::key(hop.server), endpoint::leg(hop, row), 0)
            .map_err(|e| BypassError::map(doing, e))?;
        self.rows.insert(hop.server, row);
        Ok(())
    }

    /// Leaves connections to an endpoint that begin from now on to TCP. Open connections stay bypassed until they end,
    /// and may be counted for an endpoint that is added later.
    ///
    /// # Errors
    /// The endpoint was not bypassed.
    pub fn remove(&mut self, hop: Hop) -> Result<(), BypassError> {
        if self.rows.remove(&hop.server).is_none() {
            return Err(BypassError::Unknown(hop.server));
        }
        self.hops
            .remove(&endpoint::key(hop.server))
            .map_err(|e| BypassError::map("take an endpoint off the bypass", e))
    }

    /// Returns the counts so far.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn counters(&self) -> Result<Counters, BypassError> {
        let mut counters = Counters::default();
        for (&server, row) in &self.rows {
            let rows = self
                .counts
                .get(row, 0)
                .map_err(|e| BypassError::map("read the bypass's counters", e))?;
            let counts = endpoint::sum(&rows);
            counters.total += counts;
            counters.hops.push((server, counts));
        }
        Ok(counters)
    }
}

/// Loads the programs and attaches them, first those that decide about messages, so that no socket is added without
/// them.
fn start(programs: &mut Ebpf, cgroup: &std::fs::File) -> Result<(), BypassError> {
    let doing = "load the programs of the bypass";
    let refused = |e| BypassError::program(doing, e);
    let missing = || BypassError::Refused { doing, words: "the object lacks one".to_owned() };
    let sockets = SockHash::<_, Tuple>::try_from(programs.map("sockets").ok_or_else(missing)?)
        .map_err(|e| BypassError::map(doing, e))?
        .fd()
        .try_clone()
        .map_err(BypassError::Trial)?;

    let verdict = programs.program_mut("verdict").ok_or_else(missing)?;
    let verdict: &mut SkMsg = verdict.try_into().map_err(refused)?;
    verdict.load().map_err(refused)?;
    verdict.attach(&sockets).map_err(refused)?;

    let arrived = programs.program_mut("arrived").ok_or_else(missing)?;
    let arrived: &mut SkSkb = arrived.try_into().map_err(refused)?;
    arrived.load().map_err(refused)?;
    arrived.attach(&sockets).map_err(refused)?;

    let events = programs.program_mut("events").ok_or_else(missing)?;
    let events: &mut SockOps = events.try_into().map_err(refused)?;
    events.load().map_err(refused)?;
    // A link takes no flags, and always leaves other programs beside it.
    events
        .attach(cgroup, CgroupAttachMode::Single)
        .map(drop)
        .map_err(|e| BypassError::program("attach the bypass to the cgroup of this process", e))
}

fn take_map<M>(programs: &mut Ebpf, name: &'static str) -> Result<M, BypassError>
where
    M: TryFrom<aya::maps::Map, Error = aya::maps::MapError>,
{
    let doing = "open the maps of the bypass";
    let map = programs.take_map(name).ok_or_else(|| {
        let words = format!("the object has no map `{name}`");
        BypassError::Refused { doing, words }
    });
    M::try_from(map?).map_err(|e| BypassError::map(doing, e))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn hello(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"hello").unwrap();
        let mut bytes = [0; 5];
        server.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
        (client, server)
    }

    #[test]
    fn sockets_that_there_is_no_room_for_are_counted_and_left_to_tcp() {
        let mut bypass = match Bypass::load(2) {
            Ok(bypass) => bypass,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        bypass.add(listener.local_addr().unwrap().into()).unwrap();
        let _open = hello(&listener);
        let total = bypass.counters().unwrap().total;
        assert_eq!((total.sockets, total.refused), (2, 0), "{total:?}");
        let _one_too_many = hello(&listener);
        let total = bypass.counters().unwrap().total;
        assert_eq!((total.sockets, total.refused), (2, 2), "{total:?}");
        assert_eq!(total.redirected_bytes, 5, "of the first alone");
    }
}
