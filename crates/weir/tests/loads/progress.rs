//! Tests of progress output for programs: `--format jsonl`, `--progress jsonl`, SIGUSR1.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_model::load_report::LoadReport;
use weir_origin::Origin;
use weir_testkit::faulty::start_origin;
use weir_testkit::loads::Server;
use weir_testkit::program::{Ended, HasAll, Running, row, run, weir};
use weir_testkit::sandbox::Sandbox;
use weir_testkit::schema;

/// Parses lines of JSON, and checks each by docs/schemas/weir-progress-2.json.
#[track_caller]
fn parse_events(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| -> Value {
            let event =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let faults = schema::find_faults("weir-progress/2", &event);
            assert!(faults.is_empty(), "{line}\n{}", faults.join("\n"));
            event
        })
        .collect()
}

fn named<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

fn sum(intervals: &[&Value], pointer: &str) -> u64 {
    intervals
        .iter()
        .map(|event| event.pointer(pointer))
        .map(|value| value.and_then(Value::as_u64).expect("a count"))
        .sum()
}

fn load(server: &Origin, flags: &str) -> Command {
    weir(format!("load {flags} {}", server.url()).split_whitespace())
}

#[test]
fn a_load_writes_a_line_for_each_interval_and_the_result_as_the_last_one() {
    let server = start_origin();
    let mut load =
        Running::start(&mut load(&server, "--format jsonl -R 200 -c 2 -d 6s --every 2s"));
    load.wait_until("an interval", |load| !load.stdout().is_empty());
    load.signal(Signal::USR1);
    load.wait_until("the answer", |load| load.stderr().contains("So far, after "));
    // Another program's signal for another purpose does no harm.
    load.signal(Signal::USR2);
    let ended = load.end().with_code(0);
    let (lines, last) = ended.stdout.trim_end().rsplit_once('\n').expect("lines");
    let result: LoadReport = serde_json::from_str(last).expect("the result");
    let events = parse_events(lines);
    let intervals = named(&events, "interval");
    assert_eq!((intervals.len(), events.len()), (3, 3), "{lines}");
    for (interval, at) in intervals.iter().zip([0.0, 2.0, 4.0]) {
        assert_eq!(interval["at"], at);
        assert_eq!(interval["interval"]["seconds"], 2.0);
    }
    for (part, total) in [
        ("completed", result.results.counts.completed),
        ("offered", result.results.counts.offered),
        ("due", result.results.counts.due),
        ("received_bytes", result.results.counts.received_bytes),
    ] {
        assert_eq!(sum(&intervals, &format!("/interval/{part}")), total, "{part}");
        assert_eq!(intervals[2]["so_far"][part], total, "{part}");
    }
    let statuses = &intervals[2]["so_far"]["statuses"];
    assert_eq!(statuses[0]["status"], 200);
    assert_eq!(intervals[2]["so_far"]["response_time"]["max"], result.results.response_time.max);
}

#[test]
fn intervals_of_a_load_that_is_stopped_end_with_it() {
    let server = start_origin();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("soak.jsonl");
    std::fs::write(&out, "what was there before, and longer\n".repeat(100)).expect("own folder");
    let flags = format!("--format jsonl -R 100 -c 2 -d 24h --every 1m -o {}", out.display());
    let mut load = Running::start(&mut load(&server, &flags));
    load.wait_until("two seconds", |load| load.stderr().matches("of 86,400 s").count() > 0);
    load.signal(Signal::INT);
    load.end().with_code(130);
    let text = std::fs::read_to_string(&out).expect("what was written");
    let (lines, last) = text.trim_end().rsplit_once('\n').expect("lines");
    let result: LoadReport = serde_json::from_str(last).expect("the result");
    let events = parse_events(lines);
    let [interval] = &named(&events, "interval")[..] else {
        panic!("{lines}");
    };
    let seconds = interval["interval"]["seconds"].as_f64().expect("a length");
    assert!((seconds - result.phases.sustain).abs() < 1e-6, "{seconds}");
    assert_eq!(interval["interval"]["completed"], result.results.counts.completed);
}

#[test]
fn a_load_whose_lines_nobody_reads_any_more_ends() {
    let server = start_origin();
    let mut command = load(&server, "--quiet --format jsonl -R 100 -c 2 -d 1h");
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("a line");
    parse_events(&line);
    drop(out);
    let status = child.wait().expect("it ends by itself");
    assert_eq!(status.code(), Some(130));
}

/// A reader that stands still is one that has gone, but for what stays half written.
#[test]
fn a_load_waits_for_no_reader_that_stands_still() {
    let server = start_origin();
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let mkfifo = Command::new("mkfifo").arg(&pipe).status();
    assert!(mkfifo.is_ok_and(|ended| ended.success()), "mkfifo");
    let both = std::fs::File::options().read(true).write(true).open(&pipe);
    let mut full = both.expect("somebody has it open and reads nothing");
    // Waits for room until the tests have ended.
    std::thread::spawn(move || full.write_all(&[b'.'; 1 << 20]));
    let to = pipe.display();
    for (flags, code) in [
        // What is told beside a result ends nothing.
        (format!("-d 2s --progress jsonl:{to}"), 0),
        (format!("-d 1h --format jsonl -o {to}"), 130),
    ] {
        let begun = Instant::now();
        let ended = server.load(&format!("-c 1 -R 10 {flags}")).with_code(code);
        assert!(begun.elapsed() < Duration::from_secs(30), "{flags}");
        ended.stderr.has("nobody has read it for 3 s");
    }
}

#[test]
fn intervals_are_lines_for_people_too_and_quiet_loads_answer() {
    let server = start_origin();
    let ended = server.load("-R 200 -c 2 -d 2s --every 1s").with_code(0);
    ended.stderr.has_all(&["0 to 1 s: ", "1 to 2 s: ", " so far"]);
    ended.stderr.has_none(&["responses/s"]);
    let mut quiet = Running::start(&mut load(&server, "--quiet -R 200 -c 2 -d 4s"));
    // The signal would end a process that does not wait for it.
    quiet.wait_until("connections", |quiet| is_waited_for(quiet.pid()));
    quiet.signal(Signal::USR1);
    quiet.wait_until("an answer", |quiet| !quiet.stderr().is_empty());
    quiet.end().with_code(0);
}

/// Returns true if a process handles SIGUSR1 (proc_pid_status(5)).
fn is_waited_for(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (Signal::USR1.as_raw() - 1)) != 0)
}

#[test]
fn memory_stays_flat() {
    let server = start_origin();
    let mut load = Running::start(&mut load(&server, "--format jsonl -R 500 -c 4 -t 1 -d 16s"));
    let mut resident = Vec::new();
    // By the sixth, all that is used in turn has been used.
    for intervals in [6, 15] {
        load.wait_until("some intervals", |load| load.stdout().lines().count() >= intervals);
        resident.push(resident_kib(load.pid()));
    }
    load.end().with_code(0);
    // A slice has a megabyte of histograms: nine of them would show.
    assert!(resident[1] < resident[0] + 4096, "{resident:?} KiB");
}

/// Returns the resident set of a process (proc_pid_status(5)), in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    words.and_then(|kib| kib.parse().ok()).expect("a size")
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let server = start_origin();
    for (flags, words) in [
        ("-d 1s --every 0s", "whole seconds"),
        ("-d 1s --every 1500ms", "whole seconds"),
        ("-d 1s --every soon", "--every"),
        ("-d 169h", "at most 168h"),
        ("-d 1s --progress loud", "jsonl:FILE"),
        ("-d 1s --progress jsonl:/nowhere/at/all", "/nowhere/at/all"),
        ("-d 1s --progress tui", "needs a terminal"),
        ("-d 1s --progress off --quiet", "cannot be used with"),
    ] {
        row(flags);
        let url = server.url();
        let ended: Ended = run(&format!("load {flags} {url}"));
        ended.with_code(2).stderr.has(words);
    }
}

#[test]
fn events_of_a_load_are_lines_in_a_file() {
    let server = start_origin();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("progress.jsonl");
    let flags = format!("--ramp-up 3s -R 200 -c 2 -d 2s --progress jsonl:{}", out.display());
    let ended = server.load(&flags).with_code(0);
    assert_eq!(ended.stderr, "");
    let events = parse_events(&std::fs::read_to_string(&out).expect("events"));
    assert_eq!(events[0]["event"], "load_begun");
    assert_eq!(events[0]["length"], 5.0);
    let states = named(&events, "load_state");
    assert!(states.iter().any(|state| state["phase"] == "ramp_up"), "{states:?}");
    assert!(states.iter().all(|state| state["left"].as_f64() >= Some(0.0)));
    let intervals = named(&events, "interval");
    let begins: Vec<&Value> = intervals.iter().map(|interval| &interval["at"]).collect();
    assert_eq!(begins, [3.0, 4.0], "the ramp-up is none");
}

const STUDY: &str = "\
weir: 1
name: tried
question: Is it so?
proxy: {kind: nginx, settings: {worker_processes: 1}}
loads:
  - {name: closed, closed: true, connections: 4, duration: 6s}
arms:
  - {name: keeps-origin, settings: {origin_keepalive: 16}}
blocks: {slice: 100ms, at-least: 6}
";

#[test]
fn events_of_a_run_are_lines_and_whoever_asks_is_answered() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", STUDY);
    let line = ["run", "study.yaml", "--out", "a run", "--progress", "jsonl"];
    let mut run = Running::start(&mut sandbox.weir(&line));
    run.wait_until("a block", |run| run.stderr().contains(r#""event":"block""#));
    run.signal(Signal::USR1);
    let ended = run.end().with_code(0);
    let text = ended.stderr.lines().filter(|line| line.starts_with('{'));
    let events = parse_events(&text.collect::<Vec<_>>().join("\n"));
    for name in ["begun", "takes", "arm_ready", "trial_begun", "block", "measured", "trial_ended"] {
        assert!(!named(&events, name).is_empty(), "{name}");
    }
    let counted = sum(&named(&events, "measured"), "/interval/completed");
    assert_eq!(counted, completed_by_records(&sandbox.path("a run")));
    let verdicts = named(&events, "verdicts");
    assert!(!verdicts.is_empty(), "{text:?}", text = ended.stderr);
    assert_eq!(verdicts[0]["verdicts"][0]["against"], "baseline");
    let begun = events[0]["takes"].as_f64();
    assert!(begun > Some(6.0), "known before any arm runs: {begun:?}");
}

/// Returns the number of completed requests in the records of a run, of all phases.
fn completed_by_records(folder: &Path) -> u64 {
    let records = std::fs::read_to_string(folder.join("records.jsonl")).expect("records");
    let lines = records.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let trials: Vec<Value> = lines.filter(|record| record["record"] == "trial").collect();
    let slices = trials.iter().flat_map(|trial| trial["slices"].as_array().expect("slices"));
    slices.map(|slice| slice["completed"].as_u64().expect("a count")).sum()
}

#[test]
fn events_of_a_search_are_lines() {
    let server = start_origin();
    let sandbox = Sandbox::new();
    let url = server.url();
    let line = ["capacity", &url, "--out", "a run", "--progress", "jsonl:events"];
    let mut search = Running::start(&mut sandbox.weir(&line));
    let path = sandbox.path("events");
    search.wait_until("two steps", |_| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.matches(r#""event":"bracket""#).count() > 1
    });
    search.signal(Signal::INT);
    let ended = search.end().with_code(130);
    assert!(!ended.stderr.contains("Records go to"), "{}", ended.stderr);
    let events = parse_events(&std::fs::read_to_string(&path).expect("events"));
    let brackets = named(&events, "bracket");
    assert!(brackets.iter().all(|bracket| bracket["left"].as_f64() >= Some(0.0)));
}

/// Returns the writing end of a pipe that is full, and the other one, which nobody reads.
fn fill_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    // Its capacity (pipe(7)).
    writer.write_all(&[b'x'; 65_536]).expect("room");
    (reader, writer)
}

/// A pager that was left, or a log that nobody reads, holds up the output, but not the end.
#[test]
fn a_pipe_that_is_full_does_not_keep_a_load_from_ending() {
    let (server, at) = weir_testkit::origin::start("");
    for (line, is_stdout_full) in [
        (format!("load -q -c 2 -d 1s http://{at}/"), true),
        (format!("load -c 2 -d 2s http://{at}/"), false),
    ] {
        let (_reader, writer) = fill_pipe();
        let mut command = weir(line.split(' ').collect::<Vec<_>>());
        let (full, open) = (Stdio::from(writer), Stdio::null());
        let (stdout, stderr) = if is_stdout_full { (full, open) } else { (open, full) };
        let load = Running::start_with(&mut command, stdout, stderr);
        std::thread::sleep(Duration::from_secs(4));
        load.signal(Signal::TERM);
        load.end_within(Duration::from_secs(10));
    }
    server.signal(Signal::TERM);
    server.end();
}
