//! Agents that start over ssh, and their end.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use weir_agent::hello::HelloError;
use weir_agent::ssh::{Problem, SshError, connect};
use weir_testkit::ssh::{Host, PATIENCE, UNCOMPRESSED, agent, exists, program, signal, wait_until};

/// Time limit for ssh to end by itself; reaching it is a failure.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn the_first_connection_copies_and_the_second_finds_it() {
    let Some(host) = Host::start() else { return };
    let weir = agent(host.folder.path(), "one");
    let mut first = host.connect(&weir).expect("the agent is copied");
    assert_eq!(first.hello.weir, "one");
    assert_eq!(first.address, Some([127, 0, 0, 1].into()));
    assert_eq!(host.logins(), 3, "asked, copied, started");
    assert_eq!(fs::read_dir(host.copies()).unwrap().count(), 1);

    let second = host.connect(&weir).expect("the agent is there");
    assert_eq!(host.logins(), 4);
    assert_eq!(fs::read_dir(host.copies()).unwrap().count(), 1);
    drop(second);

    // Its input ends, then it does.
    drop(first.writer);
    let status = first.session.end(LONG).expect("it ends by itself");
    assert!(status.success(), "{status}: {}", first.session.words());
    assert!(host.folder.path().join("one.ended").exists());
    wait_until("the end of all that was started", || host.processes().is_empty());
}

#[test]
fn the_copy_is_compressed_on_its_way_and_nothing_else_is() {
    const COMPRESSES: &str = "Enabling compression";
    let Some(host) = Host::start_with("LogLevel DEBUG1\n", "") else {
        return;
    };
    let weir = agent(host.folder.path(), "one");
    let mut destination = host.place();
    connect(&destination, &weir, "test", PATIENCE).expect("the agent is copied");
    assert_eq!(host.logged(COMPRESSES), 0, "the user does not want it");
    fs::remove_dir_all(host.copies()).unwrap();
    let logins = host.logins();
    let at = destination.options.iter().position(|word| word == UNCOMPRESSED);
    destination.options.drain(at.unwrap() - 1..=at.unwrap());
    connect(&destination, &weir, "test", PATIENCE).expect("the agent is copied");
    assert_eq!(host.logins() - logins, 3);
    let compressed = host.logged(COMPRESSES);
    // sshd says it more than once of a session; of these three all are compressed.
    fs::remove_dir_all(host.copies()).unwrap();
    destination.options.push("-oCompression=yes".to_owned());
    connect(&destination, &weir, "test", PATIENCE).expect("the agent is copied");
    assert_eq!(host.logged(COMPRESSES) - compressed, 3 * compressed, "one of three was compressed");
    assert!(compressed > 0);
}

#[test]
fn another_weir_is_copied_again_and_old_ones_are_removed() {
    let Some(host) = Host::start() else { return };
    for name in ["one", "two", "three"] {
        let weir = agent(host.folder.path(), name);
        let connected = host.connect(&weir).expect("the agent is copied");
        assert_eq!(connected.hello.weir, name);
    }
    assert_eq!(fs::read_dir(host.copies()).unwrap().count(), 2);
}

#[test]
fn a_connection_that_the_user_shares_is_used_and_left_open() {
    let Some(host) = Host::start() else { return };
    let mut destination = host.place();
    let socket = format!("ControlPath={}", host.folder.path().join("mux").display());
    for option in ["ControlMaster=auto", "ControlPersist=30", &socket] {
        destination.options.extend(["-o".to_owned(), option.to_owned()]);
    }
    let weir = agent(host.folder.path(), "one");
    for _ in 0..2 {
        let mut connected = connect(&destination, &weir, "test", PATIENCE).expect("it is there");
        drop(connected.writer);
        let status = connected.session.end(LONG).expect("it ends by itself");
        assert!(status.success(), "{status}: {}", connected.session.words());
    }
    assert_eq!(host.logins(), 1);
    let exit = Command::new("ssh")
        .args(&destination.options)
        .args(["-O", "exit", &destination.host])
        .output();
    assert!(exit.is_ok_and(|output| output.status.success()));
}

#[test]
fn when_ssh_is_killed_the_agents_input_ends() {
    let Some(host) = Host::start() else { return };
    let weir = agent(host.folder.path(), "one");
    let mut connected = host.connect(&weir).expect("the agent is copied");
    signal(connected.session.pid(), Signal::KILL);
    let mut remaining = Vec::new();
    connected.reader.read_to_end(&mut remaining).expect("it ends");
    assert!(matches!(connected.session.lost(), SshError::Ended { .. }));
    assert!(!exists(connected.session.pid()), "no zombie is left");
    let ended = host.folder.path().join("one.ended");
    wait_until("the agent's end", || ended.exists());
    wait_until("the end of all that was started", || host.processes().is_empty());
}

#[test]
fn a_host_that_stops_answering_is_noticed() {
    let Some(host) = Host::start() else { return };
    let weir = agent(host.folder.path(), "one");
    let mut connected = host.connect(&weir).expect("the agent is copied");
    let mut stopped = host.processes();
    for &pid in &stopped {
        signal(pid, Signal::STOP);
    }
    // Nobody speaks; ssh notices by itself.
    let mut remaining = Vec::new();
    connected.reader.read_to_end(&mut remaining).expect("it ends");
    let error = connected.session.lost();
    stopped.retain(|&pid| exists(pid));
    for pid in stopped {
        signal(pid, Signal::CONT);
    }
    assert!(matches!(error, SshError::Connection { problem: Problem::Lost, .. }), "{error}");
    wait_until("the agent's end", || host.folder.path().join("one.ended").exists());
}

#[test]
fn an_ssh_that_does_not_end_is_killed() {
    let Some(host) = Host::start() else { return };
    let weir = agent(host.folder.path(), "one");
    let mut connected = host.connect(&weir).expect("the agent is copied");
    signal(connected.session.pid(), Signal::STOP);
    assert_eq!(connected.session.end(Duration::from_millis(10)), None);
    assert!(!exists(connected.session.pid()), "no zombie is left");
}

#[test]
fn ctrl_c_does_not_reach_ssh() {
    let Some(host) = Host::start() else { return };
    let weir = agent(host.folder.path(), "one");
    let connected = host.connect(&weir).expect("the agent is copied");
    let pid = rustix::process::Pid::from_raw(connected.session.pid().cast_signed());
    let group = rustix::process::getpgid(pid).expect("it runs");
    assert_ne!(group, rustix::process::getpgrp(), "signals of the terminal go to groups");
}

#[test]
fn an_installed_agent_is_run_where_it_is() {
    let Some(host) = Host::start() else { return };
    let installed = agent(host.folder.path(), "installed");
    let mut destination = host.place();
    destination.remote = Some(installed);
    let nowhere = PathBuf::from("/nowhere");
    let connected = connect(&destination, &nowhere, "test", PATIENCE).expect("it is there");
    assert_eq!(connected.hello.weir, "installed");
    assert!(!host.copies().exists(), "nothing is copied");

    destination.remote = Some(PathBuf::from("/nowhere/weir"));
    let error = connect(&destination, &nowhere, "test", PATIENCE).expect_err("it is not there");
    assert!(matches!(error, SshError::CannotRun { .. }), "{error}");
    assert!(error.to_string().contains("/nowhere/weir"), "{error}");
}

#[test]
fn an_installed_agent_of_another_version_is_refused_with_both() {
    let Some(host) = Host::start() else { return };
    let hello = r#"{"magic":"weir-agent","protocol":99,"weir":"9.9"}"#;
    let text = format!("#!/bin/sh\nprintf '\\000\\000\\000\\{:03o}%s' '{hello}'\n", hello.len());
    let mut destination = host.place();
    destination.remote = Some(program(host.folder.path(), "later", &text));
    let error =
        connect(&destination, &PathBuf::new(), "test", PATIENCE).expect_err("it is another");
    assert!(
        matches!(&error, SshError::Greeting { source: HelloError::Version { theirs: 99, .. }, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("9.9") && error.hint().is_some(), "{error}");
}
