//! Cost of sampling: the share of a CPU that it takes with two arms and ten thousand sockets, at 1 Hz and at 10 Hz.
//!
//! `cargo run --release -p weir-host --example samples [CONNECTIONS] [SECONDS]`, as root. The example makes network
//! namespaces of its own; each arm's has half of the connections over loopback, so that both ends count.

use std::error::Error;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use weir_host::Network;
use weir_probe::sample::{GENERATOR, Namespace, ORIGIN, PROXY, SampledRole, Sampler, Tasks};

/// Number of processes of each arm.
const WORKERS: usize = 2;

type Held = Vec<(TcpStream, TcpStream)>;

fn connections(count: usize) -> io::Result<Held> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    (0..count).map(|_| Ok((TcpStream::connect(address)?, listener.accept()?.0))).collect()
}

/// A process that does nothing until it is dropped.
struct Idle(Child);

impl Idle {
    fn start() -> io::Result<Idle> {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
        Ok(Idle(child))
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `work` in a new namespace; returns the namespace's readers and the result of `work`.
fn in_namespace<T: Send>(
    work: impl FnOnce() -> T + Send,
) -> Result<(Namespace, T), Box<dyn Error>> {
    let network = Network::create()?;
    Ok(network.within(|| (Namespace::of_this_thread(), work()))?)
}

fn place(role: &'static str, arm: &str, namespace: Namespace, tasks: Tasks) -> SampledRole {
    SampledRole { role, arm: arm.to_owned(), namespace: Some(namespace), tasks }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[allow(clippy::print_stdout)] // It is what an example is for.
fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let count = numbers.next().unwrap_or(Ok(5000))?;
    let seconds = numbers.next().unwrap_or(Ok(20))?;
    let most = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit { current: most, maximum: most };
    setrlimit(Resource::Nofile, limit)?;
    let (mut held, mut idle, mut places): (Vec<Held>, Vec<Idle>, Vec<SampledRole>) =
        Default::default();
    for arm in ["one", "two"] {
        let (network, connected) = in_namespace(|| connections(count / 2))?;
        held.push(connected?);
        let started = (0..WORKERS).map(|_| Idle::start()).collect::<io::Result<Vec<Idle>>>()?;
        let pids = started.iter().map(|process| process.0.id()).collect();
        idle.extend(started);
        places.push(place(PROXY, arm, network, Tasks::Processes(pids)));
    }
    for (role, threads) in [(GENERATOR, "samples"), (ORIGIN, "samples")] {
        let (network, ()) = in_namespace(|| ())?;
        places.push(place(role, "", network, Tasks::Threads(threads)));
    }
    let mut sampler = Sampler::open(places);
    for hertz in [1, 10] {
        let (begun, before) = (Instant::now(), cpu());
        let mut rows = 0;
        for reading in 1..=seconds * hertz {
            rows += sampler.read(0).len();
            let next = begun + Duration::from_secs(1) * reading as u32 / hertz as u32;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        let share = (cpu() - before).as_secs_f64() / begun.elapsed().as_secs_f64();
        let sockets = 2 * count;
        println!("{hertz} Hz, {sockets} sockets: {:.2} % of a CPU, {rows} rows", share * 100.0);
    }
    Ok(())
}
