//! Waiting for an answer: who waits, and for how long.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::{AgentError, SILENCE};

/// A part of an answer before anybody has looked into it.
pub(super) enum RawPart {
    Event(Box<RawValue>),
    Done(Box<RawValue>),
    Failed(AgentError),
}

/// Callback that takes the parts of an answer: called by the thread that reads them.
pub(super) type Listener = Box<dyn FnMut(RawPart) + Send>;

/// Somebody who waits.
pub(super) struct Waiting {
    pub(super) to: Listener,
    /// Since it was asked, or the last part came.
    pub(super) since: Instant,
    /// When the whole answer is due, where its length is known.
    pub(super) due: Option<Instant>,
}

impl Waiting {
    /// Begins now, for an answer that takes at most so long.
    pub(super) fn now(to: Listener, longest: Option<Duration>) -> Waiting {
        let since = Instant::now();
        let due = longest.and_then(|longest| since.checked_add(longest));
        Waiting { to, since, due }
    }

    /// The limit that has passed: the second patience once an end is asked for (`ending`), or is due. A load, whose end
    /// is due, has nothing to put back.
    pub(super) fn overdue(
        &self,
        ending: Option<Instant>,
        [patience, at_the_end]: [Duration; 2],
    ) -> Option<Duration> {
        let now = Instant::now();
        let (since, limit) = match ending.or(self.due.filter(|due| *due < now)) {
            None => (self.since, patience),
            Some(ending) if self.due.is_some() => (ending, at_the_end.min(SILENCE)),
            Some(ending) => (ending, at_the_end),
        };
        (now.duration_since(since.max(self.since)) > limit).then_some(limit)
    }
}
