//! Lifetime of the bypass: it is attached while it is held, and nothing stays when its process ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir_bypass::{Bypass, BypassError, Hop};
use weir_testkit::peers::PATIENCE;

use crate::bypass;

/// Returns the ids of all loaded programs that are a bypass's `events`.
fn loaded_programs() -> Vec<u32> {
    aya::programs::loaded_programs()
        .filter_map(Result::ok)
        .filter(|program| program.name() == b"events")
        .map(|program| program.id())
        .collect()
}

/// Process that `a_killed_process_leaves_nothing` kills; not a test.
#[test]
#[ignore = "a process for another test"]
fn attached_for_ever() {
    let server: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let _bypass = Bypass::attach(&[server.into()]).unwrap();
    println!("ready {:?}", loaded_programs());
    std::thread::sleep(PATIENCE);
}

/// Returns the command that runs an ignored test in a process of its own.
fn rerun_test(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--ignored", "--nocapture", "--exact"]);
    command
}

#[test]
fn a_killed_process_leaves_nothing() {
    if bypass(&[]).is_none() {
        return;
    }
    let mut command = rerun_test("life::attached_for_ever");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let ready = lines.any(|line| line.contains("ready "));
    assert!(ready, "it ended before");
    let links = links_of(child.id());
    assert_eq!(links.len(), 1, "one link, of its process alone");
    let before = loaded_programs();
    assert!(before.contains(&links[0]), "{links:?} is loaded: {before:?}");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let until = Instant::now() + PATIENCE;
    while loaded_programs().contains(&links[0]) {
        assert!(Instant::now() < until, "program {} is there yet", links[0]);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the ids of programs that a process's links hold, from its `fdinfo` (proc(5)).
fn links_of(pid: u32) -> Vec<u32> {
    let Ok(folder) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
        return Vec::new();
    };
    let texts = folder.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts
        .filter_map(|text| {
            text.contains("link_type:\tcgroup").then_some(())?;
            let mut lines = text.lines();
            let line = lines.find_map(|line| line.strip_prefix("prog_id:"))?;
            line.trim().parse().ok()
        })
        .collect()
}

/// Process for `dropping_it_detaches`; not a test. It is separate because other tests attach bypasses in the process
/// that they share.
#[test]
#[ignore = "a process for another test"]
fn attached_and_dropped() {
    let bypass = Bypass::attach(&[]).unwrap();
    let attached = links_of(std::process::id());
    drop(bypass);
    let remaining = links_of(std::process::id());
    println!("links {} then {}", attached.len(), remaining.len());
}

#[test]
fn dropping_it_detaches() {
    if bypass(&[]).is_none() {
        return;
    }
    let ended = rerun_test("life::attached_and_dropped").output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(text.contains("links 1 then 0"), "{text}");
}

fn speak(listener: &TcpListener, server: SocketAddr) -> String {
    let mut client = TcpStream::connect(server).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    client.write_all(b"hello").unwrap();
    drop(client);
    let mut text = String::new();
    other.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn endpoints_come_and_go_and_others_are_left_alone() {
    let Some(mut bypass) = bypass(&[]) else {
        return;
    };
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let hops = [0, 1].map(|i| Hop::from(listeners[i].local_addr().unwrap()));
    bypass.add(hops[0]).unwrap();
    for (listener, hop) in listeners.iter().zip(hops) {
        assert_eq!(speak(listener, hop.server), "hello");
    }
    let counters = bypass.counters().unwrap();
    assert_eq!(counters.hops.len(), 1);
    let total = counters.total;
    assert_eq!((total.sockets, total.redirected), (2, 1));
    assert_eq!((total.redirected_bytes, total.left_to_tcp()), (5, 0));

    assert!(matches!(bypass.add(hops[0]), Err(BypassError::Twice(_))));
    let removed = bypass.remove(hops[1]);
    assert!(matches!(removed, Err(BypassError::Unknown(_))));
    bypass.remove(hops[0]).unwrap();
    assert_eq!(speak(&listeners[0], hops[0].server), "hello");
    bypass.add(hops[0]).unwrap();
    let sockets = bypass.counters().unwrap().total.sockets;
    assert_eq!(sockets, 0, "counted from now on");
}

#[test]
fn two_are_attached_beside_each_other() {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = [0, 1].map(|i| listeners[i].local_addr().unwrap());
    let (Some(one), Some(two)) = (bypass(&addresses[..1]), bypass(&addresses[1..])) else {
        return;
    };
    for (listener, bypass) in listeners.iter().zip([&one, &two]) {
        speak(listener, listener.local_addr().unwrap());
        assert_eq!(bypass.counters().unwrap().total.redirected, 1);
    }
}
