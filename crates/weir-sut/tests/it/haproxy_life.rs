//! Begin, reload and end of the real HAProxy, and what can go wrong with them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use weir_model::study::ProxyRole;
use weir_parameters::Catalog;
use weir_probe::ProcessId;
use weir_sut::{Configuration, Haproxy, Launch, Proxy, RunningProxy, Site, SutError, WorkFolder};

use crate::haproxy::{haproxy, start, stock_with};
use crate::support::{Origin, executable, free_address, get, launcher, shared_folder, until};

const ORIGIN: &str = "127.0.0.1:9";

fn write(folder: &WorkFolder, changes: &[(&str, &str)], listen: SocketAddr) -> Configuration {
    let role = ProxyRole::ReverseProxy;
    let site = Site::new(&role, listen, Some(ORIGIN.parse().expect("an address")));
    haproxy()
        .write(
            &folder.prefix("arm"),
            &stock_with(changes),
            &site,
            &Catalog::builtin(),
        )
        .expect("the configuration can be written")
}

fn start_one(configuration: &Configuration) -> Result<RunningProxy, SutError> {
    weir_sut::start(&haproxy(), configuration, &launcher(), &Launch::default())
}

fn processes(proxy: &RunningProxy) -> Vec<ProcessId> {
    let pids = proxy.worker_pids().into_iter().chain([proxy.master_pid()]);
    pids.map(|pid| ProcessId::of(pid).expect("it runs"))
        .collect()
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process number"), Signal::KILL).expect("it is this test's");
}

/// An origin that answers when it is told to.
struct Slow {
    address: SocketAddr,
    asked: mpsc::Receiver<()>,
    answer: mpsc::Sender<()>,
}

impl Slow {
    /// For one request.
    fn start() -> Slow {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback works");
        let address = listener.local_addr().expect("loopback works");
        let ((say_asked, asked), (answer, may_answer)) = (mpsc::channel(), mpsc::channel());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().ok()?;
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).ok()?;
            say_asked.send(()).ok()?;
            may_answer.recv().ok()?;
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate";
            stream.write_all(response).ok()
        });
        Slow {
            address,
            asked,
            answer,
        }
    }
}

fn ask(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("loopback works");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("loopback works");
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        .expect("loopback works");
    stream
}

fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("loopback works");
    text
}

#[test]
fn stopping_or_dropping_leaves_no_process() {
    let stopped = start(&[], ORIGIN.parse().unwrap());
    let dropped = start(
        &[("nbthread", "2"), ("shards", "2")],
        ORIGIN.parse().unwrap(),
    );
    let mut all = processes(&stopped.proxy);
    all.extend(processes(&dropped.proxy));
    assert!(all.len() == 4 && all.iter().all(|process| process.is_alive()));
    stopped.proxy.stop();
    drop(dropped.proxy);
    // Reaped, too: a zombie would still have its number.
    let is_gone = |process: &ProcessId| ProcessId::of(process.pid).ok() != Some(*process);
    assert!(all.iter().all(is_gone));
}

#[test]
fn a_request_in_flight_is_answered_before_a_graceful_end() {
    let origin = Slow::start();
    let arm = start(&[], origin.address);
    let address = arm.proxy.address();
    let client = ask(address);
    origin.asked.recv_timeout(Duration::from_secs(20)).unwrap();
    let (proxy, graceful) = (arm.proxy, haproxy().graceful());
    let drained = std::thread::spawn(move || proxy.drain(graceful, Duration::from_secs(20)));
    until("it accepts no more", || {
        TcpStream::connect(address).is_err()
    });
    origin.answer.send(()).unwrap();
    assert!(rest(client).ends_with("late"));
    assert!(drained.join().unwrap(), "it ended by itself");
}

#[test]
fn a_reload_puts_a_changed_file_into_force_and_loses_no_request() {
    let origin = Slow::start();
    let mut arm = start(&[("maxconn", "500")], origin.address);
    let former = processes(&arm.proxy);
    let client = ask(arm.proxy.address());
    origin.asked.recv_timeout(Duration::from_secs(20)).unwrap();

    let next = Origin::start();
    let file = arm.configuration.file();
    let text = fs::read_to_string(&file).unwrap();
    let (old, new) = (origin.address.to_string(), next.address.to_string());
    fs::write(
        &file,
        text.replace("maxconn 500", "maxconn 501")
            .replace(&old, &new),
    )
    .unwrap();
    haproxy()
        .reload(&arm.configuration, &mut arm.proxy)
        .unwrap();

    assert!(
        get(arm.proxy.address(), "/").ends_with("hello"),
        "by the new origin"
    );
    let effective = haproxy()
        .effective(&arm.configuration, Some(&arm.proxy), &Catalog::builtin())
        .unwrap();
    assert_eq!(effective.levels["maxconn"], "501");
    origin.answer.send(()).unwrap();
    assert!(rest(client).ends_with("late"), "by the former worker");

    // The former worker leaves, and that is no death.
    let (worker, master) = (former[0], former[1]);
    assert_eq!(arm.proxy.master_pid(), master.pid);
    assert_ne!(arm.proxy.worker_pids(), [worker.pid]);
    until("the former worker ends", || !worker.is_alive());
    arm.proxy.alive().unwrap();
    let all = processes(&arm.proxy);
    arm.proxy.stop();
    assert!(!all.iter().any(|process| process.is_alive()));
}

#[test]
fn all_workers_that_leave_may_leave_however_many_reloads_there_are() {
    let origin = Slow::start();
    let mut arm = start(&[], origin.address);
    let mut former = processes(&arm.proxy)[..1].to_vec();
    let client = ask(arm.proxy.address());
    origin.asked.recv_timeout(Duration::from_secs(20)).unwrap();
    for _ in 0..2 {
        haproxy()
            .reload(&arm.configuration, &mut arm.proxy)
            .unwrap();
        assert!(former[0].is_alive(), "it has a request in flight");
        let workers = arm.proxy.worker_pids();
        assert_eq!(workers.len(), 1, "{workers:?} besides {former:?}");
        former.push(ProcessId::of(workers[0]).unwrap());
    }
    let last = former.pop().unwrap();
    origin.answer.send(()).unwrap();
    assert!(rest(client).ends_with("late"));
    until("the former workers end", || {
        !former.iter().any(|worker| worker.is_alive())
    });
    arm.proxy.alive().unwrap();
    assert!(last.is_alive());
}

#[test]
fn a_reload_of_a_bad_file_is_refused_and_nothing_changes() {
    let origin = Origin::start();
    let mut arm = start(&[], origin.address);
    let file = arm.configuration.file();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}    nonsense here\n")).unwrap();
    let before = arm.proxy.worker_pids();
    let error = haproxy()
        .reload(&arm.configuration, &mut arm.proxy)
        .unwrap_err();
    assert!(
        matches!(&error, SutError::Refused { words, .. } if words.contains("'nonsense'")),
        "{error}"
    );
    arm.proxy.alive().unwrap();
    assert_eq!(arm.proxy.worker_pids(), before);
    assert!(get(arm.proxy.address(), "/").ends_with("hello"));
}

/// HAProxy listens with SO_REUSEPORT when it is left to itself, and would share the port with another
/// HAProxy of the same user.
#[test]
fn a_port_that_is_taken_is_never_shared() {
    let origin = Origin::start();
    let sharing = start(&[("nbthread", "2"), ("shards", "2")], origin.address);
    let alone = start(&[], origin.address);
    // Somebody who accepts, so that a mere connection would pass for a proxy that is ready.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = WorkFolder::create().unwrap();
    for address in [
        sharing.proxy.address(),
        alone.proxy.address(),
        other.local_addr().unwrap(),
    ] {
        for changes in [&[][..], &[("nbthread", "2"), ("shards", "2")]] {
            let configuration = write(&folder, changes, address);
            let error = start_one(&configuration).unwrap_err();
            let SutError::PortTaken { words, .. } = &error else {
                panic!("{error}");
            };
            let own = format!("cannot bind socket (Address already in use) for [{address}]");
            assert!(words.contains(&own) || !changes.is_empty(), "{words}");
            assert!(error.hint().unwrap().contains(&address.port().to_string()));
        }
    }
    // Whoever was there is alone there still.
    let asked = || haproxy().counters(&alone.configuration).unwrap()["frontend.hrsp_2xx"];
    let before = asked();
    for _ in 0..10 {
        assert!(get(alone.proxy.address(), "/").ends_with("hello"));
    }
    // The last may be counted a moment after its client has the response.
    until("all are counted", || asked() - before >= 10);
    assert_eq!(asked() - before, 10);
}

#[test]
fn a_worker_or_master_that_dies_is_noticed_and_takes_the_other_along() {
    for of_worker in [true, false] {
        let mut arm = start(&[], ORIGIN.parse().unwrap());
        arm.proxy.alive().unwrap();
        let all = processes(&arm.proxy);
        kill(match of_worker {
            true => arm.proxy.worker_pids()[0],
            false => arm.proxy.master_pid(),
        });
        until("it is missed", || arm.proxy.alive().is_err());
        // Which of the two is missed first is for the kernel to say.
        let died = arm.proxy.alive().unwrap_err();
        assert!(matches!(died, SutError::Died { .. }), "{died}");
        until("none is left", || {
            !all.iter().any(|process| process.is_alive())
        });
        if of_worker {
            let words = fs::read_to_string(arm.configuration.output()).unwrap();
            assert!(words.contains("exited with code 137 (Killed)"), "{words}");
        }
    }
}

#[test]
fn remains_of_an_earlier_run_are_no_obstacle() {
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &[], free_address());
    let socket = configuration.prefix().join("run/admin.sock");
    // Nobody listens there any more.
    drop(UnixListener::bind(&socket).unwrap());
    fs::write(configuration.prefix().join("run/haproxy.pid"), "1\n").unwrap();
    let proxy = start_one(&configuration).unwrap();
    assert!(!haproxy().counters(&configuration).unwrap().is_empty());
    kill(proxy.master_pid());
    drop(proxy);
    assert!(socket.exists(), "a killed proxy leaves its socket");
    // Its port may have been taken meanwhile by whoever runs beside this.
    let configuration = write(&folder, &[], free_address());
    let proxy = start_one(&configuration).unwrap();
    proxy.stop();
}

#[test]
fn a_proxy_that_ends_at_once_or_listens_late_or_never_is_told_apart() {
    let folder = WorkFolder::create().unwrap();
    let script = folder.prefix("haproxy");
    let real = haproxy().program().to_owned();
    let version = haproxy()
        .version()
        .trim_start_matches("haproxy/")
        .to_owned();
    let stands_in = |does: &str| {
        let text = format!(
            "#!/bin/sh\nif [ \"$1\" = -v ]; then echo 'HAProxy version {version} x'; exit; fi\n{does}\n"
        );
        executable(&script, &text);
        Haproxy::find(Some(Path::new(&script))).unwrap()
    };
    let run = |program: &Haproxy| {
        let configuration = write(&folder, &[], free_address());
        weir_sut::start(program, &configuration, &launcher(), &Launch::default())
    };

    let error = run(&stands_in("echo some trouble >&2; exit 3")).unwrap_err();
    assert!(
        matches!(&error, SutError::NotStarted { words, status, .. }
            if words == "some trouble" && status.contains('3')),
        "{error}"
    );
    let late = run(&stands_in(&format!(
        "sleep 0.5; exec {} \"$@\"",
        real.display()
    )))
    .unwrap();
    late.stop();
    let error = run(&stands_in("echo waiting; exec sleep 60")).unwrap_err();
    assert!(matches!(&error, SutError::NotListening { .. }), "{error}");
}

/// Says to [`is_a_weir_that_will_be_killed`] where it is to work.
const FOLDER: &str = "WEIR_TEST_DOOMED_HAPROXY";

/// Not a test by itself: a weir that starts HAProxy, has it read its configuration again, tells the
/// numbers of its processes, and waits to be killed.
#[test]
fn is_a_weir_that_will_be_killed() {
    let Some(parent) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = WorkFolder::create_in(Path::new(&parent)).unwrap();
    let configuration = write(&folder, &[], free_address());
    let mut proxy = start_one(&configuration).unwrap();
    haproxy().reload(&configuration, &mut proxy).unwrap();
    for process in processes(&proxy) {
        println!("\nprocess {}", process.pid);
    }
    println!("\nready");
    std::thread::sleep(Duration::from_secs(600));
}

/// The master executes itself again and again, and is tied to its weir all the same.
#[test]
fn a_killed_weir_takes_its_proxy_along() {
    let work = WorkFolder::create().unwrap();
    let parent = shared_folder(&work);
    let mut weir = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "haproxy_life::is_a_weir_that_will_be_killed",
            "--nocapture",
        ])
        .env(FOLDER, &parent)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(weir.stdout.take().unwrap()).lines();
    let lines = lines
        .map_while(Result::ok)
        .take_while(|line| line != "ready");
    let all: Vec<ProcessId> = lines
        .filter_map(|line| line.strip_prefix("process ")?.parse().ok())
        .map(|pid| ProcessId::of(pid).unwrap())
        .collect();
    weir.kill().unwrap();
    weir.wait().unwrap();
    assert_eq!(all.len(), 2, "a master and a worker");
    until("the proxy ends after its weir", || {
        !all.iter().any(|process| process.is_alive())
    });
    assert_eq!(WorkFolder::sweep_in(&parent).len(), 1);
}
