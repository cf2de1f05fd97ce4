//! Tests of `weir load` with connection policies, arrivals of every shape, several flows, and many connections. Each
//! uses the real kernel, and the server counts.

use std::net::{IpAddr, Ipv4Addr};

use weir_model::load::{Arrivals, Close, Lifetime, Spacing};
use weir_model::load_report::LoadReport;
use weir_model::record::{Validity, ValidityReason};
use weir_origin::Origin;
use weir_testkit::faulty::{Faulty, start_origin};
use weir_testkit::loads::{Server, report, reported};
use weir_testkit::program::{HasAll, Running, behind, row, wait_until, within};
use weir_testkit::secure::{Authority, Nginx};

/// Options for both kernel interfaces, which must behave alike.
const IO_FLAGS: [&str; 2] = ["--io epoll", "--io auto"];

fn rules(report: &LoadReport) -> Vec<&str> {
    report.validity.iter().map(ValidityReason::rule).collect()
}

#[test]
fn a_connection_for_each_request() {
    for io in IO_FLAGS {
        let origin = start_origin();
        let report = origin.reported(&format!("{io} -n 300 -c 8 -t 2 --connection per-request"));
        assert_eq!(report.results.load.lifetime, Lifetime::Request);
        assert_eq!(report.results.counts.completed_whole, 300, "{:?}", report.results.errors);
        assert_eq!(report.results.counts.connects, 300);
        assert_eq!(report.results.connect_time.count, 300);
        let counters = origin.counters(0);
        // One more: weir looks first whether anybody is there.
        assert_eq!((counters.requests, counters.connections), (300, 301));
        // The handshake is part of the response.
        assert!(report.results.response_time.min >= report.results.connect_time.min);
        assert!(report.results.errors.is_empty(), "{:?}", report.results.errors);
    }
}

#[test]
fn who_sends_one_request_says_so_unless_told_otherwise() {
    let peer = Faulty::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    peer.load("-q -n 1 -c 1 -t 1 --connection 1").with_code(0);
    assert!(peer.texts()[0].contains("\r\nConnection: close\r\n"));
    let options = "-q -n 1 -c 1 -t 1 --connection per-request -H Connection:keep-alive";
    peer.load(options).with_code(0);
    assert!(peer.texts()[1].contains("\r\nConnection: keep-alive\r\n"));
}

/// Counts the sockets of a server's port in TIME_WAIT, on either side (proc_pid_net(5), state 06).
fn waiting(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table of sockets");
    let port = format!(":{port:04X}");
    table
        .lines()
        .filter(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let mut ends = fields.by_ref().take(2).collect::<Vec<_>>().into_iter();
            ends.any(|end| end.ends_with(&port)) && fields.next() == Some("06")
        })
        .count()
}

#[test]
fn a_close_by_reset_leaves_time_wait_on_neither_side_and_is_said() {
    let authority = Authority::new();
    let ways = ["epoll", "auto"].map(|io| [(io, "per-request"), (io, "2")]);
    for (io, policy) in ways.into_iter().flatten() {
        for close in [Close::Fin, Close::Reset] {
            let flag = match close {
                Close::Fin => "",
                Close::Reset => "--close reset",
            };
            // Servers of their own: what rests at their ports is this load's.
            let (clear, secure) = (start_origin(), Nginx::start(&authority, ""));
            let both = [
                (clear.addresses()[0].port(), clear.url()),
                (secure.address.port(), format!("--ca {} {}", authority.file(), secure.url())),
            ];
            for (port, whom) in both {
                let load = format!("-n 80 -c 4 -t 1 -T 20s --connection {policy} {flag}");
                let line = format!("--io {io} {load} {whom}");
                let report = reported(&line);
                assert_eq!(report.results.counts.completed_whole, 80, "{line}");
                assert!(report.results.errors.is_empty(), "{line}: {:?}", report.results.errors);
                assert_eq!(report.results.load.close, close, "{line}");
                // Of 40 connections at least; and two at most of those who look whether anybody is there.
                let sockets = waiting(port);
                assert_eq!(sockets > 2, close == Close::Fin, "{line}: {sockets}");
            }
        }
    }
    let people = start_origin().load("-n 8 -c 4 -t 1 --connection per-request --close reset");
    let reset_words = "4 connections at a time, one for each request, closed by a RESET";
    people.with_code(0).stdout.has(reset_words);
}

#[test]
fn connections_are_renewed_after_a_number_of_requests_or_a_time() {
    for io in IO_FLAGS {
        let origin = start_origin();
        let (first, _) = origin.report(&format!("{io} -n 1000 -c 2 -t 1 --connection 100"));
        assert_eq!(first.results.counts.completed_whole, 1000, "{:?}", first.results.errors);
        within(first.results.counts.connects, 10..=12);
        let (second, _) = origin.report(&format!("{io} -R 200 -d 1s -c 4 -t 1 --connection 250ms"));
        assert!(second.results.errors.is_empty(), "{:?}", second.results.errors);
        assert_eq!(second.results.counts.completed_whole, 200);
        within(second.results.counts.connects, 8..=20);
    }
}

#[test]
fn held_connections_beside_a_rate_are_one_trial() {
    for io in IO_FLAGS {
        let origin = start_origin();
        let line = format!("{io} -R 300 -d 1s -c 4 -t 2 {}", origin.url());
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--flow", "held: -c 500 --connection hold"]);
        words.extend(["--flow", "slow: -c 20 --connection hold:500ms"]);
        let mut weir = weir_testkit::program::weir(["load", "-q", "--format", "json"]);
        let ended = Running::start(weir.args(words)).end().with_code(0);
        let report: LoadReport = ended.document();
        let names: Vec<_> = report.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["main", "held", "slow"]);
        let [main, held, slow] = &report.flows[..] else { panic!("three flows") };
        assert_eq!(main.results.counts.completed_whole, 300);
        assert_eq!((held.results.counts.connected, held.results.counts.open_at_end), (500, 500));
        assert_eq!((held.results.counts.offered, held.results.counts.lost), (0, 0));
        assert_eq!(held.results.load.arrivals, Arrivals::Held);
        // 20 connections, twice each.
        assert_eq!(slow.results.counts.completed_whole, 40);
        assert_eq!(report.results.counts.completed_whole, 340);
        assert_eq!(report.results.load.connections, 524);
        let counters = origin.counters(0);
        // Three more: weir looks first whether anybody is there, for each flow.
        assert_eq!((counters.requests, counters.connections), (340, 524 + 3));
    }
}

#[test]
fn a_server_that_closes_held_connections_is_found_out() {
    let origin = start_origin();
    let address = origin.addresses()[0];
    let closer = std::thread::spawn(move || {
        // All of them, and the first look whether anybody is there.
        wait_until("all connections are open", || origin.counters(0).connections == 51);
        std::thread::sleep(std::time::Duration::from_millis(500));
        drop(origin);
    });
    let (report, _) = report(&format!("-d 3s -c 50 -t 1 --connection hold http://{address}/"));
    closer.join().expect("the server was closed");
    assert_eq!(report.results.counts.lost, 50);
    assert_eq!(report.results.counts.open_at_end, 0);
    assert!(rules(&report).contains(&"held-connections"));
}

#[test]
fn pipelined_requests_are_answered_in_order_and_said_to_be() {
    for io in IO_FLAGS {
        let origin = start_origin();
        let report = origin.reported(&format!("{io} -n 5000 -c 2 -t 1 --pipeline 16"));
        assert_eq!(report.results.counts.completed_whole, 5000, "{:?}", report.results.errors);
        assert_eq!(report.results.load.pipeline, 16);
        assert_eq!(origin.counters(0).requests, 5000);
        assert_eq!(report.results.counts.connects, 2);
        let text = origin.load("-q -n 10 -c 1 -t 1 --pipeline 4").with_code(0).stdout;
        assert!(text.contains("PIPELINED 4 deep"), "{text}");
    }
}

#[test]
fn large_content_is_counted_though_it_is_dropped_unseen() {
    const SIZE: u64 = 3_000_000;
    for io in IO_FLAGS {
        let mut config = weir_origin::OriginConfig::new(vec![(Ipv4Addr::LOCALHOST, 0).into()]);
        config.content = weir_origin::Content::text(SIZE);
        let origin = Origin::start(config).expect("the origin server starts");
        let report = origin.reported(&format!("{io} -n 40 -c 4 -t 1"));
        assert_eq!(report.results.counts.completed_whole, 40, "{:?}", report.results.errors);
        assert_eq!(report.results.counts.content_bytes, 40 * SIZE);
        assert_eq!(report.results.counts.received_bytes, origin.counters(0).sent_bytes);
        assert_eq!(report.results.counts.reconnects, 0);
    }
}

#[test]
fn arrivals_of_every_shape() {
    let origin = start_origin();
    let url = origin.url();
    for (flags, due) in [
        ("-R 100..300 -d 1s", 200..=200),
        ("-R 100,300 -d 1s", 200..=200),
        ("-R 100@500ms,400@500ms", 250..=250),
        ("-R 200 -d 1s --arrivals burst:20", 200..=200),
        ("-R 400 -d 1s --arrivals poisson:3", 320..=480),
    ] {
        let report = origin.reported(&format!("{flags} -c 30 -t 2"));
        row(flags);
        let mean = (due.start() + due.end()) as f64 / 2.0;
        within(report.results.counts.due, due);
        assert_eq!(report.results.counts.completed_whole, report.results.counts.due, "{flags}");
        let intended = report.results.rates.intended.expect("an open loop");
        within(intended - mean / report.phases.sustain, -1.0..1.0);
    }
    let (report, _) = report(&format!("-R 400 -d 1s --arrivals poisson:3 -c 30 -t 1 {url}"));
    let Arrivals::Varied { spacing, .. } = report.results.load.arrivals else {
        panic!("{:?}", report.results.load.arrivals)
    };
    assert_eq!(spacing, Spacing::Poisson { seed: 3 });
}

#[test]
fn the_times_of_a_file_are_repeated() {
    let origin = start_origin();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("times.txt");
    let times: String = (0..100).map(|k| format!("{:.3}\n", f64::from(k) * 0.02)).collect();
    std::fs::write(&file, times).expect("the file is written");
    let line = format!("--trace {} --trace-speed 4 -c 5 -t 2 {}", file.display(), origin.url());
    let report = reported(&line);
    assert_eq!(report.results.counts.due, 100);
    assert_eq!(origin.counters(0).requests, 100);
    // 1.98 s at four times the speed.
    within(report.phases.sustain, 0.486..0.506);
}

#[test]
fn dropped_requests_are_counted_and_doubted() {
    let mut config = weir_origin::OriginConfig::new(vec![(Ipv4Addr::LOCALHOST, 0).into()]);
    config.delay = weir_model::study::DelaySpec::Fixed(std::time::Duration::from_millis(100));
    let origin = Origin::start(config).expect("the origin server starts");
    let (report, _) = origin.report("-R 200 -d 1s -c 2 -t 1 --overflow drop");
    let counts = &report.results.counts;
    assert_eq!(counts.due, 200);
    assert_eq!(counts.offered + counts.dropped, 200);
    assert!(counts.dropped > 150, "{counts:?}");
    assert!(rules(&report).contains(&"dropped"));
    assert!(!rules(&report).contains(&"offered-rate"));
}

#[test]
fn own_addresses_are_used_in_turn() {
    for io in IO_FLAGS {
        let peer = Faulty::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let report = peer.reported(&format!("{io} -n 6 -c 6 -t 1 --source 127.0.0.2-127.0.0.4"));
        assert_eq!(report.results.counts.completed_whole, 6);
        let mut clients = peer.clients();
        clients.retain(|address| *address != IpAddr::from(Ipv4Addr::LOCALHOST));
        clients.sort();
        let expected = [2, 2, 3, 3, 4, 4].map(|last| IpAddr::from([127, 0, 0, last]));
        assert_eq!(clients, expected);
    }
}

#[test]
fn other_addresses_than_the_urls_are_asked_with_the_urls_host() {
    let peers = [0, 1].map(|_| Faulty::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    let to = peers.each_ref().map(|peer| peer.url().replace("http://", "").replace('/', ""));
    let line = format!("-n 2 -c 2 -t 1 --to {} http://shop.example/cart", to.join(","));
    let report = reported(&line);
    // One for each connection: who is answered first may ask again first.
    assert_eq!(report.results.counts.completed_whole, 2);
    for peer in &peers {
        let requests = peer.texts();
        assert_eq!(requests.len(), 1);
        requests[0].has("\r\nHost: shop.example\r\n");
    }
}

#[test]
fn more_connections_than_one_table_of_descriptors_holds() {
    let origin = start_origin();
    let line = "load -q --format json -d 300ms -c 1000 --connection hold";
    let mut weir = behind("ulimit -n 300", &format!("{line} {}", origin.url()));
    let ended = Running::start(&mut weir).end().with_code(0);
    let report: LoadReport = ended.document();
    assert_eq!(report.results.counts.connected, 1000, "{:?}", report.results.errors);
    within(report.results.load.cpus.len(), 5..);
    let mut reasons = report.validity.iter();
    assert!(reasons.all(|reason| reason.validity != Validity::Invalid));
}

#[test]
fn loads_that_cannot_be() {
    let origin = start_origin();
    #[rustfmt::skip]
    let rows = [
        ("--connection sometimes", "--connection: `sometimes` is not a connection policy\nhint: write keep-alive"),
        ("--connection keepalive", "--connection: `keepalive` is not a connection policy\nhint: did you mean keep-alive?"),
        ("--connection 0", "--connection: `0` is not a connection policy"),
        ("--connection hold -R 5", "held connections have no rate"),
        ("--pipeline 0", "--pipeline: `0` is not a whole number from 1 to 1024"),
        ("--pipeline 4 --connection per-request", "cannot have several in flight"),
        ("--connect-rate 0", "--connect-rate: `0` is out of range"),
        ("--source 10.11.12.13", "--source 10.11.12.13: Cannot assign requested address"),
        ("--source nowhere", "`nowhere` is not an address\nhint: "),
        ("--to nowhere:80", "`nowhere:80` is not an address with a port\nhint: "),
        ("-R 10 --arrivals poison", "`poison`"),
        ("-R 10.. -d 1", "-R: "),
        ("--trace /nonexistent", "--trace cannot read `/nonexistent`: No such"),
        ("--flow held:-q", "--flow held: unexpected argument '-q'"),
        ("--flow=-c5", "has no name\nhint: a flow is a name"),
        ("--flow held:--connection=x", "--flow held: --connection: `x` is not a connection policy"),
        ("--spin soon", "--spin: `soon` is not auto or a duration"),
    ];
    for (flags, words) in rows {
        origin.load(flags).refused(&[words]);
    }
    assert_eq!(origin.counters(0).requests, 0);
}

#[test]
fn more_connections_than_ports() {
    let origin = start_origin();
    origin.load("-c 70000 -t 8 --connection hold").refused(&["-c 70000: ", "\nhint: "]);
    // Nothing but the first look, which a busy origin server may count a moment later.
    wait_until("the first look", || origin.counters(0).connections > 0);
    assert_eq!(origin.counters(0).connections, 1);
}
