//! Start and stop, listeners, threads, and many short connections.

use std::collections::HashSet;
use std::env;
use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_origin::{Origin, OriginConfig};

use crate::client::{Client, any, await_counters, start};

#[test]
fn thousands_of_short_connections() {
    let origin = start(|_| ());
    let address = origin.addresses()[0];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for index in 0..1250 {
                    let mut client = Client::to(address);
                    client.send(b"GET / HTTP/1.0\r\nConnection: close\r\n\r\n");
                    assert_eq!(client.receive(false).1.content_bytes, 1024);
                    if index % 2 == 0 {
                        assert_eq!(client.until_closed(), b"");
                    }
                }
            });
        }
    });
    let counters = origin.counters(0);
    assert_eq!((counters.connections, counters.requests), (5000, 5000));
    await_counters(&origin, 0, |counters| counters.responses == 5000);
    assert_eq!(origin.counters(0).accept_errors, 0);
}

#[test]
fn each_listener_counts_for_itself() {
    let origin = Origin::start(OriginConfig::new(vec![any(), any(), any()])).expect("starts");
    let addresses: HashSet<&SocketAddr> = origin.addresses().iter().collect();
    assert_eq!(addresses.len(), 3);
    for (index, address) in origin.addresses().iter().enumerate() {
        for _ in 0..index {
            Client::to(*address).get();
        }
    }
    for index in 0..3 {
        let counters = origin.counters(index);
        let counts = [counters.connections, counters.requests];
        assert_eq!(counts, [index as u64; 2]);
    }
    assert_eq!(origin.counters(3).connections, 0);
}

#[test]
fn several_threads_share_the_addresses() {
    let origin = start(|config| {
        config.listen = vec![any(), any()];
        // The same CPU twice: a machine with one CPU has to pass too.
        config.cpus = vec![allowed_cpu(); 2];
    });
    let ids: HashSet<u32> = origin.thread_ids().iter().copied().collect();
    assert_eq!(ids.len(), 2);
    for id in &ids {
        let [name, status] = ["comm", "status"].map(|file| {
            std::fs::read_to_string(format!("/proc/self/task/{id}/{file}")).expect("a thread")
        });
        assert!(name.starts_with("origin-"), "{name}");
        let pinned = format!("Cpus_allowed_list:\t{}\n", allowed_cpu());
        assert!(status.contains(&pinned), "{status}");
    }
    for address in origin.addresses() {
        for _ in 0..64 {
            Client::to(*address).get();
        }
    }
    for index in 0..2 {
        assert_eq!(origin.counters(index).requests, 64);
    }
}

fn allowed_cpu() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = list.expect("a list").trim().split([',', '-']).next();
    first.expect("a first one").parse().expect("a number")
}

#[test]
fn a_stopped_server_frees_its_port_and_ends_its_connections() {
    let origin = start(|config| {
        config.stalls =
            vec![weir_origin::Stall { at: Duration::ZERO, length: Duration::from_secs(3600) }];
    });
    let address = origin.addresses()[0];
    let mut client = Client::new(&origin);
    // In the middle of a stall, too.
    client.get();
    origin.stop();
    assert_eq!(client.until_closed(), b"");
    assert!(TcpStream::connect(address).is_err());
    let again = Origin::start(OriginConfig::new(vec![address])).expect("the port is free");
    assert_eq!(Client::new(&again).get().status, 200);
}

#[test]
fn what_cannot_be_started_is_told() {
    let listener = TcpListener::bind(any()).expect("a port");
    let address = listener.local_addr().expect("an address");
    let error = Origin::start(OriginConfig::new(vec![address])).expect_err("taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    let mut config = OriginConfig::new(vec![any()]);
    config.cpus = vec![allowed_cpu(), 1023];
    let error = Origin::start(config).expect_err("no such CPU");
    assert!(error.to_string().contains("CPU 1023"), "{error}");
}

#[test]
fn clients_that_vanish_are_forgotten() {
    let origin = start(|config| config.content = weir_origin::Content::noise(1_000_000));
    let before = count_descriptors();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(origin.addresses()[0]).expect("connects");
        let sent = stream.write_all(b"GET / HTTP/1.1\r\n\r\nGET / HTT");
        sent.expect("sends");
        // Closed with unread bytes: a reset.
    }
    Client::new(&origin).get();
    // Other tests of this process open descriptors, too, but not hundreds that stay.
    for _ in 0..2000 {
        if count_descriptors() < before + 100 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} descriptors were {before}", count_descriptors());
}

fn count_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

/// Runs in a separate process, because the limit would affect the other tests too.
#[test]
fn without_descriptors_nothing_is_accepted_until_there_are_some() {
    const CHILD: &str = "WEIR_TEST_FEW_DESCRIPTORS";
    if env::var_os(CHILD).is_some() {
        return run_out_of_descriptors();
    }
    let name = "lifecycle::without_descriptors_nothing_is_accepted_until_there_are_some";
    let child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("the child runs");
    let words = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{words}");
    assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"));
}

fn run_out_of_descriptors() {
    let origin = start(|_| ());
    let usual = getrlimit(Resource::Nofile);
    let low = Rlimit { current: Some(64), ..usual };
    setrlimit(Resource::Nofile, low).expect("a lower limit");
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    // One is left, and the client takes it.
    files.pop();
    let begun = Instant::now();
    let mut client = Client::new(&origin);
    await_counters(&origin, 0, |counters| counters.accept_errors > 3);
    let (errors, elapsed) = (origin.counters(0).accept_errors, begun.elapsed());
    let few = u128::from(errors) <= elapsed.as_millis() / 10 + 2;
    assert!(few, "{errors} attempts within {elapsed:?}");
    drop(files);
    assert_eq!(client.get().status, 200);
    assert_eq!(origin.counters(0).connections, 1);
}
