//! TIME_WAIT: a system's memory of connections that have ended.

use std::collections::VecDeque;

use weir_model::record::SocketCounts;

use crate::model::TimeWait;

/// Ended connections of one arm's namespace, which outlives the arm's instances.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// Ended connections in order of time: (time at which they are forgotten, nanoseconds of the world; number).
    ended: VecDeque<(u64, f64)>,
    waiting: f64,
}

impl Memory {
    /// Forgets expired connections and returns the factor by which requests take longer with the remaining ones.
    pub(crate) fn factor(&mut self, model: Option<&TimeWait>, at_ns: u64) -> f64 {
        while let Some((until, count)) = self.ended.front()
            && *until <= at_ns
        {
            self.waiting -= count;
            self.ended.pop_front();
        }
        match model {
            Some(model) if self.waiting >= model.room => model.factor,
            _ => 1.0,
        }
    }

    /// Adds the connections of requests that were passed on.
    pub(crate) fn add(&mut self, model: Option<&TimeWait>, requests: u64, at_ns: u64) {
        let Some(model) = model else { return };
        let count = requests as f64 * model.per_request;
        self.ended.push_back((at_ns + (model.lasts_s * 1e9) as u64, count));
        self.waiting += count;
    }

    pub(crate) fn sockets(&self) -> SocketCounts {
        SocketCounts { in_use: 1, orphans: 0, time_wait: self.waiting as u64 }
    }
}
