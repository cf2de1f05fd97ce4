//! The protocol on a real server, over a pair of sockets: correct messages, incorrect ones, and silence.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use weir_agent::frame::{self, LARGEST};
use weir_agent::hello::{self, HelloError, PROTOCOL};
use weir_agent::message::{
    Alive, ArmJob, Body, End, FlowJob, HostSettingsJob, LoadJob, Log, NetworksJob, Ping, PutBack,
    Question, Renew, Reply, Request, Rows, SliceJob, Stop, WatchJob,
};
use weir_agent::server::{Options, serve};
use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::load::Arrivals;
use weir_model::quantity::CpuSet;
use weir_model::spin::Spin;
use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::Catalog;
use weir_sut::Launcher;
use weir_testkit::ssh::wait_until;

/// A server, and the client's end of its connection.
pub(crate) struct Line {
    socket: UnixStream,
    server: JoinHandle<Result<(), HelloError>>,
    next: u64,
}

fn options(silence: Option<Duration>) -> Options {
    Options {
        weir: "test".to_owned(),
        launcher: Launcher::new(PathBuf::from("/bin/false")),
        catalog: Catalog::builtin(),
        silence,
        stop: std::sync::Arc::default(),
    }
}

impl Line {
    /// Starts a server, and sends nothing yet.
    fn mute(silence: Option<Duration>) -> Line {
        let (socket, theirs) = UnixStream::pair().expect("sockets");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
        let reader = theirs.try_clone().expect("a descriptor");
        let server = std::thread::spawn(move || serve(reader, theirs, options(silence)));
        Line { socket, server, next: 1 }
    }

    pub(crate) fn greeted() -> Line {
        let mut line = Line::mute(None);
        line.greet();
        line
    }

    fn greet(&mut self) {
        let mut reader = self.socket.try_clone().expect("a descriptor");
        hello::greet(&mut reader, &mut self.socket, "test").expect("it greets");
    }

    pub(crate) fn send(&mut self, question: impl Question) -> u64 {
        let id = self.next;
        self.next += 1;
        let ask = question.ask();
        frame::write(&mut self.socket, &Request { id, ask }).expect("it listens");
        id
    }

    pub(crate) fn reply(&mut self) -> Option<Reply> {
        frame::read(&mut self.socket).expect("whole messages")
    }

    /// Reads until the end of the answer to a request; skips its events and other answers.
    pub(crate) fn end_of(&mut self, id: u64) -> Body {
        loop {
            let reply = self.reply().expect("an answer");
            if reply.id == id && !matches!(reply.body, Body::Event(_)) {
                return reply.body;
            }
        }
    }

    /// Sends a question that must fail, and returns the error text.
    #[track_caller]
    pub(crate) fn fails(&mut self, question: impl Question) -> String {
        let id = self.send(question);
        match self.end_of(id) {
            Body::Failed(failure) => failure.evidence,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn works(&mut self, question: impl Question) -> Value {
        let id = self.send(question);
        match self.end_of(id) {
            Body::Done(answer) => serde_json::from_str(answer.get()).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    /// Ends the server's input and returns the server's result.
    pub(crate) fn close(self) -> Result<(), HelloError> {
        self.socket.shutdown(Shutdown::Write).expect("it is open");
        self.ended()
    }

    fn ended(self) -> Result<(), HelloError> {
        let Line { server, .. } = self;
        wait_until("the end of the server", || server.is_finished());
        server.join().expect("it does not panic")
    }
}

fn frame_of(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, value).expect("memory");
    bytes
}

pub(crate) fn load() -> LoadJob {
    LoadJob {
        flows: vec![FlowJob {
            arm: 0,
            // The discard port: nobody listens there.
            peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 9)),
            also: Vec::new(),
            host: "a".to_owned(),
            trust: String::new(),
            spec: FlowSpec::new(1, ArrivalsSpec::Closed),
            arrivals: Arrivals::Closed,
            every_ns: None,
            trace: None,
            sources: Vec::new(),
            keeps_content: false,
        }],
        slices: vec![SliceJob { arm: 0, start: 0, measure_from: 0, end: 1_000_000 }],
        drain: Duration::from_millis(10),
        spin: Spin::OFF,
        threads: vec![None],
        descriptors: 64,
        ..LoadJob::default()
    }
}

/// Creates a watch that waits for an hour.
fn watch() -> WatchJob {
    WatchJob {
        start_ns: weir_agent::monotonic_ns(),
        times: vec![3_600_000_000_000],
        settled: Vec::new(),
        arms: vec![0],
        slots: vec![0],
        proxies: None,
        generator: None,
        origin: false,
        taken: Vec::new(),
    }
}

fn arm(slot: usize, name: &str) -> ArmJob {
    ArmJob {
        slot,
        name: name.to_owned(),
        kind: ProxyKind::Nginx,
        executable: Some("/nowhere/nginx".into()),
        role: ProxyRole::StaticFiles { size: 1 },
        settings: Settings::new(),
        own: None,
        request_log: false,
        asks: Vec::new(),
        external: None,
        launcher: None,
        address: Ipv4Addr::LOCALHOST.into(),
        tls: false,
        origin: None,
        sizes: Vec::new(),
        cpus: CpuSet::new(vec![0]).expect("a CPU"),
        nofile: 1024,
    }
}

#[test]
fn another_version_is_refused_by_the_server() {
    let mut line = Line::mute(None);
    let later = json!({"magic": "weir-agent", "protocol": PROTOCOL + 1, "weir": "9"});
    line.socket.write_all(&frame_of(&later)).unwrap();
    let error = line.ended().expect_err("it is another");
    assert!(matches!(error, HelloError::Version { theirs, .. } if theirs == PROTOCOL + 1));
}

#[test]
fn what_is_no_weir_is_refused() {
    let stranger = json!({"magic": "sftp", "protocol": PROTOCOL, "weir": "9"});
    for bytes in [
        frame_of(&stranger),
        frame_of(&json!([])),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 4],
        vec![0; 4],
    ] {
        let mut line = Line::mute(None);
        line.socket.write_all(&bytes).unwrap();
        assert!(line.close().is_err(), "{}", bytes.escape_ascii());
    }
}

/// Returns the peak memory of this process, KiB (proc_pid_status(5)).
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with("VmPeak:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.expect("a number of KiB")
}

#[test]
fn a_gibibyte_is_refused_and_costs_no_memory() {
    // Once before: threads and their heaps are there then.
    Line::greeted().close().unwrap();
    let before = peak();
    for length in [1 << 30, u32::MAX, LARGEST as u32 + 1] {
        let mut line = Line::greeted();
        line.socket.write_all(&length.to_be_bytes()).unwrap();
        // The server ends though the line stands: what follows cannot be understood.
        assert!(line.reply().is_none());
        line.ended().unwrap();
    }
    let grown = peak() - before;
    // Other tests of this process run beside; none takes as much as the largest length.
    assert!(grown < 2 << 20, "{grown} KiB");
}

#[test]
fn garbage_and_half_frames_end_it() {
    let mut garbage = frame_of(&json!({"id": 1, "ask": {"ping": null}}));
    let half = garbage[..garbage.len() - 1].to_vec();
    let last = garbage.len() - 1;
    garbage[last] = 0xff;
    for bytes in [half, garbage, frame_of(&json!({"ask": {"ping": null}})), vec![0, 0]] {
        let mut line = Line::greeted();
        line.socket.write_all(&bytes).unwrap();
        line.socket.shutdown(Shutdown::Write).unwrap();
        assert!(line.reply().is_none(), "{}", bytes.escape_ascii());
        line.ended().unwrap();
    }
}

#[test]
fn what_it_does_not_understand_is_answered_and_it_goes_on() {
    let mut line = Line::greeted();
    for (id, ask) in [
        (70, json!({"ask_of_a_newer_weir": {"x": 1}})),
        (71, json!("hover")),
        (72, json!({"renew": "first"})),
        (73, json!({"load_job": {"flows": 7}})),
        (74, json!(null)),
    ] {
        let request = json!({"id": id, "ask": ask});
        frame::write(&mut line.socket, &request).unwrap();
        match line.end_of(id) {
            Body::Failed(failure) => assert!(
                failure.evidence.contains("does not understand") && failure.hint.is_some(),
                "{failure:?}"
            ),
            other => panic!("{request}: {other:?}"),
        }
    }
    assert_eq!(line.works(Ping), json!(null));
    line.close().unwrap();
}

#[test]
fn loads_that_make_no_sense_fail_and_harm_nobody() {
    let mut line = Line::greeted();
    let right = load();
    let wrong = [
        LoadJob { flows: Vec::new(), ..right.clone() },
        LoadJob { slices: Vec::new(), ..right.clone() },
        LoadJob { threads: Vec::new(), ..right.clone() },
        LoadJob { threads: vec![Some(1 << 20), None], ..right.clone() },
        LoadJob { slices: vec![SliceJob { arm: 7, ..right.slices[0] }], ..right.clone() },
        LoadJob {
            slices: vec![
                SliceJob { start: 9, ..right.slices[0] },
                SliceJob { end: 3, ..right.slices[0] },
            ],
            ..right.clone()
        },
    ];
    for job in wrong {
        let words = line.fails(job);
        assert!(words.starts_with("a load with"), "{words}");
    }
    // And one that does, to nobody: two at once, each with its own answer.
    let ids = [0, 1].map(|_| line.send(right.clone()));
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let reply = line.reply().expect("an answer");
        match reply.body {
            Body::Event(_) => {}
            Body::Failed(failure) => {
                assert!(failure.evidence.contains("no connection"), "{failure}");
                ended.push(reply.id);
            }
            Body::Done(_) => panic!("somebody answers on the discard port"),
        }
    }
    ended.sort_unstable();
    assert_eq!(ended, ids);
    line.close().unwrap();
}

#[test]
fn jobs_that_make_no_sense_fail_and_it_goes_on() {
    let mut line = Line::greeted();
    assert!(line.fails(Renew(3)).contains("no arm in slot 3"));
    assert!(line.fails(Log(3)).contains("no arm in slot 3"));
    assert!(line.fails(End(3)).contains("no arm in slot 3"));
    let words = line.fails(arm(256, "a"));
    assert!(words.contains("256 arms can run at the same time"), "{words}");
    // A name becomes a folder's, beside what the agent keeps for itself.
    #[rustfmt::skip]
    let all = [
        "..", ".pid", ".trust.pem", "", "a/b", "../b", "/etc", "a\nb",
    ];
    for name in all {
        let words = line.fails(arm(0, name));
        assert!(words.contains("not a valid name for an arm"), "{name}: {words}");
    }
    for sources in [0, 254] {
        let networks = NetworksJob { mtu: 1500, sources };
        assert!(line.fails(networks).contains("1 to 253"));
    }
    let many = WatchJob { arms: vec![usize::MAX], ..watch() };
    assert!(line.fails(many).contains("a watch of"));
    let more = WatchJob { times: Vec::new(), ..watch() };
    assert!(line.fails(more).contains("more slices"));
    assert!(!line.fails(Rows(vec![("f".into(), "]".into())])).is_empty());
    assert_eq!(line.works(Stop(99)), json!(null));
    assert_eq!(line.works(Alive), json!(null));
    line.close().unwrap();
}

#[test]
fn settings_have_one_holder() {
    let folder = tempfile::tempdir().unwrap();
    // A folder for the journal is named in the environment: hence a process of its own.
    let executable = std::env::current_exe().unwrap();
    const INSIDE: &str = "WEIR_TEST_OF_SETTINGS";
    if std::env::var_os(INSIDE).is_none() {
        let output = std::process::Command::new(executable)
            .args(["--exact", "wire::settings_have_one_holder"])
            .env(INSIDE, "1")
            .env("WEIR_JOURNAL", folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let job = HostSettingsJob { purpose: "a test".to_owned() };
    let mut line = Line::greeted();
    line.works(job.clone());
    assert!(line.fails(job.clone()).contains("weir"), "its own journal is held");
    line.works(PutBack);
    line.works(job);
    line.close().unwrap();
}

#[test]
fn a_watch_is_stopped_and_its_number_is_its_own() {
    let mut line = Line::greeted();
    let id = line.send(watch());
    // The same number again, while it goes on.
    line.next = id;
    assert!(line.fails(watch()).contains("goes on already"));
    let stop = line.send(Stop(id));
    let mut pending = vec![id, stop];
    while !pending.is_empty() {
        let reply = line.reply().expect("an answer");
        pending.retain(|id| *id != reply.id);
    }
    line.close().unwrap();
}

#[test]
fn what_was_asked_before_the_end_of_the_input_is_answered() {
    let mut line = Line::greeted();
    let ids: Vec<u64> = (0..100)
        .map(|number| match number % 3 {
            0 => line.send(Alive),
            1 => line.send(Ping),
            _ => line.send(watch()),
        })
        .collect();
    line.socket.shutdown(Shutdown::Write).unwrap();
    let mut answered = Vec::new();
    while let Some(reply) = line.reply() {
        if !matches!(reply.body, Body::Event(_)) {
            answered.push(reply.id);
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, ids);
    line.ended().unwrap();
}

#[test]
fn a_peer_that_falls_silent_is_left() {
    let mut line = Line::mute(Some(Duration::from_secs(1)));
    line.greet();
    let id = line.send(watch());
    // The line stands, and nobody speaks: the watch ends, and so does the server.
    line.end_of(id);
    line.ended().unwrap();
    let without_greeting = Line::mute(Some(Duration::from_secs(1))).ended();
    assert!(matches!(without_greeting, Err(HelloError::Late(_))));
}

#[test]
fn a_peer_that_speaks_and_does_not_read_is_left() {
    let mut line = Line::mute(Some(Duration::from_millis(200)));
    line.greet();
    // More than any buffer between the two holds; written until nobody takes it.
    line.socket.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let ask = frame_of(&json!({"id": 1, "ask": {"clock": null}}));
    let many = ask.repeat(1 << 16);
    let _ = line.socket.write_all(&many);
    line.ended().unwrap();
}
