//! The live view: progress, drawn four times a second, until the work is done or the user presses `q`.
//!
//! [`state::State`] holds the data; [`draw`] makes lines of it; [`screen`] is the terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui_core::terminal::Terminal;
use signal_hook::consts::{SIGQUIT, SIGTSTP};
use signal_hook::{flag, low_level};
use weir_model::progress::LoadPhase;

use super::{Consumer, Event, Lines, tell};
use crate::terminal;

mod draw;
pub(crate) mod screen;
mod state;

use screen::Screen;
use state::State;

/// Columns and lines that the view needs.
pub(super) const LEAST: (u16, u16) = (40, 10);
/// Time between drawings.
const EVERY: Duration = Duration::from_millis(250);
/// Length of a load, seconds, below which no view is shown by default: it would be over before anybody could read it.
const SHORTEST_S: f64 = 5.0;

/// Time that connections may take to open before the view shows that.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns true if there is a terminal for the view.
pub(super) fn is_possible() -> bool {
    terminal::can_draw()
        && screen::size().is_some_and(|(columns, lines)| columns >= LEAST.0 && lines >= LEAST.1)
}

pub(crate) struct View {
    state: State,
    lines: Lines,
    /// Length in seconds below which a load is shown as lines.
    shortest_s: f64,
    terminal: Option<Terminal<Screen>>,
    is_closed: bool,
    begun: Option<Instant>,
    drawn: Option<Instant>,
    signals: Option<Signals>,
}

/// Handlers of signals that stop or end the process at once, to restore the terminal before.
struct Signals {
    came: Vec<(i32, Arc<AtomicBool>)>,
    /// Flag that gives the signals their default effect again.
    default: Arc<AtomicBool>,
}

impl Signals {
    fn watch() -> std::io::Result<Signals> {
        let default = Arc::new(AtomicBool::new(false));
        let mut came = Vec::new();
        for signal in [SIGTSTP, SIGQUIT] {
            flag::register_conditional_default(signal, Arc::clone(&default))?;
            let has_come = Arc::new(AtomicBool::new(false));
            flag::register(signal, Arc::clone(&has_come))?;
            came.push((signal, has_come));
        }
        Ok(Signals { came, default })
    }

    fn come(&self) -> Option<i32> {
        self.came
            .iter()
            .find(|(_, came)| came.swap(false, Ordering::Relaxed))
            .map(|(signal, _)| *signal)
    }
}

impl View {
    /// Creates a view, which the first event opens.
    pub(super) fn new(is_asked_for: bool) -> View {
        View {
            state: State::default(),
            lines: Lines::silent(false),
            shortest_s: if is_asked_for { 0.0 } else { SHORTEST_S },
            terminal: None,
            is_closed: false,
            begun: None,
            drawn: None,
            signals: None,
        }
    }

    fn open(&mut self) {
        let opened = Signals::watch().and_then(|signals| {
            self.signals = Some(signals);
            screen::enter()?;
            Terminal::new(Screen::default())
        });
        match opened {
            Ok(terminal) => self.terminal = Some(terminal),
            Err(_) => self.close(),
        }
    }

    /// Releases the terminal. From then on events are shown as lines, after those that stay.
    fn close(&mut self) {
        self.terminal = None;
        screen::leave();
        if let Some(signals) = &self.signals {
            signals.default.store(true, Ordering::Relaxed);
        }
        if !std::mem::replace(&mut self.is_closed, true) {
            for line in self.lines.go_on() {
                tell(&format!("{line}\n"));
            }
        }
    }

    fn draw(&mut self) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= EVERY);
        let Some(terminal) = self.terminal.as_mut().filter(|_| is_due) else {
            return;
        };
        self.drawn = Some(Instant::now());
        let (state, lines, is_colored) = (&self.state, &self.lines, terminal::color_on_stderr());
        let drawn = terminal.draw(|frame| draw::page(state, lines, is_colored, frame.buffer_mut()));
        if drawn.is_err() {
            self.close();
        }
    }

    /// Gives Ctrl-Z and Ctrl-\ their usual effect, with the terminal restored before.
    fn obey(&mut self) {
        let Some(signal) = self.signals.as_ref().and_then(Signals::come) else {
            return;
        };
        screen::leave();
        let _ = low_level::emulate_default_handler(signal);
        // Stopped, and continued: perhaps in the background, where nothing is drawn.
        if screen::size().is_some() && screen::enter().is_ok() {
            let _ = self.terminal.as_mut().map(Terminal::clear);
        } else {
            self.close();
        }
    }
}

impl Consumer for View {
    fn take(&mut self, event: &Event) {
        self.lines.take(event);
        if self.is_closed {
            return;
        }
        self.state.take(event);
        if self.terminal.is_none() {
            match event {
                Event::LoadBegun { length, .. } if *length < self.shortest_s => self.close(),
                Event::LoadBegun { .. } => self.begun = Some(Instant::now()),
                // What fails at once is told without a view.
                Event::LoadState(state) if state.phase == LoadPhase::Connecting => {
                    if self.begun.is_some_and(|begun| begun.elapsed() >= PATIENCE) {
                        self.open();
                    }
                }
                _ => self.open(),
            }
        }
    }

    fn look(&mut self) {
        if self.is_closed || self.terminal.is_none() {
            return self.lines.look();
        }
        self.obey();
        if self.terminal.is_some() && (screen::is_left() || !screen::is_entered()) {
            self.close();
        }
        self.draw();
    }

    fn is_analyzed(&self) -> bool {
        true
    }

    fn known(&self) -> Option<String> {
        self.lines.known()
    }

    fn end(&mut self) {
        self.close();
        self.lines.end();
    }
}

impl Drop for View {
    fn drop(&mut self) {
        screen::leave();
    }
}
