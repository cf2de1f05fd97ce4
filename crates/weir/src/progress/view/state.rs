//! Data of the live view, collected from events.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use weir_lab::Event as LabEvent;
use weir_model::progress::{LoadInterval, LoadState, Verdict};
use weir_model::record::BracketRecord;
use weir_proposers::Announcement;
use weir_report::secrets::{masked, visible};

use crate::progress::Event;

/// Most points of a line over time: one for each column of a wide terminal.
const POINTS: usize = 160;
/// Time between calculations of a load's rate.
const RATE: Duration = Duration::from_secs(1);

/// Data of the live view.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Title: the work, and its server or study.
    pub(super) title: String,
    pub(super) load: Option<LoadState>,
    /// Requests per second that a load demands.
    pub(super) asked: Option<f64>,
    /// Responses per second over time: a load's, or the baseline's of a run.
    pub(super) rates: VecDeque<f64>,
    counted: Option<(Instant, u64)>,
    pub(super) interval: Option<LoadInterval>,
    /// p99 over time, in nanoseconds.
    pub(super) p99s: VecDeque<f64>,
    /// Number of blocks done, and of all blocks.
    pub(super) blocks: Option<(u32, u32)>,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) brackets: Vec<Bracket>,
}

/// State of a search for one arm.
#[derive(Debug)]
pub(super) struct Bracket {
    pub(super) now: BracketRecord,
    /// First bracket of the capacity, requests per second; `None` before there is one.
    pub(super) first: Option<(f64, f64)>,
    pub(super) is_done: bool,
}

impl State {
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::LoadBegun { url, rate, .. } => {
                self.title = shown(&format!("weir load {url}"));
                self.asked = *rate;
            }
            Event::LoadState(state) => {
                let now = Instant::now();
                let (since, before) = *self.counted.get_or_insert((now, state.completed));
                let passed = now - since;
                if passed >= RATE {
                    let completed = (state.completed - before) as f64;
                    push(&mut self.rates, completed / passed.as_secs_f64());
                    self.counted = Some((now, state.completed));
                }
                self.load = Some(*state);
            }
            Event::Interval(interval) => {
                push(&mut self.p99s, interval.interval.response_time.p99 as f64);
                self.interval = Some((**interval).clone());
            }
            Event::Verdicts { verdicts } => self.verdicts.clone_from(verdicts),
            Event::Asked { .. } | Event::Flow(_) => {}
            Event::Lab(event) => self.take_of_lab(event),
        }
    }

    fn take_of_lab(&mut self, event: &LabEvent) {
        match event {
            LabEvent::Begun { folder, .. } => {
                let name = folder.file_name().unwrap_or_default();
                self.title = shown(&format!("weir · {}", name.to_string_lossy()));
            }
            LabEvent::Announced(Announcement::TrialBegun { blocks, .. }) => {
                self.blocks = Some((0, *blocks));
                self.rates.clear();
            }
            LabEvent::Block { done, of, baseline_rate, .. } => {
                self.blocks = Some((*done, *of));
                push(&mut self.rates, *baseline_rate);
            }
            LabEvent::Announced(Announcement::TrialEnded { .. }) => self.blocks = None,
            LabEvent::Announced(Announcement::Bracket { bracket, .. }) => {
                let shown = self.brackets.iter_mut().find(|shown| shown.now.arm == bracket.arm);
                match shown {
                    Some(shown) => {
                        shown.first = shown.first.or(bracket.between);
                        shown.now = bracket.clone();
                    }
                    None => self.brackets.push(Bracket {
                        now: bracket.clone(),
                        first: bracket.between,
                        is_done: false,
                    }),
                }
            }
            LabEvent::Announced(Announcement::Capacity(found)) => {
                let shown =
                    self.brackets.iter_mut().find(|shown| shown.now.arm == found.answer.arm);
                shown.into_iter().for_each(|shown| shown.is_done = true);
            }
            _ => {}
        }
    }
}

fn push(values: &mut VecDeque<f64>, value: f64) {
    if values.len() == POINTS {
        values.pop_front();
    }
    values.push_back(value);
}

/// Masks secrets and control characters in text that others may have written.
pub(super) fn shown(text: &str) -> String {
    masked(&visible(text)).into_owned()
}
