//! Progress of a command while it works.
//!
//! The working code sends [`Event`]s without waiting; a separate thread passes them to the consumers that show them:
//!
//! ```text
//! weir-lab's events ─┐                          ┌─► lines   for people, on standard error
//! the load's source ─┼─► Event ─► a thread ─────┼─► JSON Lines, for programs
//! the analyst ───────┘    (nice 10)             ├─► the live view
//!                                               └─► metrics, for Prometheus
//! ```
//!
//! Consumers only consume: they know no command, and the working code does not know them.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::process::setpriority_process;
use serde::Serialize;
use weir_model::progress::{LoadInterval, LoadState, Verdict};

use crate::args::{ProgressArgs, ProgressWord};
use crate::failure::Failure;
use crate::{signals, terminal};

pub(crate) mod analyst;
mod export;
mod json;
pub(crate) mod lines;
pub(crate) mod phrases;
pub(crate) mod view;

pub(crate) use json::{JsonLines, Sink};
pub(crate) use lines::Lines;

/// Time between calls of sources and of consumers, which may draw then.
const LOOK: Duration = Duration::from_millis(50);

/// Nice value of the thread that shows progress: measurements come first.
const POLITE: i32 = 10;

/// An event while a command works.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// A load is about to begin.
    LoadBegun {
        /// URL of the server.
        url: String,
        /// Connections over all flows.
        connections: u64,
        /// Length in seconds, ramp-up included.
        length: f64,
        /// Requests per second, if all flows have a constant rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<f64>,
    },
    /// State of a load.
    LoadState(LoadState),
    /// An interval of a load has ended.
    Interval(Box<LoadInterval>),
    /// Measurements of a flow of a load since the last such event, if a consumer wants to know. Intervals have the
    /// same figures for JSON Lines.
    #[serde(skip)]
    Flow(Box<weir_lab::Measured>),
    /// Comparisons of the arms so far.
    Verdicts {
        /// Every comparison of the study.
        verdicts: Vec<Verdict>,
    },
    /// Answer to SIGUSR1.
    Asked {
        /// The answer as text.
        text: String,
    },
    /// An event in a run or a search.
    #[serde(untagged)]
    Lab(weir_lab::Event),
}

/// A display or a writer of events.
pub(crate) trait Consumer: Send {
    /// Takes an event.
    fn take(&mut self, event: &Event);

    /// Called at short, regular intervals.
    fn look(&mut self) {}

    /// Returns true if the consumer shows comparisons of arms during a run.
    fn is_analyzed(&self) -> bool {
        false
    }

    /// Returns true if the consumer takes the histograms of loads, [`Event::Flow`].
    fn counts_flows(&self) -> bool {
        false
    }

    /// Returns the answer to SIGUSR1 if the working code has none; `None` if this consumer has none either.
    fn known(&self) -> Option<String> {
        None
    }

    /// Called when no more events will come.
    fn end(&mut self) {}
}

/// A source of events besides the working code, called every [`LOOK`].
pub(crate) trait Source: Send {
    /// Sends new events through `tell`. `asked`: the user wants to know the state.
    fn look(&mut self, asked: bool, tell: &mut dyn FnMut(Event));
}

/// A source without events.
pub(crate) struct Nothing;

impl Source for Nothing {
    fn look(&mut self, _: bool, _: &mut dyn FnMut(Event)) {}
}

/// Passes events to consumers.
pub(crate) struct Reporter {
    consumers: Vec<Box<dyn Consumer>>,
    /// Lines for answers to SIGUSR1 if nothing is shown.
    silent: Option<Lines>,
    asked: Arc<AtomicBool>,
}

impl Reporter {
    /// Creates a reporter for the chosen display and for metrics; `also` is a further consumer.
    ///
    /// # Errors
    /// A file cannot be written, there is no terminal for the live view, or metrics cannot be served.
    pub(crate) fn new(
        args: &ProgressArgs,
        also: Option<Box<dyn Consumer>>,
        stays: bool,
    ) -> Result<Reporter, Failure> {
        let exporter = export::exporter(args)?;
        Reporter::of(args.word(), also.into_iter().chain(exporter).collect(), stays)
    }

    fn of(
        word: &ProgressWord,
        mut consumers: Vec<Box<dyn Consumer>>,
        stays: bool,
    ) -> Result<Reporter, Failure> {
        let shown: Option<Box<dyn Consumer>> = match word {
            ProgressWord::Off => None,
            ProgressWord::Lines => Some(Box::new(Lines::new(stays))),
            ProgressWord::Jsonl(to) => Some(Box::new(JsonLines::new(writer(to.as_deref())?, true))),
            ProgressWord::Auto if stays || !view::is_possible() => {
                Some(Box::new(Lines::new(stays)))
            }
            ProgressWord::Auto => Some(Box::new(view::View::new(false))),
            ProgressWord::Tui if view::is_possible() => Some(Box::new(view::View::new(true))),
            ProgressWord::Tui => {
                let message = format!(
                    "--progress tui: the live view needs a terminal with at least {} columns and {} lines as \
                     standard input and standard error, in the foreground",
                    view::LEAST.0,
                    view::LEAST.1
                );
                return Err(Failure::input(message).hint("--progress lines"));
            }
        };
        let silent = shown.is_none().then(|| Lines::silent(stays));
        consumers.extend(shown);
        Ok(Reporter { silent, consumers, asked: signals::asked_flag()? })
    }

    /// Creates a reporter of a run or a search for the chosen display.
    ///
    /// # Errors
    /// Same as [`Reporter::new`].
    pub(crate) fn shown(args: &ProgressArgs) -> Result<Reporter, Failure> {
        Reporter::new(args, None, false)
    }

    /// Creates a reporter that shows nothing, but answers SIGUSR1.
    ///
    /// # Errors
    /// Same as [`Reporter::new`].
    pub(crate) fn silent() -> Result<Reporter, Failure> {
        Reporter::of(&ProgressWord::Off, Vec::new(), false)
    }

    /// Returns true if events are shown anywhere, beyond answers to SIGUSR1.
    pub(crate) fn is_shown(&self) -> bool {
        !self.consumers.is_empty()
    }

    /// Returns true if a consumer shows comparisons of arms during a run.
    pub(crate) fn is_analyzed(&self) -> bool {
        self.consumers.iter().any(|consumer| consumer.is_analyzed())
    }

    /// Returns true if a consumer takes the histograms of loads.
    pub(crate) fn counts_flows(&self) -> bool {
        self.consumers.iter().any(|consumer| consumer.counts_flows())
    }

    /// Runs `work`, and shows the events of `work` and `source` meanwhile.
    pub(crate) fn beside<T>(
        self,
        source: impl Source,
        work: impl FnOnce(&Sender<Event>) -> T,
    ) -> T {
        let (events, heard) = channel();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // A view that cannot be shown costs no result.
            let builder = std::thread::Builder::new().name("weir-progress".to_owned());
            let done = &done;
            let _ = builder.spawn_scoped(scope, move || self.show(&heard, source, done));
            let _ending = Ending(done);
            work(&events)
        })
    }

    fn show(mut self, heard: &Receiver<Event>, mut source: impl Source, done: &AtomicBool) {
        let _ = setpriority_process(None, POLITE);
        loop {
            // Before the last events are taken, so that none is left.
            let ended = done.load(Ordering::Acquire);
            let wait = if ended { Duration::ZERO } else { LOOK };
            if let Ok(event) = heard.recv_timeout(wait) {
                self.take(&event);
                self.look();
                continue;
            }
            let is_requested = self.asked.swap(false, Ordering::Relaxed);
            let mut answered = false;
            source.look(is_requested, &mut |event| {
                answered |= matches!(event, Event::Asked { .. });
                self.take(&event);
            });
            if is_requested && !answered {
                self.answer();
            }
            self.look();
            if ended {
                break;
            }
        }
        self.consumers.iter_mut().for_each(|consumer| consumer.end());
    }

    fn look(&mut self) {
        self.consumers.iter_mut().for_each(|consumer| consumer.look());
    }

    fn take(&mut self, event: &Event) {
        self.consumers.iter_mut().for_each(|consumer| consumer.take(event));
        match (&mut self.silent, event) {
            (Some(_), Event::Asked { text }) => tell(&format!("{text}\n")),
            (Some(silent), event) => silent.take(event),
            (None, _) => {}
        }
    }

    /// Shows the answer of the first consumer that has one.
    fn answer(&mut self) {
        let silent = self.silent.iter().map(|lines| lines as &dyn Consumer);
        let mut all = self.consumers.iter().map(|all| &**all).chain(silent);
        if let Some(text) = all.find_map(Consumer::known) {
            self.take(&Event::Asked { text });
        }
    }
}

/// Marks the work as done when dropped, even after a panic.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Opens the destination of JSON Lines: standard error, or a file.
fn writer(to: Option<&std::path::Path>) -> Result<Sink, Failure> {
    let Some(path) = to else {
        let stderr = io::stderr()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| Failure::failed(format!("standard error: {error}")))?;
        return Ok(Sink::to(File::from(stderr)));
    };
    let opened = weir_files::open_output(path).and_then(|file| {
        // A pipe, or another process' descriptor, has no length.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    });
    let file = opened.map_err(|error: io::Error| {
        Failure::input(format!("--progress jsonl:{}: {error}", path.display()))
    })?;
    Ok(Sink::to(file))
}

/// Writes lines that stay, whatever display is in use.
fn tell(text: &str) {
    terminal::tell(text);
}
