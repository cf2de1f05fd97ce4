//! weir as a process: started, watched, interrupted, and never left behind.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io::Read;
use std::ops::RangeBounds;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use weir_record::Run;

use crate::schema;

/// Limit that only a hanging program reaches.
const PATIENCE: Duration = Duration::from_secs(180);

/// Returns the path of weir's program, which cargo builds beside the programs of its tests.
pub fn weir_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("weir")
}

/// Returns a command that runs the program with these arguments.
pub fn weir<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(weir_program());
    // Without defaults of whoever runs the tests.
    command.args(arguments).env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// Runs a command line of words without spaces, to its end.
pub fn run(line: &str) -> Ended {
    Running::start(&mut weir(line.split_whitespace())).end()
}

/// Checks of the contents of a text.
pub trait HasAll {
    fn has(&self, words: &str);
    fn has_all(&self, all: &[&str]);
    fn has_none(&self, all: &[&str]);
}

impl HasAll for str {
    #[track_caller]
    fn has(&self, words: &str) {
        self.has_all(&[words]);
    }

    #[track_caller]
    fn has_all(&self, all: &[&str]) {
        for words in all {
            assert!(self.contains(words), "{words}:\n{self}");
        }
    }

    #[track_caller]
    fn has_none(&self, all: &[&str]) {
        for words in all {
            assert!(!self.contains(words), "{words}:\n{self}");
        }
    }
}

/// Returns the text without line breaks, which depend on the terminal's width.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that a figure is in a range.
#[track_caller]
pub fn within<T: PartialOrd + Debug>(figure: T, expected: impl RangeBounds<T> + Debug) {
    assert!(expected.contains(&figure), "{figure:?} is not in {expected:?}");
}

/// Prints the row of a table that is tested, which the harness shows if the test fails.
#[allow(clippy::print_stdout)]
pub fn row(name: &str) {
    println!("{name}");
}

/// Returns a command that runs the program with the words of `line`, started by a shell that first runs `before`.
pub fn behind(before: &str, line: &str) -> Command {
    let mut shell = Command::new("sh");
    let line = format!("{before}; exec {} {line}", weir_program().display());
    shell.args(["-c", &line]);
    shell
}

/// Returns a run's remarks, one a line.
pub fn remarks_of(run: &Run) -> String {
    run.header.remarks.iter().map(|remark| format!("{remark}\n")).collect()
}

/// Returns the peak resident set of a process (proc_pid_status(5)), in KiB; none if it has ended.
pub fn peak_kib(pid: u32) -> Option<u64> {
    status_kib(pid, "VmHWM:")
}

/// Returns the same without the pages of its program, which are many in a build with symbols.
pub fn peak_of_its_own_kib(pid: u32) -> Option<u64> {
    peak_kib(pid)?.checked_sub(status_kib(pid, "RssFile:")?)
}

fn status_kib(pid: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Runs a test that depends on speed up to three times: other tests and other users of the machine may spoil one trial.
/// A real fault fails three times.
pub fn in_three_tries(tried: impl Fn()) {
    for _ in 0..2 {
        if catch_unwind(AssertUnwindSafe(&tried)).is_ok() {
            return;
        }
    }
    tried();
}

/// Waits until `happened` returns true.
pub fn wait_until(event: &str, happened: impl FnMut() -> bool) {
    wait_for(event, PATIENCE, happened);
}

fn wait_for(event: &str, patience: Duration, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < patience, "{event}: waited in vain");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A process that is killed when this is dropped.
pub struct Running {
    child: Child,
    stdout: Option<Gathered>,
    stderr: Option<Gathered>,
}

impl Running {
    /// Starts the process; collects its output to pipes made for it.
    pub fn start_with(command: &mut Command, stdout: Stdio, stderr: Stdio) -> Running {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .expect("the program starts");
        Running {
            stdout: child.stdout.take().map(Gathered::from),
            stderr: child.stderr.take().map(Gathered::from),
            child,
        }
    }

    /// Starts the process; collects all of its output.
    pub fn start(command: &mut Command) -> Running {
        Running::start_with(command, Stdio::piped(), Stdio::piped())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.as_ref().map_or_else(String::new, Gathered::now)
    }

    /// Returns the standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.as_ref().map_or_else(String::new, Gathered::now)
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn signal(&self, signal: Signal) {
        // It was not waited for, so the number is still its own.
        let pid = Pid::from_raw(self.pid().cast_signed()).expect("a child has a number");
        kill_process(pid, signal).expect("one's own child can be signalled");
    }

    /// Waits for a state in which the process keeps running.
    pub fn wait_until(&mut self, event: &str, mut happened: impl FnMut(&Running) -> bool) {
        wait_until(event, || {
            self.must_be_alive(event);
            happened(self)
        });
    }

    /// Panics with the exit status and all of standard error if the process has ended.
    fn must_be_alive(&mut self, event: &str) {
        if let Ok(Some(status)) = self.child.try_wait() {
            let stderr = self.stderr.take().map_or_else(String::new, Gathered::all);
            panic!("{event}: it ended ({status}):\n{stderr}");
        }
    }

    /// Waits for the end of a process that takes longer than any of its steps, each of which prints a line with this
    /// ending.
    pub fn end_of_steps(mut self, line_end: &str) -> Ended {
        let mut steps = 0;
        while self.is_alive() {
            wait_until("a step", || {
                let count = self.stderr().matches(line_end).count();
                let has_moved = count > steps || !self.is_alive();
                steps = count;
                has_moved
            });
        }
        self.end()
    }

    /// Waits for the end of the process.
    pub fn end(self) -> Ended {
        self.end_within(PATIENCE)
    }

    /// Waits for the end of the process, for a longer time than tests usually do.
    pub fn end_within(mut self, patience: Duration) -> Ended {
        wait_for("the end of the program", patience, || !self.is_alive());
        let status = self.child.wait().expect("it has ended");
        let stdout = self.stdout.take().map_or_else(String::new, Gathered::all);
        // Every document of every test is as its schema says.
        schema::assert_valid(&stdout);
        let stderr = self.stderr.take().map_or_else(String::new, Gathered::all);
        Ended { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Output of a stream, collected as it comes.
struct Gathered {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Gathered {
    fn from(mut stream: impl Read + Send + 'static) -> Gathered {
        let text = Arc::new(Mutex::new(Vec::new()));
        let gathered = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                let mut text = gathered.lock().unwrap_or_else(PoisonError::into_inner);
                text.extend_from_slice(&buffer[..length]);
            }
        });
        Gathered { text, reader }
    }

    fn now(&self) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn all(self) -> String {
        let text = Arc::clone(&self.text);
        self.reader.join().expect("the reader does not panic");
        let collected = text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8(collected.clone()).expect("weir writes UTF-8")
    }
}

/// Exit code and output of a process.
#[derive(Debug)]
pub struct Ended {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Returns true if weir printed a message and no panic.
    pub fn is_clear(&self) -> bool {
        self.stderr.lines().any(|line| line.starts_with("weir: "))
            && !self.stderr.contains("panicked")
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn with_code(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "\n{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that standard error contains these words.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Ended {
        self.stderr.has_all(words);
        self
    }

    /// Parses the document on standard output.
    #[track_caller]
    pub fn document<T: DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.stdout, self.stderr))
    }

    /// Checks that the program refused its input: exit code 2, nothing on standard output, and on standard error these
    /// words, without a panic's.
    #[track_caller]
    pub fn refused(self, words: &[&str]) -> Ended {
        self.did_nothing(2, words)
    }

    /// Checks that the program ended with this code before it had a result; otherwise like [`Ended::refused`].
    #[track_caller]
    pub fn did_nothing(self, code: i32, words: &[&str]) -> Ended {
        let ended = self.with_code(code).says(words);
        assert_eq!(ended.stdout, "", "{}", ended.stderr);
        ended.stderr.has_none(&["panicked"]);
        ended
    }

    /// Like [`Ended::refused`], with a single line of weir's and at most one hint.
    #[track_caller]
    pub fn refused_in_a_line(self, words: &[&str]) {
        self.refused(words).is_a_line();
    }

    /// Checks for a failure with right input: exit code 1, otherwise like [`Ended::refused_in_a_line`].
    #[track_caller]
    pub fn failed_in_a_line(self, words: &[&str]) {
        self.did_nothing(1, words).is_a_line();
    }

    /// Checks that standard error has a single line of weir's and at most one hint.
    #[track_caller]
    pub fn is_a_line(&self) {
        let mut lines = self.stderr.lines();
        let first = lines.next().unwrap_or_default();
        assert!(first.starts_with("weir: "), "{}", self.stderr);
        let is_hint = lines.next().is_none_or(|line| line.starts_with("hint: "));
        assert!(is_hint && lines.next().is_none(), "{}", self.stderr);
    }
}

/// Returns the number in a variable of the environment.
pub fn read_number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

/// Prints a line about a test that takes long.
pub fn say(words: &str) {
    eprintln!("{words}");
}
