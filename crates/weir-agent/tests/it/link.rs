//! Links between namespaces, as agents measure them and as iperf3(1) does.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use weir_agent::Client;
use weir_agent::message::{FactsJob, LinkFigures, LinkJob, LinkListener, LinkWay, NetworksJob};
use weir_host::{HostError, Network, Wire, connect, may_have_networks};
use weir_model::quantity::CpuSet;
use weir_model::record::{LinkEnd, TripKind};
use weir_testkit::ssh::wait_until;

use crate::samples::agent;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MTU: u32 = 1400;

fn cpus() -> CpuSet {
    weir_probe::allowed_cpus().expect("this thread has CPUs")
}

/// Time for which bytes are counted in each direction, seconds: four fifths of 0.2 s.
const COUNTED_S: f64 = 0.16;

/// Creates two namespaces with a link.
fn linked() -> Result<[Network; 2], HostError> {
    may_have_networks()?;
    let networks = [(); 2].map(|()| Network::create().expect("a namespace"));
    let wires = [1, 2].map(|last| Wire {
        name: "link".to_owned(),
        addresses: vec![(Ipv4Addr::new(10, 0, 0, last), 24)],
    });
    let linked = connect((&networks[0], &wires[0]), (&networks[1], &wires[1]), MTU);
    linked.expect("a link");
    Ok(networks)
}

/// Measures with an agent on each side, as between two hosts.
fn measured([from, to]: &[Client; 2]) -> LinkFigures {
    let (address, secret, cpus) = (IpAddr::V4(SERVER), 7, cpus());
    let listener = LinkListener { address, secret, cpus };
    let at = to.ask(listener).expect("it listens");
    from.ask(way_to(at, secret)).expect("a link")
}

fn way_to(at: SocketAddr, secret: u64) -> LinkJob {
    LinkJob { way: LinkWay::Listener { at, secret }, cpus: cpus() }
}

/// A child process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the bytes per second received in one second; `None` if the server does not answer.
fn iperf3(options: &[&str]) -> Option<f64> {
    let mut command = Command::new("iperf3");
    command.args(["-J", "-t", "1", "-c"]).arg(SERVER.to_string()).args(options);
    let output = command.output().expect("it was there before");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(report["end"]["sum_received"]["bits_per_second"].as_f64()? / 8.0)
}

/// Returns the bytes that the kernel has received and sent over the link in this namespace.
fn carried(network: &Network) -> [u64; 2] {
    let text = network
        .within(|| std::fs::read_to_string("/proc/thread-self/net/dev").expect("counters"))
        .expect("a namespace");
    let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix("link:"));
    let counters = lines.next().expect("the link").split_ascii_whitespace();
    let counters: Vec<u64> = counters.map(|counter| counter.parse().expect("a count")).collect();
    [counters[0], counters[8]]
}

/// Returns the highest rate. Other work on this machine can only lower a rate, and disturbs a second of iperf3 more
/// often than the fifth of a second that weir measures.
fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[test]
fn the_kernel_has_carried_what_is_told_and_iperf3_finds_no_more_than_twice_as_much() {
    let mut server = Command::new("iperf3");
    server.arg("-s").stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(networks) = linked().inspect_err(|error| println!("left out: {error}")) else {
        return;
    };
    let server = networks[1].within(|| server.spawn()).unwrap();
    let _server = match server {
        Ok(child) => Running(child),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("left out: iperf3 is not installed (scripts/setup test)");
            return;
        }
        Err(error) => panic!("iperf3: {error}"),
    };
    let from = &networks[0];
    wait_until("iperf3 serves", || from.within(|| iperf3(&[])).unwrap().is_some());
    let agents = [0, 1].map(|side| networks[side].within(agent).unwrap());
    let mut rates = [(); 4].map(|()| Vec::new());
    // Both take turns, because others use this machine too.
    let mut ratios = [0.0; 2];
    for round in 1..=8 {
        let before = carried(&networks[1]);
        let ours = measured(&agents);
        assert_eq!(ours.unmeasured, [], "the link is there");
        let after = carried(&networks[1]);
        let theirs = [&[][..], &["-R"]].map(|way| from.within(|| iperf3(way)).unwrap().unwrap());
        let reported = [ours.forth, ours.back].map(|carried| carried.unwrap().bytes_per_s);
        for (rate, counted) in
            reported.into_iter().zip([after[0] - before[0], after[1] - before[1]])
        {
            let bytes = rate * COUNTED_S;
            assert!(bytes <= counted as f64, "{bytes} bytes are told, {counted} were carried");
        }
        let all = [reported[0], reported[1], theirs[0], theirs[1]];
        rates.iter_mut().zip(all).for_each(|(rates, rate)| rates.push(rate));
        let [forth, back, to, from] = [0, 1, 2, 3].map(|place| best(&rates[place]));
        ratios = [forth / to, back / from];
        println!(
            "round {round}: weir {forth:.3e} and {back:.3e} B/s, iperf3 {to:.3e} and {from:.3e} B/s"
        );
        if round >= 3 && ratios.iter().all(|ratio| *ratio >= 0.5) {
            return;
        }
    }
    panic!("weir's over iperf3's: {ratios:?}");
}

#[test]
fn between_hosts_the_path_is_known_and_round_trips_are_counted() {
    let Ok(networks) = linked().inspect_err(|error| println!("left out: {error}")) else {
        return;
    };
    let agents = [0, 1].map(|side| networks[side].within(agent).unwrap());
    let figures = measured(&agents);
    assert_eq!(figures.mtu, Some(MTU));
    assert!(figures.trips.count >= 10 && figures.trips.p50_ns > 0, "{figures:?}");
    assert!(figures.forth.is_some() && figures.back.is_some(), "{figures:?}");
    // Where nobody listens any more it is said whom it was about.
    let error = agents[0].ask(way_to(figures.peer, 7)).unwrap_err();
    assert!(error.to_string().contains(&figures.peer.to_string()), "{error}");
}

#[test]
fn who_does_not_know_the_secret_is_not_answered() {
    let (agent, address, secret) = (agent(), [127, 0, 0, 1].into(), 7);
    let listener = LinkListener { address, secret, cpus: cpus() };
    let at = agent.ask(listener).unwrap();
    assert!(agent.ask(way_to(at, 8)).is_err());
    // Nor does it keep others from being answered.
    agent.ask(way_to(at, 7)).unwrap();
}

#[test]
fn to_a_server_of_others_connections_are_opened_and_nothing_is_said() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    let job = LinkJob { way: LinkWay::Connect(at), cpus: cpus() };
    let figures = agent().ask(job.clone()).unwrap();
    assert_eq!((figures.trips.by, figures.trips.count), (TripKind::Connect, 10));
    assert_eq!((figures.forth, figures.back), (None, None));
    assert_eq!(figures.unmeasured[0].what, "bytes per second");
    server.set_nonblocking(true).unwrap();
    let mut received = Vec::new();
    for mut opened in server.incoming().map_while(Result::ok) {
        opened.read_to_end(&mut received).unwrap();
    }
    assert!(received.is_empty(), "{received:?}");
    drop(server);
    let error = agent().ask(job).unwrap_err().to_string();
    assert!(error.contains("refused"), "{error}");
}

#[test]
fn namespaces_of_an_arm_are_measured_without_any_arm() {
    if let Err(error) = may_have_networks() {
        println!("left out: {error}");
        return;
    }
    let client = agent();
    let ways = [(LinkEnd::Proxy, "10.213.0.254"), (LinkEnd::Origin, "10.214.0.1")];
    for (to, address) in ways {
        let networks = NetworksJob { mtu: MTU, sources: 1 };
        let namespaces = LinkWay::Namespaces { networks, to, cpus: cpus() };
        let figures = client.ask(LinkJob { way: namespaces, cpus: cpus() }).unwrap();
        assert_eq!(figures.peer.ip().to_string(), address);
        assert_eq!((figures.mtu, &figures.unmeasured[..]), (Some(MTU), &[][..]));
        assert!(figures.forth.is_some() && figures.back.is_some());
    }
}

#[test]
fn a_host_says_how_it_is_built_and_what_it_cannot_read() {
    let job = FactsJob {
        proxy: Some(cpus()),
        // TEST-NET-1 (RFC 5737), and this host itself.
        towards: vec![[192, 0, 2, 1].into(), [127, 0, 0, 1].into()],
        ..FactsJob::default()
    };
    let facts = agent().ask(job).unwrap();
    let find = |what: &str| facts.unmeasured.iter().find(|one| one.what.contains(what));
    assert_eq!(facts.governors.is_empty(), find("governor").is_some(), "{facts:?}");
    assert_eq!(facts.nodes.is_empty(), find("NUMA").is_some(), "{facts:?}");
    assert_eq!(facts.watched_ns == 0, find("hold-ups").is_some(), "{facts:?}");
    assert_eq!(facts.held_up.generator, None, "no generator is here");
    let loopback = find("127.0.0.1").unwrap();
    assert_eq!(loopback.why, "lo is not a card's");
    let nobody = agent().ask(FactsJob::default()).unwrap_err();
    assert!(nobody.to_string().contains("without roles"), "{nobody}");
}
