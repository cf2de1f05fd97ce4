//! Tests of `weir agent`, which serves a weir on another host, and of its copy on that host.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use weir_agent::frame;
use weir_agent::hello::{self, PROTOCOL};
use weir_testkit::program::{HasAll, wait_until, weir};
use weir_testkit::ssh::Host;

fn start() -> Child {
    weir(["agent"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn end(mut agent: Child) -> (Option<i32>, String) {
    drop(agent.stdin.take());
    wait_until("the agent's end", || agent.try_wait().is_ok_and(|status| status.is_some()));
    let output = agent.wait_with_output().expect("it has ended");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), words)
}

#[test]
fn it_says_hello_and_ends_with_its_input() {
    let mut agent = start();
    let mut reader = agent.stdout.take().expect("it is a pipe");
    let mut writer = agent.stdin.take().expect("it is a pipe");
    let hello = hello::greet(&mut reader, &mut writer, "test").expect("it greets");
    assert!(hello.weir.starts_with(env!("CARGO_PKG_VERSION")));
    drop(writer);
    assert_eq!(end(agent), (Some(0), String::new()));
}

#[test]
fn it_refuses_another_version_and_what_is_no_weir() {
    let protocol = PROTOCOL + 1;
    let later = json!({"magic": "weir-agent", "protocol": protocol, "weir": "9"});
    let mut agent = start();
    let writer = agent.stdin.as_mut().expect("it is a pipe");
    frame::write(writer, &later).expect("it listens");
    let (code, words) = end(agent);
    assert_eq!(code, Some(1));
    words.has(&format!("version {protocol}"));

    // Nobody at all, which is an error too: an agent is of no use by itself.
    let (code, words) = end(start());
    assert_eq!(code, Some(1));
    assert!(words.starts_with("weir: "), "{words}");
}

#[test]
fn it_copies_itself_to_a_host_that_ssh_reaches() {
    let Some(host) = Host::start() else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_weir"));
    for (connection, logins) in [("first", 3), ("second", 4)] {
        let begun = Instant::now();
        let mut connected = host.connect(program).expect("weir is copied and runs");
        eprintln!("the {connection} connection took {:?}", begun.elapsed());
        assert_eq!(host.logins(), logins, "the {connection} connection");
        drop(connected.writer);
        let status = connected.session.end(Duration::from_secs(30));
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
        assert_eq!(connected.session.words(), "");
    }
}
