//! Cost of a message to an agent: the round trip, and CPU time on both sides.
//!
//! ```text
//! costs WEIR [MESSAGES]
//! ```
//!
//! WEIR is the executable whose `weir agent` runs as the other process: once plainly, and once in a network namespace
//! of its own, where it starts two arms in namespaces of theirs.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use weir_agent::client::{Client, Served};
use weir_agent::message::{Alive, ArmJob, Clock, NetworksJob, Ping};
use weir_agent::server::Options;
use weir_agent::{AgentError, local};
use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::Catalog;
use weir_probe::ProcessCpu;
use weir_sut::Launcher;

/// Default number of round trips of each kind.
const MESSAGES: usize = 10_000;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args_os().skip(1);
    let weir = arguments.next().map(PathBuf::from).ok_or("costs WEIR [MESSAGES]")?;
    let messages = match arguments.next() {
        Some(text) => text.to_string_lossy().parse()?,
        None => MESSAGES,
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{messages} round trips of each kind; CPU time of both sides together\n")?;
    let within = local::start(Options {
        weir: "costs".to_owned(),
        launcher: Launcher::new(weir.clone()),
        catalog: Catalog::builtin(),
        silence: None,
        stop: Arc::default(),
    })?;
    table(&mut out, "in this process", &within, None, messages)?;
    drop(within);
    let mut plain = Command::new(&weir);
    other(&mut out, "weir agent", plain.arg("agent"), messages)?;
    if let Err(error) = weir_host::may_have_networks() {
        writeln!(out, "no network namespaces: {error}")?;
        return Ok(());
    }
    let mut inside = Command::new("unshare");
    inside.arg("--net").arg(&weir).arg("agent");
    other(&mut out, "weir agent in a namespace", &mut inside, messages)?;
    Ok(())
}

/// Measures an agent in a process of its own.
fn other(
    out: &mut impl Write,
    name: &str,
    command: &mut Command,
    messages: usize,
) -> Result<(), Error> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let pid = child.id();
    let (reader, writer) = (child.stdout.take(), child.stdin.take());
    let (reader, writer) = reader.zip(writer).ok_or("no pipes")?;
    let client = Client::greet(name, "costs", reader, writer, Box::new(Process(child)))?;
    let cpu = ProcessCpu::open(pid)?;
    table(out, name, &client, Some(cpu), messages)
}

struct Process(Child);

impl Served for Process {
    fn end(mut self: Box<Self>, _: Duration) {
        let _ = self.0.wait();
    }
}

fn table(
    out: &mut impl Write,
    name: &str,
    agent: &Client,
    mut other: Option<ProcessCpu>,
    messages: usize,
) -> Result<(), Error> {
    writeln!(
        out,
        "{name}\n  {:24} {:>10} {:>10} {:>12}",
        "message", "median", "p99", "CPU/message"
    )?;
    write_row(out, "ping", &mut other, messages, &|| agent.ask(Ping))?;
    write_row(out, "clock", &mut other, messages, &|| agent.ask(Clock).map(drop))?;
    match two_arms(agent) {
        Ok(()) => {
            write_row(out, "alive, two arms", &mut other, messages, &|| agent.ask(Alive))?;
        }
        Err(error) => writeln!(out, "  alive: {error}")?,
    }
    writeln!(out)?;
    Ok(())
}

fn write_row(
    out: &mut impl Write,
    what: &str,
    other: &mut Option<ProcessCpu>,
    messages: usize,
    ask: &dyn Fn() -> Result<(), AgentError>,
) -> Result<(), Error> {
    (0..messages / 10).try_for_each(|_| ask())?;
    let before = cpu_ns(other);
    let mut trips = Vec::with_capacity(messages);
    for _ in 0..messages {
        let begun = Instant::now();
        ask()?;
        trips.push(begun.elapsed());
    }
    let cpu = (cpu_ns(other) - before) / messages as u64;
    trips.sort_unstable();
    let [median, p99] =
        [0.5, 0.99].map(|share| micros(trips[((messages - 1) as f64 * share) as usize]));
    let cpu = micros(Duration::from_nanos(cpu));
    writeln!(out, "  {what:24} {median:>10} {p99:>10} {cpu:>12}")?;
    Ok(())
}

/// Starts two proxies that serve a file, each in its own namespace if namespaces are allowed.
fn two_arms(agent: &Client) -> Result<(), AgentError> {
    if weir_host::may_have_networks().is_ok() {
        let (mtu, sources) = (1500, 1);
        agent.ask(NetworksJob { mtu, sources })?;
    }
    for slot in 0..2 {
        let job = ArmJob {
            slot,
            name: format!("arm{slot}"),
            kind: ProxyKind::Nginx,
            executable: None,
            role: ProxyRole::StaticFiles { size: 1024 },
            settings: Settings::new(),
            own: None,
            request_log: false,
            asks: Vec::new(),
            external: None,
            launcher: None,
            address: Ipv4Addr::LOCALHOST.into(),
            tls: false,
            origin: None,
            sizes: Vec::new(),
            cpus: weir_probe::allowed_cpus().map_err(|error| AgentError::Confused {
                place: agent.place().to_owned(),
                words: error.to_string(),
            })?,
            nofile: 1024,
        };
        agent.ask(job)?;
    }
    Ok(())
}

/// CPU time of this process and of the other, nanoseconds.
fn cpu_ns(other: &mut Option<ProcessCpu>) -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let ours = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    let theirs = other.as_mut().map(ProcessCpu::read_ns);
    ours + theirs.unwrap_or(0)
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_nanos() as f64 / 1e3)
}
