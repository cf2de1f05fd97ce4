//! The search for what one arm carries, told by the records of its trials.

use weir_model::record::{CeilingRecord, ObservedRecord, TrialRecord};
use weir_search::{Answer, Search, Trial};

use super::closed::ClosedLoops;
use super::seen::{Frame, Windows, observed};

/// An arm, and how far the search for what it carries is.
pub(crate) struct Searched {
    pub(crate) name: String,
    state: State,
    /// Windows of the trial that is planned.
    windows: Windows,
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
            windows: Windows::default(),
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
            search.limit_time(left_s);
        }
    }

    /// Whether its search has ended only because its share of the time was over.
    pub(crate) fn is_out_of_time(&self) -> bool {
        matches!(&self.state, State::Searching(search) if search.is_out_of_time())
    }

    /// Seconds of the hold without which it has no claim, or nothing narrows it.
    pub(crate) fn hold_needed_s(&self) -> Option<f64> {
        match &self.state {
            State::Searching(search) => search.hold_needed_s(),
            _ => None,
        }
    }

    /// Whether it has not been answered.
    pub(crate) fn is_searching(&self) -> bool {
        matches!(self.state, State::Searching(_))
    }

    /// Next trial of its search.
    ///
    /// # Errors
    /// The answer, once there is one.
    pub(crate) fn planned(&self) -> Result<Trial, Box<Answer>> {
        match self.search() {
            Some(search) => search.propose(),
            None => unreachable!("an arm is asked for trials while it is searched"),
        }
    }

    /// Seconds of trials that it has not used of a share of this length; 0 once it is answered.
    pub(crate) fn unused_s(&self, share_s: f64) -> f64 {
        if self.is_open() {
            (share_s - self.seconds()).max(1.0)
        } else {
            0.0
        }
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
            State::Searching(search) => Some(search.progress().left_s),
            State::Done(_) | State::Recorded => Some(0.0),
        }
    }

    /// Rates between which its capacity is thought to be.
    pub(crate) fn between(&self) -> Option<(f64, f64)> {
        let between = self.search()?.progress().between;
        between.filter(|(low, high)| low.is_finite() && high.is_finite())
    }

    /// Logarithm of the ratio of the rates of [`Searched::between`]; 0 where they are not known.
    pub(crate) fn width(&self) -> f64 {
        let between = self.between().filter(|(low, _)| *low > 0.0);
        between.map_or(0.0, |(low, high)| (high / low).ln())
    }

    /// The highest rate that a hold has held so far.
    pub(crate) fn held(&self) -> Option<ObservedRecord> {
        self.search()?.progress().held.map(observed)
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
                let goal = frame.goal(&self.name, &settled, self.ceiling);
                self.state = State::Searching(Box::new(Search::new(goal)));
            }
            return;
        }
        let Some(rate) = record.rate_intended else {
            return;
        };
        let State::Searching(search) = &mut self.state else {
            return;
        };
        let Ok(trial) = search.propose() else { return };
        if (rate / trial.rate - 1.0).abs() > 1e-6 {
            return;
        }
        frame.put(&mut self.windows, record);
        if !search.go_on(&trial, &self.windows.seen) {
            search.observe(&trial, &std::mem::take(&mut self.windows).seen);
            self.rest_s += trial.rest_s;
        }
    }

    /// Whether more is wanted of the cell that the latest block was of: the closed loop goes on, or the trial has had no
    /// verdict yet.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(self.state, State::New(_)) || !self.windows.seen.is_empty()
    }

    /// A trial that has not been seen whole counts as not made.
    pub(crate) fn cut(&mut self) {
        self.windows = Windows::default();
        if let State::New(loops) = &mut self.state {
            loops.cut();
        }
    }

    /// No connection could be opened: nothing that was due was answered.
    pub(crate) fn is_gone(&mut self, frame: &Frame) {
        self.windows = Windows::default();
        if let State::Searching(search) = &mut self.state
            && let Ok(trial) = search.propose()
        {
            let windows = vec![frame.nothing(trial.rate); trial.needed];
            search.observe(&trial, &windows);
            self.rest_s += trial.rest_s;
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
