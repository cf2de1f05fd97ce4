//! What several tests need.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use weir_host::{Network, Wire, connect, may_have_networks};

/// For what the kernel does on threads of its own. A loaded machine may need it; none waits it out.
pub(crate) const EVENTUALLY: Duration = Duration::from_secs(60);

/// Whether namespaces may be made here; says why a test is left out where they may not.
pub(crate) fn networks_or_skip() -> bool {
    match may_have_networks() {
        Ok(()) => true,
        Err(e) => {
            println!("left out: {e}");
            false
        }
    }
}

/// One end of a link with one address of 10.0.0.0/24.
pub(crate) fn wire(name: &str, last: u8) -> Wire {
    Wire {
        name: name.to_owned(),
        addresses: vec![(Ipv4Addr::new(10, 0, 0, last), 24)],
    }
}

/// Two namespaces with a link, 10.0.0.1 and 10.0.0.2.
pub(crate) fn pair(mtu: u32) -> (Network, Network) {
    let (a, b) = (Network::create().unwrap(), Network::create().unwrap());
    connect((&a, &wire("left", 1)), (&b, &wire("right", 2)), mtu).unwrap();
    (a, b)
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + EVENTUALLY;
    while !holds() {
        assert!(Instant::now() < until, "still not so: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The namespace of a process, as `Network::id` tells it; `None` once it is gone.
pub(crate) fn network_of(process: &Path) -> Option<u64> {
    let link = fs::read_link(process.join("ns/net")).ok()?;
    let text = link.to_str()?;
    text.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// All threads of all processes that are in a namespace.
pub(crate) fn users(network: u64) -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|process| fs::read_dir(process.path().join("task")).ok())
        .flatten()
        .filter_map(Result::ok)
        .filter(|thread| network_of(&thread.path()) == Some(network))
        .count()
}

/// A command that runs one test of this executable, which is ignored otherwise, and says that it
/// passed.
pub(crate) fn again(mut command: Command, test: &str) -> io::Result<String> {
    let me = std::env::current_exe()?;
    let output = command
        .arg(me)
        .args([test, "--exact", "--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .output()?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(io::Error::other(
            text(&output.stdout) + &text(&output.stderr),
        )),
    }
}

/// The descriptor's number, to look for in another process.
pub(crate) fn number(network: &Network) -> i32 {
    network.as_fd().as_raw_fd()
}
