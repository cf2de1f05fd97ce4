//! Sends many requests through proxies, by TCP and with both hops bypassed, and compares every byte.
//!
//! Usage: `cargo run --release -p weir-bypass --example soak [REQUESTS] [CLIENTS] [SECONDS] [PROXY…]`. By default each
//! way sends a million requests from 16 connections and takes 600 seconds at most. PROXY is `nginx`, `haproxy`,
//! `envoy`, `caddy`, or `direct`, which sends to the origin server over one hop.

#![expect(clippy::print_stdout, reason = "an example tells what it saw")]

use std::error::Error;
use std::num::ParseIntError;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use weir_bypass::Bypass;
use weir_testkit::peers::{Client, Proxy, Topology, WOKEN};

/// Content sizes in bytes, and the number out of a thousand requests that ask for each.
const SIZES: [(usize, u64); 6] =
    [(0, 20), (100, 300), (1 << 10, 500), (10_000, 159), (100_000, 20), (1 << 20, 1)];

#[derive(Default)]
struct Tally {
    requests: AtomicU64,
    wrong: AtomicU64,
    errors: AtomicU64,
}

/// Name of a proxy, and the function that starts it.
type ProxyStart = (&'static str, fn(&Topology, &Path) -> Option<Proxy>);

const WAYS: [ProxyStart; 5] = [
    ("nginx", |topology, folder| Proxy::nginx(topology, folder, "", true)),
    ("haproxy", |topology, folder| Proxy::haproxy(topology, folder, "")),
    ("envoy", Proxy::envoy),
    ("caddy", Proxy::caddy),
    // The client asks the origin server, by the proxy's hop.
    ("direct", |_, _| None),
];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (requests, clients, seconds) =
        (argument(&args, 0, 1_000_000)?, argument(&args, 1, 16)?, argument(&args, 2, 600)?);
    println!(
        "through  way      requests  wrong bytes  errors  redirected  left to TCP  woken  seconds"
    );
    for (name, start) in WAYS.into_iter().filter(|(name, _)| is_named(&args, name)) {
        for bypassed in [false, true] {
            let load = Load { requests, clients, seconds };
            one_way(name, start, bypassed, &load)?;
        }
    }
    Ok(())
}

/// Reads the numeric argument at `index`.
fn argument(args: &[String], index: usize, default: u64) -> Result<u64, ParseIntError> {
    args.get(index).map_or(Ok(default), |text| text.parse())
}

fn is_named(args: &[String], proxy: &str) -> bool {
    args.len() < 4 && proxy == "nginx" || args.iter().skip(3).any(|arg| arg == proxy)
}

struct Load {
    requests: u64,
    clients: u64,
    seconds: u64,
}

fn one_way(
    name: &str,
    start: fn(&Topology, &Path) -> Option<Proxy>,
    bypassed: bool,
    load: &Load,
) -> Result<(), Box<dyn Error>> {
    let mut topology = Topology::namespaces().ok_or("it takes namespaces")?;
    let is_direct = name == "direct";
    if is_direct {
        (topology.origin, topology.outbound) = (topology.proxy.clone(), topology.inbound);
    }
    let hops = [topology.inbound, topology.outbound];
    let hops = if is_direct { &hops[..1] } else { &hops };
    let folder = tempfile::tempdir()?;
    let bypass = bypassed.then(|| topology.attach(hops)).transpose()?;
    topology.serve();
    let proxy = start(&topology, folder.path());
    if proxy.is_none() && !is_direct {
        return Ok(());
    }
    let tally = Tally::default();
    let began = Instant::now();
    let until = began + Duration::from_secs(load.seconds);
    thread::scope(|scope| {
        for client in 0..load.clients {
            let (tally, topology) = (&tally, &topology);
            scope.spawn(move || {
                topology.client.join().map_err(|e| e.to_string())?;
                run(topology, tally, client, load, until);
                Ok::<(), String>(())
            });
        }
    });
    let counters = bypass.as_ref().map(Bypass::counters).transpose()?;
    let total = counters.unwrap_or_default().total;
    let share = total.redirected_share().map_or("-".to_owned(), |s| format!("{:.2} %", s * 100.0));
    println!(
        "{name:8} {:7} {:>9} {:>12} {:>7} {:>11} {:>12} {:>6} {:>8.1}",
        if bypassed { "sockmap" } else { "TCP" },
        tally.requests.load(Relaxed),
        tally.wrong.load(Relaxed),
        tally.errors.load(Relaxed),
        share,
        total.left_to_tcp(),
        WOKEN.swap(0, Relaxed),
        began.elapsed().as_secs_f64()
    );
    drop(proxy);
    if let Ok(log) = std::fs::read_to_string(folder.path().join("error.log")) {
        log.lines().for_each(|line| println!("{name}: {line}"));
    }
    Ok(())
}

/// Runs one client: most of its requests use a kept connection, which is renewed now and then.
fn run(topology: &Topology, tally: &Tally, client: u64, load: &Load, until: Instant) {
    let mut connection = None;
    for number in (client..load.requests).step_by(load.clients as usize) {
        if Instant::now() > until {
            return;
        }
        if number / load.clients % 500 == 499 {
            connection = None;
        }
        let size = size_of(number);
        let done = request(&mut connection, topology, number, size);
        tally.requests.fetch_add(1, Relaxed);
        match done {
            Ok(wrong) => drop(tally.wrong.fetch_add(wrong as u64, Relaxed)),
            Err(error) => {
                let kept_for = number / load.clients % 500;
                println!("request {number} of {size} bytes, on connection's {kept_for}th: {error}");
                tally.errors.fetch_add(1, Relaxed);
                connection = None;
            }
        }
    }
}

fn request(
    kept: &mut Option<Client>,
    topology: &Topology,
    number: u64,
    size: usize,
) -> std::io::Result<usize> {
    let client = match kept {
        Some(client) => client,
        None => kept.insert(Client::connect(topology.inbound)?),
    };
    if number % 10 == 9 {
        client.send_post(number, size)?;
        return client.answer(number, size, false);
    }
    client.get(number, size)
}

fn size_of(number: u64) -> usize {
    let mut dice = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    dice %= 1000;
    for (size, part) in SIZES {
        if dice < part {
            return size;
        }
        dice -= part;
    }
    0
}
