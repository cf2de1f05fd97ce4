//! Runs that the page has started, each a process of its own.

use std::collections::VecDeque;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::Child;
use tokio::sync::watch;
use weir_report::secrets::visible;

use crate::program::Program;

/// Maximum number of events of a job that are kept, the newest ones.
const MOST_EVENTS: usize = 5_000;
/// Maximum number of jobs that are kept, the newest ones.
const MOST_JOBS: usize = 100;
/// Longest line, bytes. A longer one is passed on in parts, none of which is an event.
const LONGEST_LINE: usize = 1 << 20;
/// Most characters of messages and of the summary that are kept.
const MOST_TEXT: usize = 64 << 10;
/// Time that runs have at the end to put settings back.
const PUTTING_BACK: Duration = Duration::from_secs(60);

/// Jobs by number.
#[derive(Debug, Default)]
pub(crate) struct Jobs(Mutex<Vec<Arc<Job>>>);

/// A run.
#[derive(Debug)]
pub(crate) struct Job {
    number: usize,
    /// Name of the study, or of the run that goes on.
    title: String,
    pid: Option<Pid>,
    state: Mutex<State>,
    /// The number of changes so far, for whoever waits for the next one.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of events before those that are kept.
    forgotten: usize,
    events: VecDeque<Value>,
    /// Lines that are no events: errors and notes.
    messages: String,
    /// Text on standard output, which is printed at the end.
    summary: String,
    /// Name of the run folder.
    run: Option<String>,
    is_stopping: bool,
    /// The exit code, -1 after a signal, once the process has ended.
    ended: Option<i32>,
}

/// A job in the list.
#[derive(Debug, Serialize)]
pub(crate) struct ListedJob {
    number: usize,
    title: String,
    run: Option<String>,
    is_stopping: bool,
    ended: Option<i32>,
}

/// News of a job.
#[derive(Debug, Serialize)]
pub(crate) struct News {
    #[serde(flatten)]
    job: ListedJob,
    /// Number of the event after the last one of `events`.
    next: usize,
    /// Events from the number that was asked for.
    events: Vec<Value>,
    messages: String,
    summary: String,
}

impl Jobs {
    /// Starts `weir` with these words, which make it print events to standard error.
    ///
    /// # Errors
    /// The process cannot be started, or another run goes on: two would disturb each other.
    pub(crate) fn start(
        &self,
        program: &Program,
        title: &str,
        words: &[&str],
    ) -> Result<usize, String> {
        let mut jobs = self.lock();
        if let Some(active) = jobs.iter().find(|job| job.lock().ended.is_none()) {
            return Err(format!(
                "{} still runs, and two runs would disturb each other",
                active.title
            ));
        }
        // Ctrl-C at the server's terminal is for the server, which then stops its runs itself.
        let mut child = program
            .command(words)
            .process_group(0)
            .spawn()
            .map_err(|error| format!("weir cannot be started: {error}"))?;
        let number = jobs.last().map_or(1, |job| job.number + 1);
        let job = Arc::new(Job {
            number,
            title: title.to_owned(),
            pid: child.id().and_then(|id| Pid::from_raw(id as i32)),
            state: Mutex::default(),
            changes: watch::Sender::new(0),
        });
        let streams = (child.stdout.take(), child.stderr.take());
        tokio::spawn(follow(Arc::clone(&job), child, streams));
        if jobs.len() >= MOST_JOBS {
            jobs.remove(0);
        }
        jobs.push(job);
        Ok(number)
    }

    pub(crate) fn find(&self, number: usize) -> Option<Arc<Job>> {
        self.lock().iter().find(|job| job.number == number).cloned()
    }

    /// Lists the jobs, the newest first.
    pub(crate) fn list(&self) -> Vec<ListedJob> {
        self.lock().iter().rev().map(|job| job.listed(&job.lock())).collect()
    }

    /// Stops all jobs, and waits until they have ended or [`PUTTING_BACK`] is over.
    pub(crate) async fn end_all(&self) {
        let jobs = self.lock().clone();
        for job in &jobs {
            job.stop();
        }
        let ended = async {
            for job in &jobs {
                job.wait_until(|state| state.ended.is_some()).await;
            }
        };
        let _ = tokio::time::timeout(PUTTING_BACK, ended).await;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Interrupts the run as Ctrl-C does: what was measured is reported, and settings are put back.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        // The process is not waited for before `ended` is set, so its id is still its own.
        if state.ended.is_none()
            && let Some(pid) = self.pid
        {
            state.is_stopping = true;
            let _ = kill_process(pid, Signal::INT);
        }
        drop(state);
        self.changed();
    }

    /// Returns the events from number `after` on, as soon as there are any, the job has ended, or `patience` is over.
    pub(crate) async fn news(&self, after: usize, patience: Duration) -> News {
        let has_news =
            |state: &State| state.forgotten + state.events.len() > after || state.ended.is_some();
        let _ = tokio::time::timeout(patience, self.wait_until(has_news)).await;
        let state = self.lock();
        let skipped = after.saturating_sub(state.forgotten);
        News {
            job: self.listed(&state),
            next: state.forgotten + state.events.len(),
            events: state.events.iter().skip(skipped).cloned().collect(),
            messages: state.messages.clone(),
            summary: state.summary.clone(),
        }
    }

    async fn wait_until(&self, is_reached: impl Fn(&State) -> bool) {
        let mut changes = self.changes.subscribe();
        while !is_reached(&self.lock()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn listed(&self, state: &State) -> ListedJob {
        ListedJob {
            number: self.number,
            title: self.title.clone(),
            run: state.run.clone(),
            is_stopping: state.is_stopping,
            ended: state.ended,
        }
    }

    fn take_line(&self, line: &str) {
        let mut state = self.lock();
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event.get("event").is_some() => {
                if let Some(folder) = event.get("folder").and_then(Value::as_str) {
                    state.run = folder.rsplit('/').next().map(str::to_owned);
                }
                if state.events.len() == MOST_EVENTS {
                    state.events.pop_front();
                    state.forgotten += 1;
                }
                state.events.push_back(event);
            }
            _ => append(&mut state.messages, line),
        }
        drop(state);
        self.changed();
    }

    fn end(&self, status: Option<ExitStatus>) {
        self.lock().ended = Some(status.and_then(|status| status.code()).unwrap_or(-1));
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends a line to a text that stays bounded.
fn append(text: &mut String, line: &str) {
    if text.len() + line.len() < MOST_TEXT {
        text.push_str(&visible(line));
        text.push('\n');
    }
}

/// Reads what a run prints until it ends.
async fn follow(
    job: Arc<Job>,
    mut child: Child,
    (stdout, stderr): (Option<impl AsyncRead + Unpin>, Option<impl AsyncRead + Unpin>),
) {
    let events = async {
        if let Some(stderr) = stderr {
            each_line(stderr, |line| job.take_line(line)).await;
        }
    };
    let summary = async {
        if let Some(stdout) = stdout {
            each_line(stdout, |line| append(&mut job.lock().summary, line)).await;
        }
    };
    tokio::join!(events, summary);
    job.end(child.wait().await.ok());
}

/// Calls `take` with every line.
async fn each_line(from: impl AsyncRead + Unpin, mut take: impl FnMut(&str)) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut part = (&mut reader).take(LONGEST_LINE as u64);
        match part.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => take(String::from_utf8_lossy(&line).trim_end_matches('\n')),
        }
    }
}
