//! Socket-level bypass of the kernel's TCP between two ends on one host (sockmap).
//!
//! What one end sends is put straight into the other's receive queue: no TCP/IP, no softirq, no
//! device. Handshake and close stay TCP's. Three BPF programs do it, `bpf/sockmap.bpf.c`, which also
//! says why no byte overtakes another and how a slow reader is waited for. Their object is part of
//! the source, so that a build takes no clang; `make bpf` makes it anew.
//!
//! Sockets are taken in when their handshake ends, and only of the cgroup of this process: both ends
//! must be processes of it or of groups below. The kernel takes everything down when the process
//! ends, however it ends: nothing is pinned, and what holds the programs are descriptors.
//!
//! Several bypasses may be attached in one cgroup. A [`Hop`] that names the network namespaces of its
//! ends has no sockets of others, whatever their addresses; one that names none takes all that have its
//! address, so two of those in one cgroup must not have the same.
//!
//! # What a program on a bypassed socket sees otherwise
//!
//! Seen on Linux 6.18:
//!
//! * `MSG_TRUNC` copies instead of dropping: `recv` with it needs a buffer as long as it says.
//! * `MSG_WAITALL` does not wait.
//! * A `close` with bytes unread ends with FIN instead of RST.
//! * `splice` from one finds what came by TCP alone, and never what was redirected: who splices waits
//!   for ever. To one it may, as `sendfile`.
//! * A `recv` that blocks may fail with EAGAIN, though it is to wait: when FIN or RST comes, or bytes by
//!   TCP (a message that found a full queue). Asked again, it goes on. Programs whose sockets do not
//!   block, as those of proxies, see nothing of it.
//!
//! Not tried, and to be kept away from bypassed sockets until it is: `SO_RCVLOWAT`, `MSG_ZEROCOPY`,
//! kernel TLS. What is redirected does not pass through TCP, so its counters, packet filters and
//! captures cannot know of it.
//!
//! That FIONREAD tells of redirected and other bytes together, without which nginx would stop
//! reading, is tried at every [`Bypass::attach`].

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

/// The object of `bpf/sockmap.bpf.c`.
const PROGRAMS: &[u8] = aya::include_bytes_aligned!("bpf/sockmap.bpf.o");
/// HOPS_MAX there.
const HOPS_MAX: u32 = 1024;
/// SOCKETS_MAX there.
const SOCKETS_MAX: u32 = 1 << 18;
/// `struct tuple` there.
type Tuple = [u32; 10];

/// One leg between two ends: all connections to one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// What clients connect to. Without an address (`0.0.0.0`, `[::]`), its port at any address.
    pub server: SocketAddr,
    /// Where both ends are; `None`: in any namespaces.
    pub namespaces: Option<Ends>,
}

impl From<SocketAddr> for Hop {
    /// In any namespaces.
    fn from(server: SocketAddr) -> Hop {
        Hop {
            server,
            namespaces: None,
        }
    }
}

/// What happened to sockets and messages. A message is what one call sent, or a part of up to 544 KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sockets taken in: two for a connection with both ends here.
    pub sockets: u64,
    /// Messages redirected.
    pub redirected: u64,
    /// Their bytes.
    pub redirected_bytes: u64,
    /// Messages left to TCP because the peer is not taken in: it is on another host, in another
    /// cgroup, or has closed.
    pub alone: u64,
    /// Messages left to TCP because earlier ones that went by TCP are not read yet.
    pub behind: u64,
    /// Messages left to TCP because the peer's queue holds 256 KiB, or memory for TCP is scarce.
    pub full: u64,
    /// Bytes of messages left to TCP. Of one that the kernel had no room for, the rest comes again
    /// and is counted again.
    pub tcp_bytes: u64,
    /// Sockets that were not taken in though they were to be: there is room for 262,144, or memory is
    /// scarce. What they send goes by TCP and is counted nowhere.
    pub refused: u64,
}

impl Counts {
    /// Messages left to TCP.
    pub fn left_to_tcp(&self) -> u64 {
        self.alone + self.behind + self.full
    }

    /// Redirected bytes of all, 0 to 1; none without bytes.
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
    /// All hops together.
    pub total: Counts,
    /// By hop, in the order of addresses.
    pub hops: Vec<(SocketAddr, Counts)>,
}

/// A bypass that is attached, until it is dropped.
///
/// Dropping it while bypassed connections are open loses what their ends have not read: end the
/// load first.
pub struct Bypass {
    hops: HashMap<MapData, Key, Leg>,
    asked: HashMap<MapData, u64, u64>,
    counts: PerCpuArray<MapData, Row>,
    /// Endpoints and their rows of `counts`.
    rows: BTreeMap<SocketAddr, u32>,
    /// Holds the programs, the link and the maps.
    _programs: Ebpf,
}

impl std::fmt::Debug for Bypass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bypass")
            .field("hops", &self.rows.keys())
            .finish_non_exhaustive()
    }
}

/// Whether connections can be bypassed here. It finds out by doing it, on loopback.
///
/// # Errors
/// They cannot; the error says why, and what it would take.
pub fn available() -> Result<(), BypassError> {
    Bypass::attach(&[]).map(drop)
}

impl Bypass {
    /// Bypasses all connections to these endpoints that begin from now on.
    ///
    /// # Errors
    /// The kernel does not allow it or cannot do it rightly. Nothing is left behind then.
    pub fn attach(hops: &[Hop]) -> Result<Bypass, BypassError> {
        let mut bypass = Bypass::load(SOCKETS_MAX)?;
        trial::run(&mut bypass)?;
        for hop in hops {
            bypass.add(*hop)?;
        }
        Ok(bypass)
    }

    /// With room for so many sockets.
    fn load(room: u32) -> Result<Bypass, BypassError> {
        // Before 5.7 the loader would attach without a link, which outlives its process.
        let kernel = KernelVersion::current().map_err(|e| BypassError::Refused {
            doing: "read the kernel's version",
            words: e.to_string(),
        })?;
        if kernel < KernelVersion::new(5, 17, 0) {
            let found = format!("{kernel:?}");
            return Err(BypassError::KernelTooOld(found));
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
            hops: taken(&mut programs, "hops")?,
            asked: taken(&mut programs, "asked")?,
            counts: taken(&mut programs, "counts")?,
            rows: BTreeMap::new(),
            _programs: programs,
        })
    }

    /// The network namespace of the calling thread. It finds out by a connection on its loopback
    /// interface, which has to be up.
    ///
    /// # Errors
    /// There is no such connection, or the kernel refused.
    pub fn namespace_of_this_thread(&mut self) -> Result<Namespace, BypassError> {
        namespace::of_this_thread(&mut self.asked)
    }

    /// Bypasses the connections to another endpoint that begin from now on.
    ///
    /// # Errors
    /// It is bypassed already, or there is no room.
    pub fn add(&mut self, hop: Hop) -> Result<(), BypassError> {
        let same = |other: &SocketAddr| endpoint::key(*other) == endpoint::key(hop.server);
        if self.rows.keys().any(same) {
            return Err(BypassError::Twice(hop.server));
        }
        let row = (0..HOPS_MAX)
            .find(|row| !self.rows.values().any(|used| used == row))
            .ok_or(BypassError::TooManyHops {
                hop: hop.server,
                room: HOPS_MAX,
            })?;
        let doing = "add an endpoint to the bypass";
        let refused = |e| BypassError::map(doing, e);
        let cpus = aya::util::nr_cpus().map_err(|(_, e)| BypassError::Trial(e))?;
        let zeros = aya::maps::PerCpuValues::try_from(vec![Row::default(); cpus])?;
        self.counts.set(row, zeros, 0).map_err(refused)?;
        self.hops
            .insert(endpoint::key(hop.server), endpoint::leg(hop, row), 0)
            .map_err(refused)?;
        self.rows.insert(hop.server, row);
        Ok(())
    }

    /// Leaves the connections to an endpoint that begin from now on to TCP. Those that are open stay
    /// bypassed until they end, and may be counted with an endpoint that is added later.
    ///
    /// # Errors
    /// It was not bypassed.
    pub fn remove(&mut self, hop: Hop) -> Result<(), BypassError> {
        if self.rows.remove(&hop.server).is_none() {
            return Err(BypassError::Unknown(hop.server));
        }
        self.hops
            .remove(&endpoint::key(hop.server))
            .map_err(|e| BypassError::map("take an endpoint off the bypass", e))
    }

    /// What happened so far.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn counters(&self) -> Result<Counters, BypassError> {
        let mut counters = Counters::default();
        for (&server, row) in &self.rows {
            let rows = self.counts.get(row, 0);
            let rows = rows.map_err(|e| BypassError::map("read the bypass's counters", e))?;
            let counts = endpoint::sum(&rows);
            counters.total += counts;
            counters.hops.push((server, counts));
        }
        Ok(counters)
    }
}

/// Loads the programs and attaches them: first those that decide about messages, so that no socket
/// is taken in without them.
fn start(programs: &mut Ebpf, cgroup: &std::fs::File) -> Result<(), BypassError> {
    let doing = "load the programs of the bypass";
    let refused = |e| BypassError::program(doing, e);
    let missing = || BypassError::Refused {
        doing,
        words: "the object lacks one".to_owned(),
    };
    let sockets = SockHash::<_, Tuple>::try_from(programs.map("sockets").ok_or_else(missing)?);
    let sockets = sockets.map_err(|e| BypassError::map(doing, e))?;
    let sockets = sockets.fd().try_clone().map_err(BypassError::Trial)?;

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

fn taken<M>(programs: &mut Ebpf, name: &'static str) -> Result<M, BypassError>
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
