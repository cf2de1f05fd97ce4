//! The search for what one arm carries, told by the records of its trials.

use weir_model::record::{CeilingRecord, TrialRecord};
use weir_search::{Answer, Search, Trial};

use super::closed::ClosedLoops;
use super::seen::{Frame, Windows};

/// An arm, and how far the search for what it carries is.
pub(crate) struct Searched {
    pub(crate) name: String,
    state: State,
    /// What is to be tried in this order, unless something that is seen changes that.
    planned: Vec<Trial>,
    /// Windows of the first of these.
    windows: Windows,
    /// Seconds of these that were measured.
    window_s: f64,
    /// The session that the latest trial is of.
    session: u32,
    /// What the measurement carries at most.
    pub(crate) ceiling: Option<CeilingRecord>,
    /// Connections that it is searched with.
    pub(crate) connections: u32,
    /// Seconds before its trials in which it rested.
    pub(crate) rest_s: f64,
}

enum State {
    /// The closed loops before the search.
    New(ClosedLoops),
    Searching(Box<Search>),
    Done(Box<Search>),
    /// What was found stands in the records of an earlier session.
    Recorded,
}

impl Searched {
    /// An arm that the study asks over so many connections, or over so many at most.
    pub(crate) fn new(name: &str, (connections, most): (u32, Option<u32>)) -> Searched {
        Searched {
            name: name.to_owned(),
            state: State::New(ClosedLoops::new(connections, most)),
            planned: Vec::new(),
            windows: Windows::default(),
            window_s: 0.0,
            session: 0,
            ceiling: None,
            connections,
            rest_s: 0.0,
        }
    }

    /// The closed loop that is still to be measured: its connections and blocks.
    pub(crate) fn closed_loop(&self) -> Option<(u32, u32)> {
        match &self.state {
            State::New(loops) => Some(loops.wanted()),
            _ => None,
        }
    }

    /// Whether it has to be measured still, or may have.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::New(_) | State::Searching(_))
    }

    /// So many seconds are left for its trials, by the clock.
    pub(crate) fn has_left(&mut self, left_s: f64) {
        if let State::Searching(search) = &mut self.state {
            search.has_left(left_s);
            // What was planned may be no more.
            self.planned.clear();
        }
    }

    /// Whether it has not been answered.
    pub(crate) fn is_searching(&self) -> bool {
        matches!(self.state, State::Searching(_))
    }

    /// What it is to be tried with, at least one trial.
    ///
    /// # Errors
    /// Nothing: this is the answer.
    pub(crate) fn planned(&mut self) -> Result<Vec<Trial>, Box<Answer>> {
        if let State::Searching(search) = &mut self.state
            && self.planned.is_empty()
        {
            self.planned = search.ahead()?;
        }
        Ok(self.planned.clone())
    }

    /// Seconds of trials so far.
    pub(crate) fn seconds(&self) -> f64 {
        self.search()
            .map_or(0.0, |search| search.progress().seconds)
    }

    /// Seconds of trials that are left, about; `None` before the search has begun.
    pub(crate) fn left_s(&self) -> Option<f64> {
        match &self.state {
            State::New(_) => None,
            State::Searching(search) => Some(search.left_s()),
            State::Done(_) | State::Recorded => Some(0.0),
        }
    }

    /// Rates between which its capacity is thought to be.
    pub(crate) fn between(&self) -> Option<(f64, f64)> {
        let between = self.search()?.progress().between;
        between.filter(|(low, high)| low.is_finite() && high.is_finite())
    }

    fn search(&self) -> Option<&Search> {
        match &self.state {
            State::Searching(search) | State::Done(search) => Some(search),
            State::New(_) | State::Recorded => None,
        }
    }

    /// Takes in a trial, live or from the records of an earlier session: a block of the closed loop, or a window of the
    /// trial that is planned next. One that was not planned any more when it came counts as not made.
    pub(crate) fn take(&mut self, record: &TrialRecord, frame: &Frame) {
        if record.session != self.session {
            self.cut();
            self.session = record.session;
        }
        if let (State::New(loops), None) = (&mut self.state, record.rate_intended) {
            if let Some(settled) = loops.take(record, frame.used(record)) {
                self.ceiling = frame.ceiling(&settled);
                self.connections = settled.connections;
                let goal = frame.goal(&settled, self.ceiling);
                self.state = State::Searching(Box::new(Search::new(goal)));
            }
            return;
        }
        let Some(rate) = record.rate_intended else {
            return;
        };
        let planned = self.planned().ok();
        let Some(trial) = planned.and_then(|planned| planned.first().copied()) else {
            return;
        };
        if (rate / trial.rate - 1.0).abs() > 1e-6 {
            return;
        }
        frame.put(&mut self.windows, record);
        let measured: u64 = record.slices.iter().map(|slice| slice.measured_ns).sum();
        self.window_s = measured as f64 / 1e9;
        let State::Searching(search) = &self.state else {
            return;
        };
        let is_whole = self.windows.seen.len() >= trial.windows;
        if is_whole || !search.go_on(&trial, &self.windows.seen) {
            self.tried(&trial);
        }
    }

    /// Whether the cell that the latest trial was of has more that is wanted.
    pub(crate) fn goes_on(&self) -> bool {
        match self.state {
            State::New(_) => true,
            _ if !self.windows.seen.is_empty() => true,
            // The first trial of a search is another cell's.
            State::Searching(_) => !self.planned.is_empty(),
            State::Done(_) | State::Recorded => false,
        }
    }

    /// A trial that has not been seen whole counts as not made.
    pub(crate) fn cut(&mut self) {
        self.windows = Windows::default();
        if let State::New(loops) = &mut self.state {
            loops.cut();
        }
    }

    /// No connection could be opened: whatever was due was not answered.
    pub(crate) fn is_gone(&mut self, frame: &Frame) {
        let planned = self.planned().ok();
        if let Some(trial) = planned.and_then(|planned| planned.first().copied()) {
            self.windows.seen = vec![frame.nothing(trial.rate)];
            self.window_s = trial.window_s();
            self.tried(&trial);
        }
    }

    /// Tells the search what its trial has shown.
    fn tried(&mut self, trial: &Trial) {
        let windows = std::mem::take(&mut self.windows).seen;
        let State::Searching(search) = &mut self.state else {
            return;
        };
        // Arms that are tried side by side are as long as the longest of them.
        let trial = Trial {
            measure_s: self.window_s * trial.windows as f64,
            ..*trial
        };
        search.seen(&trial, &windows);
        self.rest_s += trial.rest_s;
        self.planned.remove(0);
        let next = search.clone().propose().ok();
        let is_as_planned = self
            .planned
            .first()
            .zip(next)
            .is_some_and(|(planned, next)| {
                planned.stage == next.stage && planned.rate == next.rate
            });
        if !is_as_planned {
            self.planned.clear();
        }
    }

    /// The answer was given.
    pub(crate) fn done(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Recorded) {
            State::Searching(search) | State::Done(search) => State::Done(search),
            State::New(_) | State::Recorded => State::Recorded,
        };
    }
}
