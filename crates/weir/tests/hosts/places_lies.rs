//! Tests of agents that lie: a process behind a real ssh passes on the messages of `weir agent`, except for one lie.
//! Each run ends with the right error, soon and in little memory, and connects to no other address.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_testkit::lan::{Lan, Like};
use weir_testkit::program::{HasAll, peak_kib, row};

/// Variable that names the lie, in the process that tells it.
const LIE: &str = "WEIR_TEST_LIE";
/// Variable with the path of its output.
const TOLD_TO: &str = "WEIR_TEST_TOLD_TO";

/// Address on weir's own host that does not belong to the run.
const PLANTED: &str = "198.51.100.1:7777";

/// A histogram of 44 bytes that claims 4 GiB of counts.
const CLAIMS: &str = "HISTE/////8AAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAAICAgI=";

/// Limit of memory in KiB: more than a run of this size takes, and far less than the lies claim.
const MEMORY: u64 = 600 << 10;

const STUDY: &str = "\
weir: 1
name: lies
question: What if an agent lies?
proxy: {kind: nginx, settings: {worker_processes: 1}}
loads:
- {name: closed, closed: true, connections: 2, duration: 2s}
arms:
- {name: keeps-origin, settings: {origin_keepalive: 8}}
blocks: {slice: 50ms, at-least: 6, instances: 1}
";

/// Lies: name, role of the agent, and words of the error.
#[rustfmt::skip]
const LIES: [(&str, &str, &[&str]); 10] = [
    ("greeting", "proxy", &["web1: the agent is weir \\u001b[2J"]),
    ("silence", "proxy", &["the agent on web1 is gone: nothing was heard of it for 10 s"]),
    ("oversized", "proxy", &["the agent on web1 is gone: a message of 4294967295 bytes is larger"]),
    ("event", "proxy", &["the agent on web1 sent an unexpected answer"]),
    ("address", "proxy", &["its proxy listens at 198.51.100.1:7777", "hint: weir sends load to the places"]),
    ("origin", "origin", &["its origin server listens at 198.51.100.1:7777"]),
    ("histogram", "generator", &["sent an unexpected answer", "counts or histograms cannot be read"]),
    ("slices", "generator", &["sent an unexpected answer: more events than can be"]),
    ("arms", "generator", &["sent an unexpected answer: an arm that the trial does not have"]),
    ("started", "generator", &["sent an unexpected answer: a load that began at another time"]),
];

#[test]
fn an_agent_that_lies_ends_the_run_and_harms_nobody() {
    if let Ok(lie) = std::env::var(LIE) {
        return tell(&lie);
    }
    let Some(lan) = Lan::of(&[Like::default()]) else {
        return;
    };
    let bound = lan.here().within(|| TcpListener::bind(PLANTED));
    let planted = bound.expect("a namespace").expect("nobody is there");
    planted.set_nonblocking(true).expect("a socket");
    for (lie, role, words) in LIES {
        row(lie);
        let agent = liar(&lan, lie);
        let places = format!("--place {role}=web1 --agent {}", agent.display());
        let mut run = lan.run(STUDY, &places);
        let (begun, mut peak) = (Instant::now(), 0);
        while run.is_alive() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it goes on");
            peak = peak.max(peak_kib(run.pid()).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(5));
        }
        let ended = run.end();
        assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
        ended.stderr.has_all(words);
        ended.stderr.has_none(&["panicked", "\x1b"]);
        assert!(peak < MEMORY, "{peak} KiB");
        let connection = planted.accept().map(|(_, from)| from);
        let is_none = connection.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(is_none, "{connection:?}");
        lan.assert_clean();
        // What was begun is not the next one's.
        let _ = fs::remove_dir_all(lan.sandbox.run_folder());
    }
}

/// Writes a program that runs this test again, as an agent. The test harness writes to standard output too, so the
/// agent's output goes through a FIFO.
fn liar(lan: &Lan, lie: &str) -> PathBuf {
    let this_test = std::env::current_exe().expect("a test knows its executable");
    let test = "places_lies::an_agent_that_lies_ends_the_run_and_harms_nobody";
    let text = format!(
        "#!/bin/sh\nfifo=$(mktemp -d)/told && mkfifo \"$fifo\" || exit 1\nexec 4<&0\n\
         {LIE}={lie} {TOLD_TO}=$fifo '{}' --exact {test} --nocapture <&4 >&2 4<&- &\n\
         exec 4<&- <\"$fifo\"\nrm -r \"${{fifo%/told}}\"\nexec cat\n",
        this_test.display()
    );
    lan.sandbox.program("liar", &text)
}

/// Passes on the messages from and to a real agent, except for the lie.
fn tell(lie: &str) {
    let fifo = std::env::var(TOLD_TO).expect("it says where");
    let mut out = File::options().write(true).open(fifo).expect("a FIFO");
    let mut agent = Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("agent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("weir starts");
    let mut hears = agent.stdin.take().expect("a pipe");
    let mut says = agent.stdout.take().expect("a pipe");
    // When the input ends, so does the agent's.
    std::thread::spawn(move || io::copy(&mut io::stdin().lock(), &mut hears));
    let mut number = 0;
    while let Some(reply) = message(&mut says) {
        // Whoever was lied to may be gone.
        if out.write_all(&falsify(lie, number, reply)).is_err() {
            break;
        }
        number += 1;
    }
    drop(out);
    drop(says);
    let _ = agent.wait();
}

/// Reads the next message of an agent.
fn message(from: &mut impl Read) -> Option<Value> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    from.read_exact(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Returns the bytes to send as the `number`-th message.
fn falsify(lie: &str, number: usize, mut reply: Value) -> Vec<u8> {
    let body = &mut reply["body"];
    match (lie, number) {
        ("greeting", 0) => {
            let version = reply["weir"].as_str().unwrap_or_default();
            reply["weir"] = format!("\x1b[2J{version}").into();
        }
        ("silence", 1..) => return Vec::new(),
        ("oversized", 1..) => return vec![0xff; 64],
        ("event", 1..) => *body = json!({"event": {}}),
        ("address", _) if body["done"]["listen"].is_string() => {
            body["done"]["listen"] = PLANTED.into();
        }
        ("origin", _) if body["done"].as_str().is_some_and(is_address) => {
            body["done"] = PLANTED.into();
        }
        ("histogram", _) if body["event"]["slice"].is_object() => {
            body["event"]["slice"]["data"]["response"] = CLAIMS.into();
        }
        ("slices", _) if body["event"]["slice"].is_object() => return frame(&reply).repeat(100),
        ("arms", _) if body["done"]["arms"].is_array() => {
            let arms = body["done"]["arms"].as_array_mut().expect("it is one");
            let first = arms.first().cloned().expect("an arm");
            arms.resize(1000, first);
        }
        ("started", _) if body["event"]["started"].is_object() => {
            body["event"]["started"]["at_ns"] = (u64::MAX / 2).into();
        }
        _ => {}
    }
    frame(&reply)
}

fn is_address(text: &str) -> bool {
    text.parse::<std::net::SocketAddr>().is_ok()
}

fn frame(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let length = u32::try_from(text.len()).expect("it was shorter");
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}
