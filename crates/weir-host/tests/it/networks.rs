//! Tests of namespaces: content of a new one, its processes and threads, and that nothing of it is left.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{fs, panic, thread};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use weir_host::{HostError, Network, connect, may_have_networks};

use crate::support::{
    again_or_skip, eventually, network_of, networks_or_skip, number, pair, unshared, users, wire,
};

fn sleeper() -> Child {
    Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap()
}

fn process(child: &Child) -> PathBuf {
    PathBuf::from(format!("/proc/{}", child.id()))
}

#[test]
fn a_new_one_has_a_loopback_and_nobody_elses_ports() {
    if !networks_or_skip() {
        return;
    }
    let network = Network::create().unwrap();
    let loopback = network.interfaces().unwrap();
    let is_up = loopback.iter().any(|i| i.name == "lo" && i.up);
    assert!(is_up, "{loopback:?}");

    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = outside.local_addr().unwrap();
    let echoed = network.within(|| {
        let inside = TcpListener::bind(address).expect("the port is free in here");
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        inside.accept().unwrap().0.read_exact(&mut byte).unwrap();
        byte
    });
    assert_eq!(echoed.unwrap(), *b"x");
}

#[test]
fn threads_and_their_processes_are_where_they_went() {
    if !networks_or_skip() {
        return;
    }
    let here = own_id();
    let network = Network::create().unwrap();
    let there = network.id().unwrap();
    assert_ne!(here, there);
    assert_eq!(network.clone().id().unwrap(), there);

    let joined = thread::spawn(move || {
        network.join().unwrap();
        let mut child = sleeper();
        let of_child = network_of(&process(&child));
        child.kill().unwrap();
        child.wait().unwrap();
        let of_thread = thread::spawn(own_id).join().unwrap();
        (own_id(), of_child, of_thread)
    });
    assert_eq!(joined.join().unwrap(), (there, Some(there), there));
    assert_eq!(own_id(), here);
}

fn own_id() -> u64 {
    Network::of_this_thread().unwrap().id().unwrap()
}

/// `/proc/net` shows the namespace of the process's first thread; readers of counters must know that.
#[test]
fn proc_net_is_the_first_threads() {
    if !networks_or_skip() {
        return;
    }
    let network = Network::create().unwrap();
    let end = wire("only-here", 1);
    connect((&network, &end), (&network, &wire("other", 2)), 1500).unwrap();
    let visible = network.within(|| ["/proc", "/proc/thread-self"].map(has_own_interface));
    assert_eq!(visible.unwrap(), [false, true]);
}

fn has_own_interface(process: &str) -> bool {
    let text = fs::read_to_string(format!("{process}/net/dev")).unwrap();
    let mut named = text.lines().filter_map(|line| line.split_once(':'));
    named.any(|(name, _)| name.trim() == "only-here")
}

#[test]
fn no_child_inherits_the_descriptor() {
    if !networks_or_skip() {
        return;
    }
    let network = Network::create().unwrap();
    let mut child = sleeper();
    let inherited = process(&child).join(format!("fd/{}", number(&network)));
    // Until its exec the child has all descriptors of this process.
    eventually("the child runs sleep", || {
        fs::read_to_string(process(&child).join("comm")).is_ok_and(|name| name == "sleep\n")
    });
    let link = fs::read_link(inherited);
    child.kill().unwrap();
    child.wait().unwrap();
    // A number that is free in the child may be a file of its own by now.
    assert!(!link.is_ok_and(|link| link.to_string_lossy().starts_with("net:")));
}

#[test]
fn what_happens_within_comes_back() {
    if !networks_or_skip() {
        return;
    }
    let network = Network::create().unwrap();
    let borrowed = String::from("here");
    assert_eq!(network.within(|| borrowed.len()).unwrap(), 4);
    let panicked = panic::catch_unwind(|| network.within(|| panic!("in there")));
    let payload = panicked.unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"in there"));
}

/// The other end of a link vanishes when its namespace does and not before, and so shows when the namespace is gone.
#[test]
fn a_namespace_lives_as_long_as_its_last_user() {
    if !networks_or_skip() {
        return;
    }
    let (a, b) = pair(1500);
    let id = a.id().unwrap();
    let mut child = a.within(sleeper).unwrap();
    drop(a);
    eventually("the thread that started it is gone", || users(id) == 1);
    assert!(is_linked(&b), "a process is in it yet");

    // SIGKILL: nothing of weir's can tidy up.
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("its link is gone", || !is_linked(&b));
    assert_eq!(users(id), 0);
}

fn is_linked(network: &Network) -> bool {
    network.interfaces().unwrap().iter().any(|interface| interface.name == "right")
}

#[test]
fn a_namespace_that_nobody_uses_is_gone_with_its_handle() {
    if !networks_or_skip() {
        return;
    }
    let (a, b) = pair(1500);
    let clone = a.clone();
    drop(a);
    assert!(is_linked(&b), "a clone holds it");
    drop(clone);
    eventually("its link is gone", || !is_linked(&b));
}

/// Runs `work` without some capabilities, on a thread of its own: capabilities belong to a thread, and the threads that
/// it starts inherit them.
fn without(dropped: CapabilitySet, work: impl FnOnce() -> HostError + Send) -> HostError {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(dropped);
            sets.permitted.remove(dropped);
            set_capabilities(None, sets).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_missing_capability_is_named() {
    if !networks_or_skip() {
        return;
    }
    let network = Network::create().unwrap();
    #[rustfmt::skip]
    let rows = [
        (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN",
         without(CapabilitySet::SYS_ADMIN, || may_have_networks().unwrap_err())),
        (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN",
         without(CapabilitySet::NET_ADMIN, || may_have_networks().unwrap_err())),
        (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN",
         without(CapabilitySet::SYS_ADMIN, || network.join().unwrap_err())),
    ];
    for (dropped, name, error) in rows {
        assert!(
            matches!(error, HostError::NotPermitted { capability, .. } if capability == name),
            "{dropped:?}: {error}"
        );
        let hint = error.hint().unwrap();
        assert!(hint.starts_with("it needs CAP_"), "{hint}");
    }
}

#[test]
fn the_limit_of_namespaces_is_told() {
    // A user namespace has limits of its own, so this host's stay what they are.
    let none_may_be = "echo 0 > /proc/sys/user/max_net_namespaces";
    let command = unshared(&["--user", "--map-root-user"], none_may_be);
    let test = "networks::in_a_user_namespace_without_networks";
    again_or_skip(command, test, "no user namespace to try it in");
}

#[test]
#[ignore = "started by the_limit_of_namespaces_is_told"]
fn in_a_user_namespace_without_networks() {
    let error = Network::create().unwrap_err();
    assert!(matches!(error, HostError::TooManyNamespaces), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("user.max_net_namespaces"), "{hint}");
}

#[test]
fn root_of_a_user_namespace_is_enough() {
    let command = unshared(&["--user", "--map-root-user"], "true");
    let test = "networks::in_a_user_namespace";
    again_or_skip(command, test, "no user namespace to try it in");
}

#[test]
#[ignore = "started by root_of_a_user_namespace_is_enough"]
fn in_a_user_namespace() {
    may_have_networks().unwrap();
    let (a, b) = (Network::create().unwrap(), Network::create().unwrap());
    connect((&a, &wire("left", 1)), (&b, &wire("right", 2)), 1500).unwrap();
}
