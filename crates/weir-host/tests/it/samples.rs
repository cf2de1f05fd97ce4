//! Tests of samples of the real kernel: prepared conditions show in the table and column where they belong.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen};
use rustix::net::{socket, socket_with};
use weir_host::sysctl;
use weir_model::sample::{Counters, SampleRow};
use weir_probe::sample::{GENERATOR, Namespace, ORIGIN, PROXY, SampledRole, Sampler, Tasks};

use crate::support::{eventually, inside};

fn place(role: &'static str, tasks: Tasks) -> SampledRole {
    SampledRole { role, arm: String::new(), namespace: None, tasks }
}

fn of_network() -> Sampler {
    Sampler::open(vec![SampledRole {
        namespace: Some(Namespace::of_this_thread()),
        ..place(PROXY, Tasks::Processes(Vec::new()))
    }])
}

/// Returns the value of a column in the first row of a table whose keys begin with `keys`.
fn value(rows: &[SampleRow], table: &str, keys: &[&str], column: &str) -> Option<u64> {
    let index = Counters::builtin()
        .table(table)
        .unwrap()
        .values()
        .into_iter()
        .position(|name| name == column)
        .unwrap();
    let mut matching = rows.iter().filter(|row| row.table == table);
    matching.find(|row| row.keys.iter().zip(keys).all(|(a, b)| a == b))?.values[index]
}

/// A process that is ended with the test.
struct Running(Child);

impl Running {
    fn shell(script: &str) -> Running {
        let mut command = Command::new("bash");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Running(command.spawn().unwrap())
    }

    /// Starts a script and waits until it has printed a line.
    fn ready(script: &str) -> Running {
        let mut running = Running::shell(script);
        let length = running.0.stdout.as_mut().unwrap().read(&mut [0; 16]).unwrap();
        assert!(length > 0, "{script}");
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn listener(backlog: i32) -> (OwnedFd, SocketAddr) {
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&fd, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    listen(&fd, backlog).unwrap();
    let bound = getsockname(&fd).unwrap().try_into().unwrap();
    (fd, bound)
}

#[test]
fn a_listener_that_overflows_is_seen_with_its_queue_and_backlog() {
    inside(|| {
        let mut sampler = of_network();
        let (_listener, address) = listener(2);
        let port = address.port().to_string();
        let before = sampler.read(0);
        let queue = |rows: &[SampleRow], column| value(rows, "listeners", &[PROXY, &port], column);
        assert_eq!(queue(&before, "queue"), Some(0));
        assert_eq!(queue(&before, "backlog"), Some(2));
        assert_eq!(queue(&before, "sockets"), Some(1));
        assert_eq!(value(&before, "network", &[PROXY], "listen_overflows"), Some(0));
        // One more than the backlog is admitted; the next finds it full.
        let _admitted = [(); 3].map(|()| TcpStream::connect(address).unwrap());
        let flags = SocketFlags::NONBLOCK;
        let late = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        connect(&late, &address).unwrap_err();
        let after = sampler.read(1);
        assert_eq!(queue(&after, "queue"), Some(3));
        let counted = |column| value(&after, "network", &[PROXY], column).unwrap();
        assert!(counted("listen_overflows") > 0 && counted("listen_drops") > 0);
        assert_eq!(counted("active_opens"), 4);
        assert_eq!(counted("attempt_fails"), 0);
    });
}

#[test]
fn sockets_are_counted_by_side_and_state_and_connections_looked_at() {
    inside(|| {
        sysctl::write("net.ipv4.ip_local_port_range", "20000 20999").unwrap();
        let (_listener, address) = listener(1000);
        let clients: Vec<TcpStream> =
            (0..600).map(|_| TcpStream::connect(address).unwrap()).collect();
        let rows = of_network().read(0);
        for side in ["inbound", "outbound"] {
            let keys = [PROXY, side, "ESTABLISHED"];
            assert_eq!(value(&rows, "sockets", &keys, "count"), Some(600), "{side}");
            let connections = |column| value(&rows, "connections", &[PROXY, side], column);
            assert_eq!(connections("count"), Some(200));
            assert!(
                connections("rtt_us") > Some(0)
                    && connections("rtt_us") <= connections("rtt_p99_us"),
                "{side}"
            );
            assert_eq!(connections("retransmits_total"), Some(0));
        }
        assert_eq!(value(&rows, "network", &[PROXY], "local_ports"), Some(1000));
        assert_eq!(value(&rows, "network", &[PROXY], "qdisc_drops"), Some(0));
        drop(clients);
    });
}

#[test]
fn connections_in_time_wait_are_counted() {
    inside(|| {
        let mut sampler = of_network();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let time_wait = |rows: &[SampleRow]| value(rows, "network", &[PROXY], "time_wait");
        assert_eq!(time_wait(&sampler.read(0)), Some(0));
        for _ in 0..25 {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            drop(client);
            assert_eq!(server.read(&mut [0]).unwrap(), 0);
        }
        assert_eq!(time_wait(&sampler.read(1)), Some(25));
    });
}

#[test]
fn a_namespace_of_several_roles_is_read_once_and_nobody_s_own() {
    let places = [GENERATOR, ORIGIN].map(|role| SampledRole {
        arm: role.to_owned(),
        namespace: Some(Namespace::of_this_thread()),
        ..place(role, Tasks::Processes(Vec::new()))
    });
    let rows = Sampler::open(places.into()).read(0);
    let whose: Vec<(&str, &str)> = rows
        .iter()
        .filter(|row| row.table == "network")
        .map(|row| (&*row.keys[0], &*row.arm))
        .collect();
    assert_eq!(whose, [("shared", "")]);
}

#[test]
fn a_process_that_burns_a_cpu_is_seen_though_another_started_it() {
    // The shell waits for what it has killed: whoever else inherits it may take a while to.
    let script = "(while :; do :; done) & echo begun; read x; kill $!; wait $!";
    let parent = Running::ready(script);
    let mut sampler = Sampler::open(vec![place(PROXY, Tasks::Processes(vec![parent.0.id()]))]);
    let mut busy = || {
        let rows = sampler.read(0);
        let used = rows.iter().filter(|row| row.table == "processes").map(|row| {
            let spent = ["user_ns", "system_ns", "wait_ns"]
                .map(|column| value(std::slice::from_ref(row), "processes", &[], column).unwrap());
            (row.keys[1].clone(), spent.iter().sum::<u64>())
        });
        used.collect::<Vec<_>>()
    };
    let (begun, before) = (Instant::now(), busy());
    thread::sleep(Duration::from_millis(500));
    let (after, passed) = (busy(), begun.elapsed().as_nanos() as u64);
    assert_eq!(before.len(), 2);
    // What it wanted of a CPU, had it or not: the machine may be crowded.
    let most = before
        .iter()
        .zip(&after)
        .map(|(before, after)| {
            assert_eq!(before.0, after.0);
            after.1 - before.1
        })
        .max()
        .unwrap();
    assert!(most > passed * 7 / 10 && most < passed * 13 / 10, "{most} of {passed}");
    let mut parent = parent;
    parent.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    parent.0.wait().unwrap();
    assert_eq!(busy(), [], "they have ended");
}

#[test]
fn descriptors_are_counted_beside_their_limit() {
    let script =
        "ulimit -Sn 400; for i in {10..309}; do eval \"exec $i</dev/null\"; done; echo; read x";
    let child = Running::ready(script);
    let mut sampler = Sampler::open(vec![place(PROXY, Tasks::Processes(vec![child.0.id()]))]);
    let rows = sampler.read(0);
    let processes = |column| value(&rows, "processes", &[PROXY], column).unwrap();
    assert!((300..320).contains(&processes("descriptors")), "{}", processes("descriptors"));
    assert_eq!(processes("descriptors_most"), 400);
    assert_eq!(processes("threads"), 1);
}

#[test]
fn threads_are_told_by_their_name_and_a_process_by_all_of_its_threads() {
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let named = thread::Builder::new().name("weir-told-3".to_owned());
    let thread = named.spawn(move || wait.recv()).unwrap();
    let pid = std::process::id();
    let mut sampler = Sampler::open(vec![
        place(GENERATOR, Tasks::Threads("weir-told")),
        place(PROXY, Tasks::Processes(vec![pid])),
    ]);
    // Its name is given by the thread itself.
    eventually("the thread is seen", || {
        let rows = Sampler::open(vec![place(GENERATOR, Tasks::Threads("weir-told"))]).read(0);
        value(&rows, "processes", &[GENERATOR], "user_ns").is_some()
    });
    let rows = sampler.read(0);
    let pid_text = pid.to_string();
    let threads = rows.iter().filter(|row| row.table == "threads").collect::<Vec<_>>();
    assert!(threads.iter().any(|row| row.keys[1] == pid_text && row.keys[3] == "weir-told-3"));
    let count = value(&rows, "processes", &[PROXY, &pid_text], "threads").unwrap();
    assert!(count >= 2 && threads.len() >= 2);
    drop(stop);
    let _ = thread.join();
}

/// A control group of version 1 or 2 with a quota of a tenth of a CPU, if one may be made.
struct Group(PathBuf);

impl Group {
    fn make() -> Option<Group> {
        let name = format!("weir-sample-{}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        for (folder, file, quota) in [
            (root.join("cpu").join(&name), "cpu.cfs_quota_us", "10000"),
            (root.join(&name), "cpu.max", "10000 100000"),
        ] {
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Group(folder);
            if fs::write(group.0.join(file), quota).is_ok() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to forget what has ended in it.
        eventually("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_quota_that_holds_a_process_back_is_seen() {
    let Some(group) = Group::make() else {
        println!("left out: no control group may be made here");
        return;
    };
    let child = Running::shell("while :; do :; done");
    fs::write(group.0.join("cgroup.procs"), child.0.id().to_string()).unwrap();
    let mut sampler = Sampler::open(vec![place(PROXY, Tasks::Processes(vec![child.0.id()]))]);
    let path = format!("/{}", group.0.file_name().unwrap().display());
    let mut cgroup_value = |column| value(&sampler.read(0), "cgroups", &[PROXY, &path], column);
    assert_eq!(
        (cgroup_value("quota_us"), cgroup_value("period_us")),
        (Some(10_000), Some(100_000))
    );
    let until = Instant::now() + Duration::from_secs(60);
    while cgroup_value("throttled") < Some(3) || cgroup_value("throttled_us") < Some(1000) {
        assert!(Instant::now() < until, "it is not held back");
        thread::sleep(Duration::from_millis(20));
    }
    drop(child);
    drop(group);
}

#[test]
fn what_is_missing_is_empty_and_said_once_with_its_reason() {
    // So that there is something of every kind, whoever else is here.
    let (_listener, address) = listener(7);
    let _client = TcpStream::connect(address).unwrap();
    let mut sampler = Sampler::open(vec![SampledRole {
        namespace: Some(Namespace::of_this_thread()),
        ..place(PROXY, Tasks::Processes(vec![std::process::id()]))
    }]);
    let rows = [sampler.read(0), sampler.read(1)].concat();
    let missing = sampler.missing();
    // May be empty with nothing wrong: no quota or limit, counts of sockets that were not due.
    let may_be = ["quota_us", "memory_most_bytes", "syn_recv", "descriptors"];
    for row in &rows {
        let table = Counters::builtin().table(&row.table).unwrap();
        for (name, value) in table.values().zip(&row.values) {
            let gap = missing.iter().find(|gap| gap.table == row.table && gap.column == name);
            let is_explained = gap.is_some_and(|gap| gap.why.len() > 10);
            assert!(
                value.is_some() || is_explained || may_be.contains(&name),
                "{}.{name}",
                row.table
            );
        }
    }
    let mut once: Vec<_> = missing.iter().map(|gap| (&gap.table, &gap.column, &gap.role)).collect();
    once.dedup();
    assert_eq!(once.len(), missing.len());
    for table in ["cpus", "host", "softnet", "network", "listeners", "sockets", "processes"] {
        assert!(rows.iter().any(|row| row.table == table), "no {table}");
    }
}
