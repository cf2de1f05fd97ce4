//! Events as JSON Lines (docs/progress.md).

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use weir_agent::Patient;
use weir_model::progress::FORMAT;
use weir_report::secrets::masked;

use super::{Consumer, Event};
use crate::terminal;

/// Time between lines about a load's state.
const STATES: Duration = Duration::from_secs(1);

/// Time that lines wait for a reader that does not read.
const PATIENCE: Duration = Duration::from_secs(3);

/// Output of lines; shared by those who write some of them. Takes nothing any more once nobody has read for
/// [`PATIENCE`]: what follows half a line cannot be understood.
#[derive(Clone)]
pub(crate) struct Sink(Arc<Mutex<Patient<File>>>);

impl Sink {
    /// Over a file, a pipe or a terminal.
    pub(crate) fn to(file: File) -> Sink {
        Sink(Arc::new(Mutex::new(Patient::new(file, |waited| waited < PATIENCE))))
    }

    fn lock(&self) -> MutexGuard<'_, Patient<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes).map_err(|error| match error.kind() {
            ErrorKind::TimedOut => {
                let words = format!("nobody has read it for {} s", PATIENCE.as_secs());
                io::Error::new(ErrorKind::TimedOut, words)
            }
            _ => error,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

/// An event as a line.
#[derive(Serialize)]
struct Line<'a> {
    format: &'static str,
    /// Time of writing, RFC 3339 in UTC.
    time: String,
    #[serde(flatten)]
    event: &'a Event,
}

/// Writes every event as a line of JSON as soon as it comes.
pub(crate) struct JsonLines {
    out: Sink,
    /// True if all events are written, false for intervals alone.
    all: bool,
    state_told: Option<Instant>,
    /// Flag to set when the reader has gone.
    unread: Option<Arc<AtomicBool>>,
    /// True after a write has failed, which is reported once.
    has_failed: bool,
}

impl JsonLines {
    pub(crate) fn new(out: Sink, all: bool) -> JsonLines {
        JsonLines { out, all, state_told: None, unread: None, has_failed: false }
    }

    /// Creates a writer of intervals alone, for a result. Sets `unread` when the reader has gone.
    pub(crate) fn intervals(out: Sink, unread: Arc<AtomicBool>) -> JsonLines {
        JsonLines { unread: Some(unread), ..JsonLines::new(out, false) }
    }

    fn is_wanted(&mut self, event: &Event) -> bool {
        match event {
            Event::Interval(_) => true,
            Event::Flow(_) | Event::Lab(weir_lab::Event::Sampled { .. }) => false,
            _ if !self.all => false,
            Event::LoadState(_) => {
                let now = Instant::now();
                let is_due = self.state_told.is_none_or(|told| now - told >= STATES);
                if is_due {
                    self.state_told = Some(now);
                }
                is_due
            }
            _ => true,
        }
    }
}

impl Consumer for JsonLines {
    fn is_analyzed(&self) -> bool {
        self.all
    }

    fn take(&mut self, event: &Event) {
        if !self.is_wanted(event) {
            return;
        }
        let line = Line { format: FORMAT, time: jiff::Timestamp::now().to_string(), event };
        let Ok(text) = serde_json::to_string(&line) else {
            return;
        };
        let text = masked(&text).into_owned() + "\n";
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        match (written, &self.unread) {
            (Ok(()), _) => {}
            (Err(error), Some(unread))
                if [ErrorKind::BrokenPipe, ErrorKind::TimedOut].contains(&error.kind()) =>
            {
                unread.store(true, Ordering::Relaxed);
            }
            // The result does not depend on it, so it is said once.
            (Err(error), _) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    terminal::tell(&format!("weir: progress cannot be written: {error}\n"));
                }
            }
        }
    }
}
