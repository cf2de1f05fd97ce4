//! Search for the rate that one arm carries, driven by the records of its trials.

use weir_model::record::{CeilingRecord, ObservedRecord, TrialRecord};
use weir_search::{Answer, Search, Trial};

use super::closed::ClosedLoops;
use super::seen::{Frame, Windows, observed};

/// An arm and the state of its search.
pub(crate) struct Searched {
    pub(crate) name: String,
    state: State,
    /// Windows of the planned trial so far.
    windows: Windows,
    /// Session of the latest trial.
    session: u32,
    /// Highest rate that the measurement itself can carry; `None` if no such limit is known.
    pub(crate) ceiling: Option<CeilingRecord>,
    /// Connections used in the search.
    pub(crate) connections: u32,
    /// Total rest before the arm's trials, seconds.
    pub(crate) rest_s: f64,
}

enum State {
    /// Closed loops before the search.
    New(ClosedLoops),
    Searching(Box<Search>),
    Done(Box<Search>),
    /// Answered in an earlier session, whose records have the result.
    Recorded,
}

impl Searched {
    /// Creates the search of an arm with `connections` connections, or up to `most` if the study allows more.
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

    /// Returns connections and blocks of the closed loop that is still to be measured; `None` once the search has
    /// begun.
    pub(crate) fn closed_loop(&self) -> Option<(u32, u32)> {
        match &self.state {
            State::New(loops) => Some(loops.wanted()),
            _ => None,
        }
    }

    /// Returns true until the arm is answered.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::New(_) | State::Searching(_))
    }

    /// Limits the remaining trials to `left_s` seconds by the clock.
    pub(crate) fn has_left(&mut self, left_s: f64) {
        if let State::Searching(search) = &mut self.state {
            search.limit_time(left_s);
        }
    }

    /// Returns true if the search has ended only because its share of the time is over.
    pub(crate) fn is_out_of_time(&self) -> bool {
        matches!(&self.state, State::Searching(search) if search.is_out_of_time())
    }

    /// Returns the seconds of the hold without which the arm gets no claim, or no narrower one.
    pub(crate) fn hold_needed_s(&self) -> Option<f64> {
        match &self.state {
            State::Searching(search) => search.hold_needed_s(),
            _ => None,
        }
    }

    /// Returns true while the search runs: after the closed loops and before the answer.
    pub(crate) fn is_searching(&self) -> bool {
        matches!(self.state, State::Searching(_))
    }

    /// Returns the next trial of the search.
    ///
    /// # Errors
    /// The answer, once the search has one.
    pub(crate) fn planned(&self) -> Result<Trial, Box<Answer>> {
        match self.search() {
            Some(search) => search.propose(),
            None => unreachable!("an arm is asked for trials while it is searched"),
        }
    }

    /// Returns the seconds of trials that the arm has not used of a share of this length; 0 once it is answered.
    pub(crate) fn unused_s(&self, share_s: f64) -> f64 {
        if self.is_open() { (share_s - self.seconds()).max(1.0) } else { 0.0 }
    }

    /// Returns the seconds of trials so far.
    pub(crate) fn seconds(&self) -> f64 {
        self.search().map_or(0.0, |search| search.progress().seconds)
    }

    /// Estimates the remaining seconds of trials; `None` before the search has begun.
    pub(crate) fn left_s(&self) -> Option<f64> {
        match &self.state {
            State::New(_) => None,
            State::Searching(search) => Some(search.progress().left_s),
            State::Done(_) | State::Recorded => Some(0.0),
        }
    }

    /// Returns the rates between which the arm's capacity is estimated to be; `None` if not known.
    pub(crate) fn between(&self) -> Option<(f64, f64)> {
        let between = self.search()?.progress().between;
        between.filter(|(low, high)| low.is_finite() && high.is_finite())
    }

    /// Returns the logarithm of the ratio of the two rates of [`Searched::between`]; 0 if they are not known.
    pub(crate) fn width(&self) -> f64 {
        self.between().filter(|(low, _)| *low > 0.0).map_or(0.0, |(low, high)| (high / low).ln())
    }

    /// Returns the highest rate that the arm has carried through a hold so far.
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
    /// next planned trial. A window with another rate than the planned trial is ignored.
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

    /// Returns true if the cell of the latest block is to go on: the closed loop continues, or the trial has no verdict
    /// yet.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(self.state, State::New(_)) || !self.windows.seen.is_empty()
    }

    /// Discards an incomplete trial; it counts as not made.
    pub(crate) fn cut(&mut self) {
        self.windows = Windows::default();
        if let State::New(loops) = &mut self.state {
            loops.cut();
        }
    }

    /// Takes in that no connection could be opened: no due request was answered.
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

    /// Ends the search after its answer was reported.
    pub(crate) fn done(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Recorded) {
            State::Searching(search) | State::Done(search) => State::Done(search),
            State::New(_) | State::Recorded => State::Recorded,
        };
    }
}
