//! Begin, reload and end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use weir_model::study::ProxyRole;
use weir_parameters::Catalog;
use weir_probe::ProcessId;
use weir_sut::{
    Caddy, Certificate, Configuration, Launch, Proxy, RunningProxy, Site, SutError, TlsListener,
    WorkFolder,
};

use super::settings::impostor;
use super::{Client, FILES, Gate, ask_aside, caddy, start, start_proxy, stock_with};
use crate::support::{free_address, get, launcher, shared_folder, until};

fn write(prefix: &Path, listen: SocketAddr, tls: Option<TlsListener<'_>>) -> Configuration {
    let site = Site {
        tls,
        ..Site::new(&FILES, listen, None)
    };
    caddy()
        .write(prefix, &stock_with(&[]), &site, &Catalog::builtin())
        .expect("the configuration can be written")
}

fn start_with(configuration: &Configuration) -> Result<RunningProxy, SutError> {
    weir_sut::start(&caddy(), configuration, &launcher(), &Launch::default())
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process number"), Signal::KILL).expect("it is this test's");
}

#[test]
fn stopping_or_dropping_it_leaves_no_process_even_with_clients_connected() {
    let stopped = start(&[], &FILES, None);
    let dropped = start(&[], &FILES, None);
    let mut clients = [&stopped, &dropped].map(|arm| Client::connect(arm.proxy.address()));
    for client in &mut clients {
        client.get("/").unwrap();
    }
    let pids = [&stopped, &dropped].map(|arm| arm.proxy.master_pid());
    let all = pids.map(|pid| ProcessId::of(pid).unwrap());
    assert!(stopped.proxy.worker_pids().is_empty(), "it is one process");
    stopped.proxy.stop();
    drop(dropped.proxy);
    assert!(
        all.iter()
            .all(|process| ProcessId::of(process.pid).ok() != Some(*process))
    );
    for client in &mut clients {
        assert!(client.reads_to_the_end(), "in order");
    }
}

#[test]
fn a_port_that_is_taken_is_said_whoever_has_it() {
    let folder = WorkFolder::create().unwrap();
    let is_taken = |error: &SutError, address: SocketAddr| matches!(error, SutError::PortTaken { address: taken, .. } if *taken == address);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let error = start_with(&write(&folder.prefix("a"), address, None)).unwrap_err();
    assert!(is_taken(&error, address), "{error}");

    // One that would share it, as Caddy would, too: half the connections would go astray.
    let first = start(&[], &FILES, None);
    let address = first.proxy.address();
    let error = start_with(&write(&folder.prefix("b"), address, None)).unwrap_err();
    assert!(is_taken(&error, address), "{error}");
    for _ in 0..8 {
        assert!(get(address, "/").starts_with("HTTP/1.1 200 OK\r\n"));
    }

    let certificate = Certificate::make(folder.path(), "weir.test").unwrap();
    let tls = |listen| TlsListener {
        listen,
        certificate: &certificate,
    };
    let configuration = write(&folder.prefix("c"), free_address(), Some(tls(address)));
    let error = start_with(&configuration).unwrap_err();
    assert!(is_taken(&error, address), "{error}");

    // Of HTTP/3, which nobody but Caddy looks at: its own words. The port's TCP may be another test's.
    let said_of_udp = || {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listen = udp.local_addr().unwrap();
        let configuration = write(&folder.prefix("d"), free_address(), Some(tls(listen)));
        match start_with(&configuration).unwrap_err() {
            SutError::PortTaken { words, .. } => words,
            other => panic!("{other}"),
        }
    };
    let mut words = (0..10).map(|_| said_of_udp());
    let is_caddys = |words: &String| words.contains("bind: address already in use");
    assert!(words.any(|words| is_caddys(&words)), "in its own words");
}

#[test]
fn a_reload_puts_a_changed_file_into_force_and_loses_no_request() {
    let origin = Gate::start();
    let mut arm = start_proxy(&[("keepalive_timeout", "60s")], &origin);
    let pid = arm.proxy.master_pid();
    let held = ask_aside(arm.proxy.address(), "/held");
    until("a request is at the origin", || origin.held() == 1);
    for level in ["61s", "62s"] {
        let file = arm.configuration.file();
        let text = fs::read_to_string(&file).unwrap();
        let idle = text.find("\"idle_timeout\"").unwrap();
        let end = idle + text[idle..].find(',').unwrap();
        let changed = format!("\"idle_timeout\": \"{level}\"");
        fs::write(&file, text.replace(&text[idle..end], &changed)).unwrap();
        caddy().reload(&arm.configuration, &mut arm.proxy).unwrap();
        let effective = caddy()
            .effective(&arm.configuration, Some(&arm.proxy), &Catalog::builtin())
            .unwrap();
        assert_eq!(effective.levels["keepalive_timeout"], level);
        assert!(get(arm.proxy.address(), "/").starts_with("HTTP/1.1 200 OK\r\n"));
    }
    origin.open();
    let (head, _) = held.join().unwrap().expect("it is answered");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!(arm.proxy.master_pid(), pid);
    arm.proxy.alive().unwrap();
    assert!(caddy().counters(&arm.configuration).is_ok());

    fs::write(arm.configuration.file(), "{\"apps\": {\"http\": 5}}").unwrap();
    let error = caddy()
        .reload(&arm.configuration, &mut arm.proxy)
        .unwrap_err();
    assert!(matches!(error, SutError::Refused { .. }), "{error}");
    let response = get(arm.proxy.address(), "/");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "it goes on");
}

#[test]
fn requests_in_flight_are_answered_when_it_is_ended_in_order() {
    let origin = Gate::start();
    let arm = start_proxy(&[], &origin);
    let held = ask_aside(arm.proxy.address(), "/held");
    until("a request is at the origin", || origin.held() == 1);
    let address = arm.proxy.address();
    let ended = std::thread::scope(|scope| {
        let proxy = arm.proxy;
        let drained = scope.spawn(|| proxy.drain(caddy().graceful(), Duration::from_secs(20)));
        until("it accepts no more", || {
            std::net::TcpStream::connect(address).is_err()
        });
        origin.open();
        drained.join().unwrap()
    });
    let (head, _) = held.join().unwrap().expect("it is answered");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(ended, "by itself");
}

#[test]
fn a_request_that_never_ends_does_not_keep_it_for_ever() {
    let origin = Gate::start();
    let arm = start_proxy(&[("grace_period", "50ms")], &origin);
    let held = ask_aside(arm.proxy.address(), "/held");
    until("a request is at the origin", || origin.held() == 1);
    assert!(arm.proxy.drain(caddy().graceful(), Duration::from_secs(20)));
    let answer = held.join().unwrap();
    assert!(answer.is_none_or(|(head, _)| !head.contains(" 200 ")));
}

#[test]
fn one_that_dies_is_noticed_and_its_socket_does_not_keep_the_next_from_starting() {
    let mut arm = start(&[], &FILES, None);
    arm.proxy.alive().unwrap();
    kill(arm.proxy.master_pid());
    until("it is missed", || arm.proxy.alive().is_err());
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
    assert!(matches!(
        caddy().counters(&arm.configuration),
        Err(SutError::Admin { .. })
    ));
    assert!(arm.configuration.prefix().join("run/admin.sock").exists());
    arm.proxy.stop();
    let again = start_with(&arm.configuration).unwrap();
    assert!(get(again.address(), "/").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(caddy().counters(&arm.configuration).is_ok());
}

#[test]
fn a_prefix_longer_than_an_address_of_a_socket_is_fine() {
    let folder = WorkFolder::create().unwrap();
    let mut parent: PathBuf = folder.prefix("long");
    while parent.as_os_str().len() < 200 {
        parent = parent.join("a-folder-with-a-name-that-is-rather-long");
    }
    fs::create_dir_all(&parent).unwrap();
    let configuration = write(&parent.join("arm"), free_address(), None);
    let proxy = start_with(&configuration).unwrap();
    let effective = caddy().effective(&configuration, Some(&proxy), &Catalog::builtin());
    assert!(effective.is_ok());
}

/// Starts what answers as Caddy does until it is to run.
fn start_impostor(script: &str) -> Result<RunningProxy, SutError> {
    let folder = WorkFolder::create().expect("temporary files can be written");
    let program = Caddy::find(Some(&impostor(&folder, script))).expect("it looks like one");
    let configuration = write(&folder.prefix("arm"), free_address(), None);
    let started = weir_sut::start(&program, &configuration, &launcher(), &Launch::default());
    // Asked while its folder is there.
    started.inspect(|proxy| {
        assert!(get(proxy.address(), "/").starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(caddy().counters(&configuration).is_ok());
    })
}

#[test]
fn one_that_crashes_listens_late_or_never_is_told_apart() {
    let error = start_impostor("echo of my own accord >&2; exit 3").unwrap_err();
    assert!(
        matches!(&error, SutError::NotStarted { words, status, .. }
            if words.ends_with("of my own accord") && status.contains('3')),
        "{error}"
    );
    let real = caddy();
    let real = real.program().display();
    start_impostor(&format!("sleep 0.5; exec {real} \"$@\"")).unwrap();
    let error = start_impostor("echo waiting; exec sleep 60").unwrap_err();
    assert!(
        matches!(&error, SutError::NotListening { words, .. } if words.ends_with("waiting")),
        "{error}"
    );
}

/// Says to [`is_a_weir_that_will_be_killed`] where.
const PARENT: &str = "WEIR_TEST_DOOMED_WITH_CADDY";

/// Not a test by itself: a weir that starts a Caddy in the folder named by the environment, tells its
/// number, and waits to be killed.
#[test]
fn is_a_weir_that_will_be_killed() {
    let Some(parent) = std::env::var_os(PARENT) else {
        return;
    };
    let folder = WorkFolder::create_in(Path::new(&parent)).unwrap();
    let configuration = write(&folder.prefix("arm"), free_address(), None);
    let proxy = start_with(&configuration).unwrap();
    println!("\nprocess {}", proxy.master_pid());
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_killed_weir_takes_it_along() {
    let work = WorkFolder::create().unwrap();
    let parent = shared_folder(&work);
    let mut weir = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "caddy::life::is_a_weir_that_will_be_killed",
            "--nocapture",
        ])
        .env(PARENT, &parent)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(weir.stdout.take().unwrap()).lines();
    let pid = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("process ")?.parse().ok())
        .expect("it tells the number");
    let process = ProcessId::of(pid).unwrap();
    weir.kill().unwrap();
    weir.wait().unwrap();
    until("it ends after its weir", || !process.is_alive());
    assert_eq!(WorkFolder::sweep_in(&parent).len(), 1);
}

#[test]
fn it_is_one_of_those_that_are_found_by_kind_and_serves_as_such() {
    let found = weir_sut::find(weir_model::study::ProxyKind::Caddy, None).unwrap();
    let origin = Gate::start();
    let settings = stock_with(&[]);
    let role = ProxyRole::ReverseProxy;
    let arm = crate::support::start_any(
        &*found,
        &settings,
        &role,
        Some(origin.address),
        &Launch::default(),
    );
    assert!(get(arm.proxy.address(), "/").starts_with("HTTP/1.1 200 OK\r\n"));
}
