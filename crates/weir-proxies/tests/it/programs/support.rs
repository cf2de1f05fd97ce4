//! Shared helpers of the tests: an origin server, a client, processes and addresses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir_probe::ProcessId;
use weir_sut::{Launcher, RunningProxy, WorkFolder, free_port};

/// Returns the workers and the first process of a proxy.
pub(crate) fn processes(proxy: &RunningProxy) -> Vec<ProcessId> {
    proxy
        .worker_pids()
        .into_iter()
        .chain([proxy.master_pid()])
        .map(|pid| ProcessId::of(pid).expect("it runs"))
        .collect()
}

pub(crate) fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process number"), Signal::KILL).expect("it is this test's");
}

/// A launcher that goes through this test executable: see `programs::launch::becomes_the_program`.
pub(crate) fn launcher() -> Launcher {
    let executable = std::env::current_exe().expect("a test knows its executable");
    Launcher::through(
        executable,
        ["--exact", "programs::launch::becomes_the_program", "--nocapture", "--"],
    )
}

/// Writes a script that can be executed.
///
/// A separate process copies it into place: a file that this process holds open for writing would also be open in a
/// child that another test starts at that moment, and the kernel does not execute a file that is open for writing.
pub(crate) fn executable(path: &Path, text: &str) {
    let draft = path.with_extension("text");
    std::fs::write(&draft, text).expect("the folder is the test's");
    let mut install = Command::new("install");
    let status = install.args(["-m", "755"]).arg(draft).arg(path).status();
    assert!(status.is_ok_and(|status| status.success()), "{}", path.display());
}

pub(crate) fn free_address() -> SocketAddr {
    let ip = Ipv4Addr::LOCALHOST.into();
    SocketAddr::new(ip, free_port(ip).expect("some port is free"))
}

/// Waits until a condition holds, and fails the test if it does not within 20 seconds.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "waited 20 s for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// An origin server that answers everything with `hello` and counts its connections. It lives until
/// the tests end.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Origin {
    pub(crate) fn start() -> Origin {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port can be had");
        let address = listener.local_addr().expect("a listener has an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || answer(stream));
            }
        });
        Origin { address, connections }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn answer(mut stream: TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    loop {
        let request = lines.next()?.ok()?;
        while !lines.next()?.ok()?.is_empty() {}
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").ok()?;
        if request.ends_with("HTTP/1.0") {
            return None;
        }
    }
}

/// Sends one request on a connection of its own; returns the whole response.
pub(crate) fn get(address: SocketAddr, target: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the proxy accepts");
    let request = format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the proxy reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("the proxy answers in text");
    response
}

/// Creates a folder in place of the system's folder for temporary files: the test's own, and one that nginx's workers
/// may enter.
pub(crate) fn shared_folder(work: &WorkFolder) -> PathBuf {
    let path = work.prefix("shared");
    std::fs::create_dir(&path).expect("the work folder can be written");
    path
}
