//! What the tests share: an origin server, a client, and an nginx in a folder of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::Catalog;
use weir_probe::ProcessId;
use weir_sut::{Configuration, Launch, Launcher, Proxy, RunningProxy, Site, WorkFolder, free_port};

/// A proxy of this machine. Tests that need it fail without it: to pass would say that something
/// was looked at.
pub(crate) fn program(kind: ProxyKind) -> Arc<dyn Proxy> {
    weir_sut::find(kind, None).unwrap_or_else(|error| panic!("{error}; {:?}", error.hint()))
}

pub(crate) fn nginx() -> Arc<dyn Proxy> {
    program(ProxyKind::Nginx)
}

/// Its first process and its workers.
pub(crate) fn processes(proxy: &RunningProxy) -> Vec<ProcessId> {
    let pids = proxy.worker_pids().into_iter().chain([proxy.master_pid()]);
    pids.map(|pid| ProcessId::of(pid).expect("it runs"))
        .collect()
}

pub(crate) fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process number"), Signal::KILL).expect("it is this test's");
}

/// A launcher that goes through this test executable: see `launch::becomes_the_program`.
pub(crate) fn launcher() -> Launcher {
    let own = std::env::current_exe().expect("a test knows its executable");
    Launcher::through(
        own,
        [
            "--exact",
            "launch::becomes_the_program",
            "--nocapture",
            "--",
        ],
    )
}

/// Writes a script that can be executed.
///
/// It is copied there by a process of its own: what this one holds open for writing, a child that
/// another test starts just then holds too, and no kernel executes what anybody may write to.
pub(crate) fn executable(path: &Path, text: &str) {
    let draft = path.with_extension("text");
    std::fs::write(&draft, text).expect("the folder is the test's");
    let mut install = Command::new("install");
    let status = install.args(["-m", "755"]).arg(draft).arg(path).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{}",
        path.display()
    );
}

/// An address of this host where nobody listens.
pub(crate) fn free_address() -> SocketAddr {
    let ip = Ipv4Addr::LOCALHOST.into();
    SocketAddr::new(ip, free_port(ip).expect("some port is free"))
}

/// Debian's settings of a proxy with others on top.
pub(crate) fn stock(kind: ProxyKind, changes: &[(&str, &str)]) -> Settings {
    let mut settings = Catalog::builtin().stock(kind);
    let changes = changes.iter();
    settings.extend(changes.map(|&(id, level)| (id.to_owned(), level.to_owned())));
    settings
}

pub(crate) fn stock_with(changes: &[(&str, &str)]) -> Settings {
    stock(ProxyKind::Nginx, changes)
}

/// A proxy and the folder it lives in; the proxy ends first.
pub(crate) struct Arm {
    pub(crate) proxy: RunningProxy,
    pub(crate) configuration: Configuration,
    pub(crate) folder: WorkFolder,
}

/// Starts an arm. Ports are picked before they are taken, and the machine may be shared: who is
/// beaten to a port picks another.
pub(crate) fn start(settings: &Settings, role: &ProxyRole, origin: Option<SocketAddr>) -> Arm {
    start_with(settings, role, origin, &Launch::default())
}

pub(crate) fn start_with(
    settings: &Settings,
    role: &ProxyRole,
    origin: Option<SocketAddr>,
    launch: &Launch,
) -> Arm {
    start_any(&*nginx(), settings, role, origin, launch)
}

/// Starts an arm of any proxy.
pub(crate) fn start_any(
    program: &dyn Proxy,
    settings: &Settings,
    role: &ProxyRole,
    origin: Option<SocketAddr>,
    launch: &Launch,
) -> Arm {
    let folder = WorkFolder::create().expect("the folder for temporary files can be written");
    for attempt in 0.. {
        let prefix = folder.prefix(&format!("arm-{attempt}"));
        let catalog = Catalog::builtin();
        let site = Site::new(role, free_address(), origin);
        let configuration = program
            .write(&prefix, settings, &site, &catalog)
            .expect("the configuration can be written");
        match weir_sut::start(program, &configuration, &launcher(), launch) {
            Ok(proxy) => {
                return Arm {
                    proxy,
                    configuration,
                    folder,
                };
            }
            Err(weir_sut::SutError::PortTaken { .. }) if attempt < 3 => {}
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("every attempt ends in one of three ways")
}

/// Waits for something that is sure to come, and fails the test if it does not.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "waited 20 s for: {what}"
        );
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
        Origin {
            address,
            connections,
        }
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
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            .ok()?;
        if request.ends_with("HTTP/1.0") {
            return None;
        }
    }
}

/// One request on a connection of its own; the whole response.
pub(crate) fn get(address: SocketAddr, target: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the proxy accepts");
    let request = format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .expect("the proxy reads");
    let mut response = String::new();
    stream
        .read_to_string(&mut response)
        .expect("the proxy answers in text");
    response
}

/// Stands in for the system's folder for temporary files: the test's own, and one that nginx's workers
/// may enter.
pub(crate) fn shared_folder(work: &WorkFolder) -> PathBuf {
    let path = work.prefix("shared");
    std::fs::create_dir(&path).expect("the work folder can be written");
    path
}
