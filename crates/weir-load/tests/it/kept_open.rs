//! What real servers do with connections.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_load::{Control, Io, Plan, run};
use weir_origin::Content;

use crate::support::{GET, PATIENCE, flow, measure, origin};

fn plan(address: SocketAddr, request: &str, limit: u64, threads: usize) -> Plan {
    let slices = Plan::seconds(Duration::ZERO, Duration::from_secs(60));
    Plan {
        drain: PATIENCE,
        cpus: vec![None; threads],
        ..Plan::single(flow(address, request, 8, limit), slices, Io::Epoll)
    }
}

#[test]
fn every_request_is_sent_and_answered_once_by_any_number_of_threads() {
    for threads in [1, 3] {
        let origin = origin(|_| {});
        let (all, outcome) = measure(&plan(origin.addresses()[0], GET, 1000, threads)).unwrap();
        assert_eq!((all.completed_whole, all.statuses[100]), (1000, 1000));
        assert_eq!(all.content_bytes, 1000 * 1024);
        let seen = origin.counters(0).requests;
        assert_eq!(seen, 1000, "the server has seen as many");
        assert_eq!(outcome.flows[0].connects, 8);
        assert_eq!(outcome.cpu_ns.len(), threads);
    }
}

#[test]
fn ipv6_head_and_large_content_work() {
    let large = origin(|config| {
        config.listen = vec!["[::1]:0".parse().unwrap()];
        config.content = Content::text(3_000_000);
    });
    let address = large.addresses()[0];
    let (all, _) = measure(&plan(address, GET, 20, 1)).unwrap();
    assert_eq!(all.content_bytes, 20 * 3_000_000);
    let head = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n";
    let (all, _) = measure(&plan(address, head, 20, 1)).unwrap();
    assert_eq!((all.completed_whole, all.content_bytes), (20, 0));
    assert_eq!(all.errors.total(), 0);
}

#[test]
fn a_server_that_keeps_no_connection_is_reconnected_to() {
    let origin = origin(|_| {});
    let close = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let (all, outcome) = measure(&plan(origin.addresses()[0], close, 100, 1)).unwrap();
    assert_eq!(all.completed_whole, 100);
    assert_eq!(all.errors.total(), 0, "{:?}", all.errors.counts());
    assert!(outcome.flows[0].connects >= 100);
    assert!(all.reconnects >= 90);
}

#[test]
fn a_port_where_nobody_listens_is_said_in_the_kernels_words() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut plan = plan(address, GET, 10, 1);
    let stop = Arc::new(AtomicBool::new(false));
    let control = Control::new(1, Arc::clone(&stop));
    plan.flows[0].timeout = Duration::from_millis(200);
    // The engine would try for half a minute; the user gives up first.
    let impatient = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let error = run(&plan, &control, None, |_, _| {}).unwrap_err();
    impatient.join().unwrap();
    assert!(error.to_string().contains("Connection refused"), "{error}");
}
