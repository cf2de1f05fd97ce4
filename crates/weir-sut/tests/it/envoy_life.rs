//! Begin and end of Envoy: ports, programs that are not what they should be, deaths, and what is left.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use weir_model::study::Settings;
use weir_parameters::Catalog;
use weir_probe::ProcessId;
use weir_sut::{Envoy, Launch, Proxy, RunningProxy, SutError, WorkFolder};

use crate::envoy::{envoy, settings, start, write};
use crate::support::{Origin, executable, free_address, get, launcher, until};

fn launch(configuration: &weir_sut::Configuration) -> Result<RunningProxy, SutError> {
    weir_sut::start(&envoy(), configuration, &launcher(), &Launch::default())
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process number"), Signal::KILL).expect("it is this test's");
}

#[test]
fn stopping_or_dropping_leaves_no_process() {
    let origin = Origin::start();
    let stopped = start(&Settings::new(), origin.address, &Launch::default());
    let dropped = start(&Settings::new(), origin.address, &Launch::default());
    let pids = [&stopped, &dropped].map(|arm| arm.proxy.master_pid());
    let all = pids.map(|pid| ProcessId::of(pid).unwrap());
    assert!(stopped.proxy.worker_pids().is_empty(), "it has threads");
    stopped.proxy.stop();
    drop(dropped);
    // Reaped, too: a zombie would still have its number.
    let is_gone = |process: &ProcessId| ProcessId::of(process.pid).ok() != Some(*process);
    assert!(all.iter().all(is_gone));
}

#[test]
fn it_ends_with_the_thread_that_started_it() {
    let origin = Origin::start();
    let address = origin.address;
    let thread = std::thread::spawn(move || start(&Settings::new(), address, &Launch::default()));
    let mut arm = thread.join().unwrap();
    until("Envoy follows its thread", || arm.proxy.alive().is_err());
}

#[test]
fn a_port_that_is_taken_is_said_whoever_has_it() {
    let folder = WorkFolder::create().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let taken = |reuseport, address: SocketAddr| {
        let settings = settings(&[("reuseport", reuseport)]);
        let configuration = write(&folder, &settings, address).unwrap();
        let error = launch(&configuration).unwrap_err();
        assert!(
            matches!(&error, SutError::PortTaken { address: at, .. } if *at == address),
            "{error}"
        );
        assert!(error.hint().unwrap().contains(&address.port().to_string()));
    };
    taken("on", address);
    taken("off", address);
    // Another Envoy of the same user, with whom it would share the port.
    let origin = Origin::start();
    let arm = start(&Settings::new(), origin.address, &Launch::default());
    taken("on", arm.proxy.address());
    assert!(get(arm.proxy.address(), "/").ends_with("hello"));
}

#[test]
fn its_own_words_about_a_taken_port_are_understood() {
    // What weir's look before the start misses when the port is taken right after it: here, since the
    // file names another than weir knows.
    let folder = WorkFolder::create().unwrap();
    let settings = settings(&[("reuseport", "off")]);
    let configuration = write(&folder, &settings, free_address()).unwrap();
    let text = fs::read_to_string(configuration.file()).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let at = "/static_resources/listeners/0/address/socket_address/port_value";
    *document.pointer_mut(at).unwrap() = port.into();
    fs::write(configuration.file(), document.to_string()).unwrap();
    let error = launch(&configuration).unwrap_err();
    assert!(
        matches!(&error, SutError::PortTaken { words, .. }
            if words.contains("Address already in use")),
        "{error}"
    );
}

#[test]
fn a_death_in_the_middle_is_noticed() {
    let origin = Origin::start();
    let mut arm = start(&Settings::new(), origin.address, &Launch::default());
    arm.proxy.alive().unwrap();
    let pid = arm.proxy.master_pid();
    kill(pid);
    until("Envoy is missed", || arm.proxy.alive().is_err());
    let died = arm.proxy.alive().unwrap_err();
    assert!(
        matches!(died, SutError::Died { pid: of, .. } if of == pid),
        "{died}"
    );
    let asked = envoy().counters(&arm.configuration).unwrap_err();
    assert!(matches!(asked, SutError::Admin { .. }), "{asked}");
}

#[test]
fn what_an_earlier_run_left_in_the_prefix_does_not_matter() {
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &Settings::new(), free_address()).unwrap();
    let first = launch(&configuration).unwrap();
    kill(first.master_pid());
    drop(first);
    assert!(configuration.prefix().join("run/admin.sock").exists());
    let mut second = launch(&configuration).unwrap();
    second.alive().unwrap();
    assert!(envoy().counters(&configuration).is_ok());
}

/// A program that answers as Envoy when it is asked its version, and else does as the script says.
fn pretender(folder: &WorkFolder, script: &str) -> Envoy {
    let path: PathBuf = folder.prefix("pretender");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" != --version ] || {{ echo 'envoy  version: 0/1.40.0/Clean'; exit; }}\n{script}\n"
    );
    executable(&path, &text);
    Envoy::find(Some(&path)).expect("it says that it is Envoy")
}

#[test]
fn a_crash_at_the_start_is_told_with_its_last_words() {
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &Settings::new(), free_address()).unwrap();
    let crashing = pretender(&folder, "echo '[2026][critical] out of luck' >&2; exit 3");
    let error = weir_sut::start(&crashing, &configuration, &launcher(), &Launch::default());
    assert!(
        matches!(&error, Err(SutError::NotStarted { words, status, .. })
            if words.contains("out of luck") && status.contains('3')),
        "{error:?}"
    );
}

#[test]
fn a_late_listener_is_waited_for() {
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &Settings::new(), free_address()).unwrap();
    let real = envoy().program().display().to_string();
    let late = pretender(&folder, &format!("sleep 1; exec {real} \"$@\""));
    let mut proxy =
        weir_sut::start(&late, &configuration, &launcher(), &Launch::default()).unwrap();
    proxy.alive().unwrap();
    let catalog = Catalog::builtin();
    assert!(
        late.effective(&configuration, Some(&proxy), &catalog)
            .is_ok()
    );
}

#[test]
fn who_never_listens_is_given_up_after_ten_seconds_and_ended() {
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &Settings::new(), free_address()).unwrap();
    let silent = pretender(&folder, "echo $$ > run/pid; exec sleep 600");
    let error = weir_sut::start(&silent, &configuration, &launcher(), &Launch::default());
    assert!(
        matches!(error, Err(SutError::NotListening { seconds: 10, .. })),
        "{error:?}"
    );
    let pid = fs::read_to_string(configuration.prefix().join("run/pid")).unwrap();
    assert!(ProcessId::of(pid.trim().parse().unwrap()).is_err());
}

/// Somebody accepts at the address before Envoy is there, which would share it: a mere connection is
/// not taken for readiness.
#[test]
fn a_listener_of_somebody_else_s_is_not_taken_for_envoy() {
    let folder = WorkFolder::create().unwrap();
    let configuration = write(&folder, &Settings::new(), free_address()).unwrap();
    let silent = pretender(&folder, "touch run/started; exec sleep 600");
    let started = configuration.prefix().join("run/started");
    std::thread::scope(|scope| {
        // The listener is open until the thread is joined.
        let other = scope.spawn(|| {
            until("the program was started", || started.exists());
            TcpListener::bind(configuration.listen()).unwrap()
        });
        let error = weir_sut::start(&silent, &configuration, &launcher(), &Launch::default());
        assert!(
            matches!(error, Err(SutError::NotListening { .. })),
            "{error:?}"
        );
        other.join().unwrap();
    });
}
