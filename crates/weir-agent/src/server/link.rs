//! Measurement of a link between two roles: throughput and round-trip time.
//!
//! One connection carries orders and their echoes. The bytes of each direction go over a connection of their own, which
//! the receiver closes when its time is over, so that nothing has to be drained, however slow the link is.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
use rustix::time::{ClockId, clock_gettime};
use weir_model::quantity::CpuSet;
use weir_model::record::{Carried, LinkEnd, RoundTrips, TripKind, Unmeasured};

use super::networks::{Networks, arm_addresses, origin_address};
use crate::message::{Failure, LinkFigures, LinkJob, LinkListener, LinkWay, NetworksJob};

/// Duration of the transfer in each direction: the first if a round trip takes less than [`NEAR`], else the second. A
/// new connection is slow for some round trips (RFC 5681 section 3.1).
const LENGTHS: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(400)];
/// Longest round trip for which the first of [`LENGTHS`] is used.
const NEAR: Duration = Duration::from_millis(1);
/// Divisor for the uncounted part at the start of a transfer: the first fifth is left out, since a new connection is
/// slow.
const UNCOUNTED: u32 = 5;
/// Maximum number of echoes, minimum number, and time after which no more are sent once the minimum is reached.
const ECHOES: (usize, usize, Duration) = (1_000, 10, Duration::from_millis(80));
/// Number of connections to open to a server that does not echo, and the time from one to the next: 100 per second.
const CONNECTS: (u32, Duration) = (10, Duration::from_millis(10));
/// Time limit for opening a connection and for any answer.
const PATIENCE: Duration = Duration::from_millis(700);
/// Maximum time for which a listener exists.
const LIFE: Duration = Duration::from_secs(5);
/// Bytes per write: as many as iperf3(1) sends.
const BLOCK: usize = 128 << 10;

/// Orders: echo this message, receive for a number of nanoseconds, send for a number of nanoseconds.
const ECHO: u8 = 0;
const RECEIVE: u8 = 1;
const SEND: u8 = 2;

/// Listens for a client that knows the secret, on a new thread in the calling thread's namespace. Returns the address.
pub(super) fn listen(job: &LinkListener) -> Result<SocketAddr, Failure> {
    let refused = |error| Failure::other(format!("cannot listen at {}: {error}", job.address));
    let listener = TcpListener::bind((job.address, 0)).map_err(refused)?;
    let at = listener.local_addr().map_err(refused)?;
    let (secret, cpus) = (job.secret, job.cpus.clone());
    let thread = thread::Builder::new().name("weir-link".to_owned());
    let started = thread.spawn(move || {
        let _ = weir_probe::keep_to(None, cpus.cpus());
        // Whoever measures sees its connection end, and says so.
        let _ = serve(&listener, secret, Instant::now() + LIFE);
    });
    started.map_err(refused)?;
    Ok(at)
}

/// Measures a link.
pub(super) fn measure(job: &LinkJob) -> Result<LinkFigures, Failure> {
    match &job.way {
        LinkWay::Namespaces { networks, to, cpus } => between(networks, *to, (&job.cpus, cpus)),
        LinkWay::Listener { at, secret } => pinned(&job.cpus, || figures(*at, *secret)),
        LinkWay::Connect(at) => pinned(&job.cpus, || connects(*at)),
    }
}

/// Measures a link between two of three new namespaces, which are made like an arm's but have no arm.
fn between(
    job: &NetworksJob,
    to: LinkEnd,
    (own, theirs): (&CpuSet, &CpuSet),
) -> Result<LinkFigures, Failure> {
    let mut networks = Networks::make(job)?;
    let arm = networks.arm(0)?;
    let (from, to, address) = match to {
        LinkEnd::Origin => (&arm, &networks.origin, origin_address(0)),
        LinkEnd::Proxy | LinkEnd::Generator => (&networks.generator, &arm, arm_addresses(0).0),
    };
    let listener = LinkListener { address: address.ip(), cpus: theirs.clone(), secret: 0 };
    let at = to.within(|| listen(&listener))??;
    from.within(|| pinned(own, || figures(at, 0)))?
}

/// Runs some work on a new thread that is restricted to some CPUs.
fn pinned<T: Send>(
    cpus: &CpuSet,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, Failure> {
    let done = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _ = weir_probe::keep_to(None, cpus.cpus());
            work()
        });
        worker.join()
    });
    done.map_err(|_| Failure::other("a measurement of a link has panicked"))?
        .map_err(Failure::other)
}

/// Measures over connections to a listener of weir's.
fn figures(peer: SocketAddr, secret: u64) -> io::Result<LinkFigures> {
    let mut control = enter(peer, secret).map_err(|error| said_of(peer, error))?;
    let trips = echoes(&mut control).map_err(|error| said_of(peer, error))?;
    let is_near = trips.p50_ns < NEAR.as_nanos() as u64;
    let length = LENGTHS[usize::from(!is_near)];
    let mut unmeasured = Vec::new();
    let mut take = |what: &str, carried: io::Result<Carried>| {
        carried.map_err(|error| unmeasured.push(Unmeasured::new(what, said_of(peer, error)))).ok()
    };
    let forth = take(
        "bytes per second there",
        carry(&mut control, RECEIVE, length, || Ok(send(&mut enter(peer, secret)?, length))),
    );
    let back = take(
        "bytes per second back",
        carry(&mut control, SEND, length, || receive(&mut enter(peer, secret)?, length)),
    );
    Ok(LinkFigures { peer, trips, mtu: mtu(&control), forth, back, unmeasured })
}

/// Orders the other side to receive or to send, does the opposite, and combines both sides' figures.
fn carry(
    control: &mut TcpStream,
    order: u8,
    length: Duration,
    measure: impl FnOnce() -> io::Result<Carried>,
) -> io::Result<Carried> {
    control.write_all(&ordered(order, length.as_nanos() as u64))?;
    let ours = measure()?;
    let mut theirs = [[0; 8]; 2];
    control.read_exact(theirs.as_flattened_mut())?;
    let [rate, cpus] = theirs.map(f64::from_be_bytes);
    let carried = Carried {
        // Whoever sends knows none.
        bytes_per_s: ours.bytes_per_s.max(rate),
        cpus: ours.cpus + cpus,
    };
    let is_whole = carried.bytes_per_s.is_normal() && carried.cpus.is_finite();
    is_whole.then_some(carried).ok_or_else(|| io::Error::other("no bytes came"))
}

/// Measures round trips of small messages.
fn echoes(control: &mut TcpStream) -> io::Result<RoundTrips> {
    let (most, least, length) = ECHOES;
    let (mut times, begun) = (Vec::with_capacity(most), Instant::now());
    let mut echo = ordered(ECHO, 0);
    // The first finds caches cold.
    let mut is_first = true;
    while times.len() < most && (times.len() < least || begun.elapsed() < length) {
        let sent = Instant::now();
        control.write_all(&echo)?;
        control.read_exact(&mut echo)?;
        if !std::mem::take(&mut is_first) {
            times.push(sent.elapsed());
        }
        if begun.elapsed() > PATIENCE && !times.is_empty() {
            break;
        }
    }
    Ok(trips(TripKind::Echo, times))
}

/// Measures the time to open connections to a server that weir did not start.
fn connects(peer: SocketAddr) -> io::Result<LinkFigures> {
    let (count, apart) = CONNECTS;
    let (mut times, mut path) = (Vec::new(), None);
    for _ in 0..=count {
        let begun = Instant::now();
        let opened =
            TcpStream::connect_timeout(&peer, PATIENCE).map_err(|error| said_of(peer, error))?;
        times.push(begun.elapsed());
        path = mtu(&opened);
        drop(opened);
        thread::sleep(apart.saturating_sub(begun.elapsed()));
    }
    // The first asks for the way.
    times.remove(0);
    Ok(LinkFigures {
        peer,
        trips: trips(TripKind::Connect, times),
        mtu: path,
        forth: None,
        back: None,
        unmeasured: vec![Unmeasured::new(
            "bytes per second",
            "weir did not start what listens there",
        )],
    })
}

fn trips(by: TripKind, mut times: Vec<Duration>) -> RoundTrips {
    times.sort_unstable();
    RoundTrips {
        by,
        count: times.len() as u32,
        p50_ns: pick_quantile(&times, 0.5),
        p99_ns: pick_quantile(&times, 0.99),
    }
}

fn pick_quantile(sorted: &[Duration], q: f64) -> u64 {
    let rank = (sorted.len() as f64 * q).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).map_or(0, |time| time.as_nanos() as u64)
}

/// Answers orders until their connection ends or the time is over.
fn serve(listener: &TcpListener, secret: u64, until: Instant) -> io::Result<()> {
    let mut control = welcome(listener, secret, until)?;
    while Instant::now() < until {
        let mut order = [0; 9];
        control.read_exact(&mut order)?;
        let [kind, ns @ ..] = order;
        let length = Duration::from_nanos(u64::from_be_bytes(ns)).min(LIFE);
        let carried = match kind {
            ECHO => {
                control.write_all(&order)?;
                continue;
            }
            RECEIVE => receive(&mut welcome(listener, secret, until)?, length)?,
            SEND => send(&mut welcome(listener, secret, until)?, length),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        control
            .write_all([carried.bytes_per_s, carried.cpus].map(f64::to_be_bytes).as_flattened())?;
    }
    Ok(())
}

/// Accepts connections until one presents the secret.
fn welcome(listener: &TcpListener, secret: u64, until: Instant) -> io::Result<TcpStream> {
    loop {
        let remaining = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(remaining).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&timeout))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (mut stream, _) = listener.accept()?;
        ready(&stream)?;
        let mut received = [0; 8];
        if stream.read_exact(&mut received).is_ok() && u64::from_be_bytes(received) == secret {
            return Ok(stream);
        }
    }
}

fn enter(peer: SocketAddr, secret: u64) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&peer, PATIENCE)?;
    ready(&stream)?;
    stream.write_all(&secret.to_be_bytes())?;
    Ok(stream)
}

fn ready(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Sends until the peer closes the connection. The returned rate is 0, since only the receiver knows it.
fn send(stream: &mut TcpStream, length: Duration) -> Carried {
    // Zeros that were never written are one page of the kernel's, which is copied faster than what anybody sends.
    let (block, begun, cpu) = (vec![1; BLOCK], Instant::now(), thread_cpu());
    let until = begun + length + PATIENCE;
    while Instant::now() < until && stream.write(&block).is_ok() {}
    Carried { bytes_per_s: 0.0, cpus: share(cpu, begun) }
}

/// Receives for a duration counted from the first byte. The first part is not counted.
fn receive(stream: &mut TcpStream, length: Duration) -> io::Result<Carried> {
    let mut block = vec![0; BLOCK];
    let _ = stream.read(&mut block)?;
    let (begun, cpu) = (Instant::now(), thread_cpu());
    let (mut bytes, mut from, mut last) = (0, begun, begun);
    while begun.elapsed() < length {
        // One that has ended, or is silent, has carried what came until then.
        let Ok(count @ 1..) = stream.read(&mut block) else {
            break;
        };
        last = Instant::now();
        if last - begun < length / UNCOUNTED {
            from = last;
        } else {
            bytes += count;
        }
    }
    Ok(Carried {
        bytes_per_s: bytes as f64 / (last - from).as_secs_f64().max(1e-9),
        cpus: share(cpu, begun),
    })
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the number of CPUs that the calling thread has used since `begun`; `cpu` is its CPU time at that moment.
fn share(cpu: Duration, begun: Instant) -> f64 {
    let took = begun.elapsed().as_secs_f64().max(1e-9);
    thread_cpu().saturating_sub(cpu).as_secs_f64() / took
}

fn ordered(order: u8, ns: u64) -> [u8; 9] {
    let mut bytes = [order; 9];
    bytes[1..].copy_from_slice(&ns.to_be_bytes());
    bytes
}

fn mtu(stream: &TcpStream) -> Option<u32> {
    match stream.peer_addr().ok()? {
        SocketAddr::V4(_) => ip_mtu(stream).ok(),
        SocketAddr::V6(_) => ipv6_mtu(stream).ok(),
    }
}

fn said_of(peer: SocketAddr, error: io::Error) -> io::Error {
    io::Error::other(format!("{peer}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_round_trips_are_times_that_were_seen() {
        let times: Vec<Duration> = (1..=200).rev().map(Duration::from_nanos).collect();
        let many = trips(TripKind::Echo, times);
        assert_eq!((many.count, many.p50_ns, many.p99_ns), (200, 100, 198));
        let few = trips(TripKind::Connect, vec![Duration::from_nanos(7); 3]);
        assert_eq!((few.p50_ns, few.p99_ns), (7, 7));
    }
}
