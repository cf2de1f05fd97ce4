//! What a command says while it works.
//!
//! Whoever works tells [`Event`]s and waits for nobody; a thread of its own hands them to whoever shows them:
//!
//! ```text
//! weir-lab's events ─┐                          ┌─► lines   for people, on standard error
//! the load's source ─┼─► Event ─► a thread ─────┼─► JSON Lines, for programs
//! the analyst ───────┘    (nice 10)             └─► the live view
//! ```
//!
//! Consumers only consume: they know no command, and nothing that works knows them.

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

use crate::args::ProgressWord;
use crate::failure::Failure;
use crate::{signals, terminal};

pub(crate) mod analyst;
mod json;
pub(crate) mod lines;
pub(crate) mod phrases;
pub(crate) mod view;

pub(crate) use json::{JsonLines, Sink};
pub(crate) use lines::Lines;

/// How often sources are asked for news, and consumers may draw.
const LOOK: Duration = Duration::from_millis(50);

/// Nice value of the thread that shows what is going on: whatever measures comes first.
const POLITE: i32 = 10;

/// What happens while a command works.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// A load is about to begin.
    LoadBegun {
        /// Whom it asks.
        url: String,
        /// Connections over all flows.
        connections: u64,
        /// Length in seconds, ramp-up included.
        length: f64,
        /// Requests per second, where all flows have a constant rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<f64>,
    },
    /// Where a load is.
    LoadState(LoadState),
    /// An interval of a load has ended.
    Interval(Box<LoadInterval>),
    /// How the arms compare so far.
    Verdicts {
        /// Every comparison of the study.
        verdicts: Vec<Verdict>,
    },
    /// Somebody sent SIGUSR1, and this is the answer.
    Asked {
        /// For people.
        text: String,
    },
    /// What happens in a run or a search.
    #[serde(untagged)]
    Lab(weir_lab::Event),
}

/// Whoever shows what happens.
pub(crate) trait Consumer: Send {
    /// Takes an event in.
    fn take(&mut self, event: &Event);

    /// A moment has passed.
    fn look(&mut self) {}

    /// Whether it shows how arms compare while a run goes on.
    fn is_analyzed(&self) -> bool {
        false
    }

    /// Somebody sent SIGUSR1, and whoever works has no answer of its own: what this consumer knows.
    fn known(&self) -> Option<String> {
        None
    }

    /// Nothing more will come.
    fn end(&mut self) {}
}

/// Where events come from besides whoever works: it is asked every [`LOOK`].
pub(crate) trait Source: Send {
    /// Tells what is new. `asked`: somebody wants to know how things are.
    fn look(&mut self, asked: bool, tell: &mut dyn FnMut(Event));
}

/// No other source.
pub(crate) struct Nothing;

impl Source for Nothing {
    fn look(&mut self, _: bool, _: &mut dyn FnMut(Event)) {}
}

/// Hands events to whoever shows them.
pub(crate) struct Reporter {
    consumers: Vec<Box<dyn Consumer>>,
    /// For SIGUSR1 where nobody shows anything.
    silent: Option<Lines>,
    asked: Arc<AtomicBool>,
}

impl Reporter {
    /// As it was asked for; `also` shows too.
    ///
    /// # Errors
    /// A file cannot be written, or there is no terminal for the live view.
    pub(crate) fn new(
        word: &ProgressWord,
        also: Option<Box<dyn Consumer>>,
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
        Ok(Reporter {
            silent: shown.is_none().then(|| Lines::silent(stays)),
            consumers: also.into_iter().chain(shown).collect(),
            asked: signals::asked_flag()?,
        })
    }

    /// As it was asked for, of a run or a search.
    ///
    /// # Errors
    /// As [`Reporter::new`].
    pub(crate) fn shown(word: &ProgressWord) -> Result<Reporter, Failure> {
        Reporter::new(word, None, false)
    }

    /// Nothing is shown, but whoever sends SIGUSR1 is answered.
    ///
    /// # Errors
    /// As [`Reporter::new`].
    pub(crate) fn silent() -> Result<Reporter, Failure> {
        Reporter::shown(&ProgressWord::Off)
    }

    /// Whether somebody sees what happens without having to ask.
    pub(crate) fn is_shown(&self) -> bool {
        !self.consumers.is_empty()
    }

    /// Whether somebody wants to know how arms compare while a run goes on.
    pub(crate) fn is_analyzed(&self) -> bool {
        self.consumers.iter().any(|consumer| consumer.is_analyzed())
    }

    /// Does `work`, and shows what it and `source` tell.
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
            let asked = self.asked.swap(false, Ordering::Relaxed);
            let mut answered = false;
            source.look(asked, &mut |event| {
                answered |= matches!(event, Event::Asked { .. });
                self.take(&event);
            });
            if asked && !answered {
                self.answer();
            }
            self.look();
            if ended {
                break;
            }
        }
        self.consumers
            .iter_mut()
            .for_each(|consumer| consumer.end());
    }

    fn look(&mut self) {
        self.consumers
            .iter_mut()
            .for_each(|consumer| consumer.look());
    }

    fn take(&mut self, event: &Event) {
        let consumers = self.consumers.iter_mut();
        consumers.for_each(|consumer| consumer.take(event));
        match (&mut self.silent, event) {
            (Some(_), Event::Asked { text }) => tell(&format!("{text}\n")),
            (Some(silent), event) => silent.take(event),
            (None, _) => {}
        }
    }

    /// What the first consumer knows that knows anything.
    fn answer(&mut self) {
        let silent = self.silent.iter().map(|lines| lines as &dyn Consumer);
        let mut all = self.consumers.iter().map(|all| &**all).chain(silent);
        if let Some(text) = all.find_map(Consumer::known) {
            self.take(&Event::Asked { text });
        }
    }
}

/// Says that the work is done, even if it panics.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Where JSON Lines go: standard error, or a file.
fn writer(to: Option<&std::path::Path>) -> Result<Sink, Failure> {
    let Some(path) = to else {
        let stderr = io::stderr().as_fd().try_clone_to_owned();
        let stderr = stderr.map_err(|error| Failure::failed(format!("standard error: {error}")))?;
        return Ok(Sink::to(File::from(stderr)));
    };
    let emptied = |file: File| {
        // A pipe, or another process' descriptor, has no length.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    };
    let opened = weir_files::open_output(path).and_then(emptied);
    let file = opened.map_err(|error: io::Error| {
        Failure::input(format!("--progress jsonl:{}: {error}", path.display()))
    })?;
    Ok(Sink::to(file))
}

/// Writes what stays, whoever shows what.
fn tell(text: &str) {
    terminal::tell(text);
}
