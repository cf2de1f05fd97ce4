//! Shared helpers of the tests.

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weir_host::{Network, Wire, connect, may_have_networks};

/// Maximum time to wait for what the kernel does on threads of its own. A loaded machine may need it; no test waits for
/// all of it otherwise.
pub(crate) const EVENTUALLY: Duration = Duration::from_secs(60);

/// Returns true if namespaces may be made here; otherwise prints why the test is skipped.
pub(crate) fn networks_or_skip() -> bool {
    match may_have_networks() {
        Ok(()) => true,
        Err(e) => {
            println!("left out: {e}");
            false
        }
    }
}

/// Runs `work` in a namespace of its own, if one may be made.
pub(crate) fn inside(work: impl FnOnce() + Send) {
    if networks_or_skip() {
        Network::create().unwrap().within(work).unwrap();
    }
}

/// One end of a link with one address of 10.0.0.0/24.
pub(crate) fn wire(name: &str, last: u8) -> Wire {
    Wire { name: name.to_owned(), addresses: vec![(Ipv4Addr::new(10, 0, 0, last), 24)] }
}

/// Creates two namespaces with a link, 10.0.0.1 and 10.0.0.2.
pub(crate) fn pair(mtu: u32) -> (Network, Network) {
    let (a, b) = (Network::create().unwrap(), Network::create().unwrap());
    connect((&a, &wire("left", 1)), (&b, &wire("right", 2)), mtu).unwrap();
    (a, b)
}

pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + EVENTUALLY;
    while !holds() {
        assert!(Instant::now() < until, "still not so: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the number of a process's namespace, as `Network::id` does; `None` once the process is gone.
pub(crate) fn network_of(process: &Path) -> Option<u64> {
    let link = fs::read_link(process.join("ns/net")).ok()?;
    let text = link.to_str()?;
    text.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// Counts the threads of all processes that are in a namespace.
pub(crate) fn users(network: u64) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(Result::ok)
        .filter_map(|process| fs::read_dir(process.path().join("task")).ok())
        .flatten()
        .filter_map(Result::ok)
        .filter(|thread| network_of(&thread.path()) == Some(network))
        .count()
}

/// Runs one test of this executable, which is ignored otherwise, by a command; if it cannot be run, prints `lacking` as
/// the reason.
pub(crate) fn again_or_skip(mut command: Command, test: &str, lacking: &str) {
    command.arg(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]);
    match command.stdin(Stdio::null()).output() {
        Ok(output) => {
            let bytes = [output.stdout, output.stderr].concat();
            let printed = String::from_utf8_lossy(&bytes);
            if output.status.success() {
                assert!(printed.contains("1 passed"), "{printed}");
            } else if printed.contains("panicked") {
                panic!("{printed}");
            } else {
                println!("left out: {lacking}: {printed}");
            }
        }
        Err(error) => println!("left out: {lacking}: {error}"),
    }
}

/// Returns a command that runs its arguments in a namespace of unshare(1), after a line of shell.
pub(crate) fn unshared(namespace: &[&str], before: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(namespace).args(["sh", "-c"]);
    command.arg(format!("{before} && exec \"$@\"")).arg("sh");
    command
}

/// Returns the number of the descriptor, to look for it in another process.
pub(crate) fn number(network: &Network) -> i32 {
    network.as_fd().as_raw_fd()
}
