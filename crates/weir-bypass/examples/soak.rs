//! Sends many requests through proxies, by TCP and with both hops bypassed, and compares every byte.
//!
//! Usage: `cargo run --release -p weir-bypass --example soak [REQUESTS] [CLIENTS] [SECONDS] [PROXY…]`. By default each
//! way sends a million requests from 16 connections and takes 600 seconds at most. PROXY is `nginx`, `haproxy`,
//! `envoy`, `caddy`, or `direct`, which sends to the origin server over one hop.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example tells what it saw")]
#![expect(dead_code, reason = "the tests need more of their peers")]

#[path = "../tests/it/peers.rs"]
mod peers;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use peers::{Client, Place, Proxy, WOKEN};
use weir_bypass::Bypass;

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
type Way = (&'static str, fn(&Place, &Path) -> Option<Proxy>);

const WAYS: [Way; 5] = [
    ("nginx", |place, folder| Proxy::nginx(place, folder, "", true)),
    ("haproxy", |place, folder| Proxy::haproxy(place, folder, "")),
    ("envoy", Proxy::envoy),
    ("caddy", Proxy::caddy),
    // The client asks the origin server, by the proxy's hop.
    ("direct", |_, _| None),
];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, default: u64| args.get(at).map_or(Ok(default), |a| a.parse());
    let (requests, clients, seconds) = (arg(0, 1_000_000)?, arg(1, 16)?, arg(2, 600)?);
    let named =
        |name: &str| args.len() < 4 && name == "nginx" || args.iter().skip(3).any(|a| a == name);
    println!(
        "through  way      requests  wrong bytes  errors  redirected  left to TCP  woken  seconds"
    );
    for (name, start) in WAYS.into_iter().filter(|(name, _)| named(name)) {
        for bypassed in [false, true] {
            let load = Load { requests, clients, seconds };
            one_way(name, start, bypassed, &load)?;
        }
    }
    Ok(())
}

struct Load {
    requests: u64,
    clients: u64,
    seconds: u64,
}

fn one_way(
    name: &str,
    start: fn(&Place, &Path) -> Option<Proxy>,
    bypassed: bool,
    load: &Load,
) -> Result<(), Box<dyn Error>> {
    let mut place = Place::namespaces().ok_or("it takes namespaces")?;
    let is_direct = name == "direct";
    if is_direct {
        (place.origin, place.outbound) = (place.proxy.clone(), place.inbound);
    }
    let hops = [place.inbound, place.outbound];
    let hops = if is_direct { &hops[..1] } else { &hops };
    let folder = tempfile::tempdir()?;
    let bypass = bypassed.then(|| place.attach(hops)).transpose()?;
    place.serve();
    let proxy = start(&place, folder.path());
    if proxy.is_none() && !is_direct {
        return Ok(());
    }
    let tally = Tally::default();
    let began = Instant::now();
    let until = began + Duration::from_secs(load.seconds);
    thread::scope(|scope| {
        for client in 0..load.clients {
            let (tally, place) = (&tally, &place);
            scope.spawn(move || {
                place.client.join().map_err(|e| e.to_string())?;
                run(place, tally, (client, load.clients), load.requests, until);
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
fn run(place: &Place, tally: &Tally, (client, clients): (u64, u64), all: u64, until: Instant) {
    let mut kept = None;
    for number in (client..all).step_by(clients as usize) {
        if Instant::now() > until {
            return;
        }
        if number / clients % 500 == 499 {
            kept = None;
        }
        let size = size_of(number);
        let done = request(&mut kept, place, number, size);
        tally.requests.fetch_add(1, Relaxed);
        match done {
            Ok(wrong) => drop(tally.wrong.fetch_add(wrong as u64, Relaxed)),
            Err(error) => {
                let kept_for = number / clients % 500;
                println!("request {number} of {size} bytes, on connection's {kept_for}th: {error}");
                tally.errors.fetch_add(1, Relaxed);
                kept = None;
            }
        }
    }
}

fn request(
    kept: &mut Option<Client>,
    place: &Place,
    number: u64,
    size: usize,
) -> std::io::Result<usize> {
    let client = match kept {
        Some(client) => client,
        None => kept.insert(Client::connect(place.inbound)?),
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
