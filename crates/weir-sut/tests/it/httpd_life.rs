//! Begin, change and end of httpd: what goes wrong is said, and no process is left behind.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use weir_model::study::ProxyRole;
use weir_parameters::Catalog;
use weir_probe::ProcessId;
use weir_sut::{
    Configuration, Httpd, Launch, Proxy, RunningProxy, Site, SutError, WorkFolder, start as begin,
};

use crate::httpd::{ALONE, httpd, start, stock_with};
use crate::support::{Origin, executable, free_address, get, launcher, until};

const FILES: ProxyRole = ProxyRole::StaticFiles { size: 1 };

fn processes(proxy: &RunningProxy) -> Vec<ProcessId> {
    let pids = proxy.worker_pids().into_iter().chain([proxy.master_pid()]);
    pids.map(|pid| ProcessId::of(pid).expect("it runs"))
        .collect()
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process number"), Signal::KILL).expect("it is this test's");
}

fn write(folder: &WorkFolder, changes: &[(&str, &str)], listen: SocketAddr) -> Configuration {
    let site = Site::new(&FILES, listen, None);
    let settings = stock_with(changes);
    httpd()
        .write(&folder.prefix("arm"), &settings, &site, &Catalog::builtin())
        .expect("the configuration can be written")
}

fn run(httpd: &Httpd, configuration: &Configuration) -> Result<RunningProxy, SutError> {
    begin(httpd, configuration, &launcher(), &Launch::default())
}

/// A program that is httpd when it is asked, and something else when it is to serve.
fn disguised(folder: &WorkFolder, instead: &str) -> Httpd {
    let file = folder.path().join("httpd.sh");
    let real = httpd().program().display().to_string();
    let script =
        format!("#!/bin/sh\ncase \"$*\" in *FOREGROUND*) {instead};; esac\nexec {real} \"$@\"\n");
    executable(&file, &script);
    Httpd::find(Some(&file)).expect("it answers as httpd")
}

#[test]
fn stopping_or_dropping_leaves_no_process_whatever_the_mpm() {
    for mpm in ["event", "worker", "prefork"] {
        let changes = [("mpm", mpm), ("max_request_workers", "50")];
        let stopped = start(&changes, &FILES, None);
        let dropped = start(&changes, &FILES, None);
        let each = if mpm == "prefork" { 50 } else { 2 };
        let mut all = processes(&stopped.proxy);
        all.extend(processes(&dropped.proxy));
        assert_eq!(all.len(), 2 * (each + 1), "{mpm}");
        assert!(all.iter().all(|process| process.is_alive()));
        stopped.proxy.stop();
        drop(dropped.proxy);
        // Reaped, too: a zombie would still have its number.
        let is_gone = |process: &ProcessId| ProcessId::of(process.pid).ok() != Some(*process);
        assert!(all.iter().all(is_gone), "{mpm}");
    }
}

/// Its pool is the same after a load of more connections than it has threads for, and after none.
#[test]
fn workers_stay_the_same_under_load_and_without() {
    let origin = Origin::start();
    let changes = [("max_request_workers", "6"), ("threads_per_child", "2")];
    let mut arm = start(&changes, &ProxyRole::ReverseProxy, Some(origin.address));
    let workers = arm.proxy.worker_pids();
    assert_eq!(workers.len(), 3);
    let address = arm.proxy.address();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| (0..20).for_each(|_| assert!(get(address, "/").ends_with("hello"))));
        }
    });
    // Once a second httpd looks whether processes are too many or too few.
    std::thread::sleep(Duration::from_millis(2500));
    arm.proxy.alive().unwrap();
    let now = weir_probe::process::children(arm.proxy.master_pid()).unwrap();
    assert_eq!(now, workers);
}

#[test]
fn a_port_that_is_taken_is_said_in_httpd_s_own_words() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let folder = WorkFolder::create().unwrap();
    let error = run(&httpd(), &write(&folder, &[], address)).unwrap_err();
    let SutError::PortTaken { words, .. } = &error else {
        panic!("{error}");
    };
    assert!(
        words.contains(&format!("could not bind to address {address}")),
        "{words}"
    );
}

#[test]
fn a_port_is_never_shared_with_another_program() {
    let changes = [("listen_cores_buckets_ratio", "1")];
    let arm = start(&changes, &FILES, None);
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &changes, arm.proxy.address());
    let error = run(&httpd(), &configuration).unwrap_err();
    assert!(matches!(error, SutError::PortTaken { .. }), "{error}");
    assert!(get(arm.proxy.address(), "/").starts_with("HTTP/1.1 200 "));
}

#[test]
fn what_an_earlier_httpd_left_in_the_prefix_does_not_matter() {
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &[ALONE], free_address());
    let mut first = run(&httpd(), &configuration).unwrap();
    kill(first.master_pid());
    until("the master is missed", || first.alive().is_err());
    first.stop();
    let left = configuration.prefix().join("run/httpd.pid");
    assert!(left.exists(), "it had no time to remove it");
    // The number is another program's by now.
    fs::write(&left, format!("{}\n", std::process::id())).unwrap();
    let second = run(&httpd(), &configuration).unwrap();
    assert!(get(second.address(), "/").starts_with("HTTP/1.1 200 "));
}

#[test]
fn who_crashes_listens_late_or_never_is_told_apart() {
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &[ALONE], free_address());
    let crashing = disguised(&folder, "echo out of luck; exit 3");
    let error = run(&crashing, &configuration).unwrap_err();
    let SutError::NotStarted { status, words, .. } = &error else {
        panic!("{error}");
    };
    assert!(
        status.contains('3') && words.contains("out of luck"),
        "{error}"
    );

    let late = disguised(&folder, "sleep 1");
    let proxy = run(&late, &configuration).unwrap();
    assert!(get(proxy.address(), "/").starts_with("HTTP/1.1 200 "));
    assert_eq!(proxy.worker_pids().len(), 1);
    proxy.stop();

    let never = disguised(&folder, "exec sleep 60");
    let error = run(&never, &configuration).unwrap_err();
    assert!(
        matches!(error, SutError::NotListening { seconds: 10, .. }),
        "{error}"
    );
}

/// What only the start finds out httpd logs, and prints no more than that it failed.
#[test]
fn a_start_that_fails_has_the_words_of_the_log() {
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &[ALONE], free_address());
    let types = configuration.prefix().join("conf/mime.types");
    fs::remove_file(types).unwrap();
    let error = run(&httpd(), &configuration).unwrap_err();
    let SutError::NotStarted { words, .. } = &error else {
        panic!("{error}");
    };
    assert!(
        words.contains("could not open mime types config file"),
        "{words}"
    );
}

#[test]
fn a_worker_or_master_that_dies_is_noticed() {
    let mut arm = start(&[ALONE], &FILES, None);
    arm.proxy.alive().unwrap();
    let worker = arm.proxy.worker_pids()[0];
    kill(worker);
    until("the worker is missed", || arm.proxy.alive().is_err());
    let died = arm.proxy.alive().unwrap_err();
    assert!(
        matches!(died, SutError::Died { what: "worker process", pid, .. } if pid == worker),
        "{died}"
    );

    let mut arm = start(&[("max_request_workers", "50")], &FILES, None);
    let all = processes(&arm.proxy);
    kill(arm.proxy.master_pid());
    until("the master is missed", || arm.proxy.alive().is_err());
    let died = arm.proxy.alive().unwrap_err();
    assert!(
        matches!(
            died,
            SutError::Died {
                what: "master process",
                ..
            }
        ),
        "{died}"
    );
    arm.proxy.stop();
    assert!(!all.iter().any(|process| process.is_alive()));
}

/// An origin server that says when it is asked and answers when it is told to.
fn patient_origin() -> (SocketAddr, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port can be had");
    let address = listener.local_addr().expect("a listener has an address");
    let (asked, is_asked) = mpsc::channel();
    let (answer, to_answer) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the proxy connects");
        let mut lines = BufReader::new(stream.try_clone().expect("it can be cloned")).lines();
        while !lines.next().expect("a head").expect("in text").is_empty() {}
        asked.send(()).expect("the test waits");
        to_answer.recv().expect("the test tells");
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate";
        stream.write_all(response).expect("the proxy reads");
    });
    (address, is_asked, answer)
}

#[test]
fn a_request_in_flight_is_answered_before_a_graceful_end() {
    let (origin, is_asked, answer) = patient_origin();
    let arm = start(&[ALONE], &ProxyRole::ReverseProxy, Some(origin));
    let address = arm.proxy.address();
    let client = std::thread::spawn(move || get(address, "/"));
    is_asked.recv().unwrap();
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        answer.send(()).unwrap();
    });
    let by_itself = arm.proxy.drain(httpd().graceful(), Duration::from_secs(20));
    assert!(by_itself);
    assert!(client.join().unwrap().ends_with("late"));
    later.join().unwrap();
}

#[test]
fn a_changed_configuration_is_in_force_after_a_reload_and_no_request_is_lost() {
    let origin = Origin::start();
    let (httpd, catalog) = (httpd(), Catalog::builtin());
    let mut arm = start(&[ALONE], &ProxyRole::ReverseProxy, Some(origin.address));
    let address = arm.proxy.address();
    let before = (arm.proxy.worker_pids(), arm.proxy.cpu_ns());
    let site = Site::new(&ProxyRole::ReverseProxy, address, Some(origin.address));
    let settings = stock_with(&[("max_request_workers", "50"), ("keepalive_timeout", "2s")]);
    let changed = httpd
        .write(arm.configuration.prefix(), &settings, &site, &catalog)
        .unwrap();
    let is_over = AtomicBool::new(false);
    let asked = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut asked = 0;
            while !is_over.load(Ordering::SeqCst) {
                assert!(get(address, "/").ends_with("hello"));
                asked += 1;
            }
            asked
        });
        let reloaded = httpd.reload(&changed, &mut arm.proxy);
        is_over.store(true, Ordering::SeqCst);
        reloaded.unwrap();
        client.join().unwrap()
    });
    assert!(asked > 0);
    arm.proxy.alive().unwrap();
    assert_eq!(arm.proxy.worker_pids().len(), 2);
    assert!(
        arm.proxy
            .worker_pids()
            .iter()
            .all(|pid| !before.0.contains(pid))
    );
    assert!(arm.proxy.cpu_ns() >= before.1, "what ended still counts");
    let effective = httpd
        .effective(&changed, Some(&arm.proxy), &catalog)
        .unwrap();
    assert_eq!(effective.levels["keepalive_timeout"], "2s");
    assert_eq!(effective.levels["max_request_workers"], "50");

    // A configuration that is refused leaves the one before in force.
    fs::write(changed.file(), "Colour red\n").unwrap();
    let refused = httpd.reload(&changed, &mut arm.proxy);
    assert!(matches!(refused, Err(SutError::Refused { .. })));
    arm.proxy.alive().unwrap();
    assert!(get(address, "/").ends_with("hello"));
}

#[test]
fn a_reload_that_ends_httpd_is_an_error() {
    let mut arm = start(&[ALONE], &FILES, None);
    let types = arm.configuration.prefix().join("conf/mime.types");
    fs::remove_file(types).unwrap();
    let error = httpd()
        .reload(&arm.configuration, &mut arm.proxy)
        .unwrap_err();
    assert!(matches!(error, SutError::Died { .. }), "{error}");
    assert!(error.to_string().contains("mime types"), "{error}");
}

/// Says to [`is_a_weir_that_will_be_killed`] in which folder.
const ROLE: &str = "WEIR_TEST_DOOMED_HTTPD";

/// Not a test by itself: a weir that starts httpd, tells its processes, and waits to be killed.
#[test]
fn is_a_weir_that_will_be_killed() {
    let Some(parent) = std::env::var_os(ROLE) else {
        return;
    };
    let folder = WorkFolder::create_in(parent.as_ref()).unwrap();
    let configuration = write(&folder, &[("max_request_workers", "50")], free_address());
    let proxy = run(&httpd(), &configuration).unwrap();
    for process in processes(&proxy) {
        println!("\nprocess {}", process.pid);
    }
    println!("\nready");
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_killed_weir_takes_httpd_along_and_its_folder_is_swept() {
    let work = WorkFolder::create().unwrap();
    let parent = crate::support::shared_folder(&work);
    let name = "httpd_life::is_a_weir_that_will_be_killed";
    let mut weir = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ROLE, &parent)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(weir.stdout.take().unwrap()).lines();
    let lines = lines
        .map_while(Result::ok)
        .take_while(|line| line != "ready");
    let pids = lines.filter_map(|line| line.strip_prefix("process ")?.parse().ok());
    let all: Vec<ProcessId> = pids.map(|pid| ProcessId::of(pid).unwrap()).collect();
    weir.kill().unwrap();
    weir.wait().unwrap();
    assert_eq!(all.len(), 3);
    until("httpd ends after its weir", || {
        !all.iter().any(|process| process.is_alive())
    });
    assert_eq!(WorkFolder::sweep_in(&parent).len(), 1);
}
