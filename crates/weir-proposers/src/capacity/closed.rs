//! Closed loops before a search: the most that an arm completes, and whether the number of connections limits it.
//!
//! N connections that are always busy complete no more than N / D, D being the time that a request takes alone, and no
//! more than the slowest part of the server does (asymptotic bounds: Denning & Buzen 1978, Computing Surveys 10). A
//! loop with half as many connections shows which bound applies: under the first, it completes half as much. Busy
//! connections alone do not show it: those of a saturated server are busy too. A last loop with all connections shows
//! whether the machine itself became slower or faster meanwhile.

use weir_model::record::{SliceRecord, TrialRecord};

use super::CLOSED;

/// Number of blocks of each loop that checks the first one.
const CHECK_BLOCKS: u32 = 5;
/// Number of slices in a block.
const SLICES: f64 = 2.0;
/// Ratio of completed requests with twice as many connections, from which on connections count as the limit.
const GROWS: f64 = 1.5;
/// Minimum share of the requests that half the connections must complete. An arm that completes less has broken or
/// changed.
const LEAST: f64 = 0.25;
/// Share of a loop's time in which the machine may stand still, or a quota may throttle the generator. Beyond that, the
/// loop does not show whether connections are the limit.
const HELD_UP: f64 = 0.1;
/// Share of errors in a loop's responses beyond which the server does not take so many connections, and more are not
/// tried.
const REFUSED: f64 = 0.01;

/// State of an arm's closed loops.
pub(crate) struct ClosedLoops {
    /// Connections in use. `most` is their maximum, and `step` the current loop.
    connections: u32,
    most: u32,
    step: Step,
    /// Slices of the current loop. `used` has for each block the share of the objective's allowance that it used, of
    /// its worst limit; `failed` counts errors.
    slices: Vec<SliceRecord>,
    used: Vec<f64>,
    failed: u64,
    /// Slices of the loop with all connections.
    whole: Vec<SliceRecord>,
    /// Slices of the loop with half the connections.
    half: Vec<SliceRecord>,
    /// Seconds of the completed loops.
    seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Loop with all connections.
    Whole,
    /// Loop with half the connections.
    Half,
    /// Loop with all connections again, where half of them completed about half as much.
    WholeAgain,
    /// Loop with twice the connections of the loop in `whole`.
    Twice,
}

/// Result of the closed loops.
pub(crate) struct Settled {
    /// Connections to use in the search.
    pub(crate) connections: u32,
    /// Slices of the loop with that many connections.
    pub(crate) slices: Vec<SliceRecord>,
    /// True if more connections would complete more requests.
    pub(crate) are_the_limit: bool,
    /// Seconds of all loops.
    pub(crate) seconds: f64,
}

/// Returns the seconds of a loop with so many blocks.
fn length_s(blocks: u32) -> f64 {
    CLOSED.0.as_secs_f64() * SLICES * f64::from(blocks)
}

/// Returns the seconds of all loops of an arm whose connections are not the limit.
pub(crate) fn likely_s() -> f64 {
    length_s(CLOSED.1 + CHECK_BLOCKS)
}

/// Returns the maximum seconds of all loops of an arm with `connections` connections that may be raised to `most`.
pub(crate) fn most_s(connections: u32, most: Option<u32>) -> f64 {
    let times = most.unwrap_or(connections) / connections.max(1);
    likely_s() + length_s(CHECK_BLOCKS) + f64::from(times.max(1).ilog2()) * length_s(CLOSED.1)
}

impl ClosedLoops {
    /// Creates the loops of an arm with `connections` connections that may be raised to `most`.
    pub(crate) fn new(connections: u32, most: Option<u32>) -> ClosedLoops {
        ClosedLoops {
            connections,
            most: most.unwrap_or(connections),
            step: Step::Whole,
            slices: Vec::new(),
            used: Vec::new(),
            failed: 0,
            whole: Vec::new(),
            half: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Returns connections and blocks of the loop to measure.
    pub(crate) fn wanted(&self) -> (u32, u32) {
        match self.step {
            Step::Whole => (self.connections, CLOSED.1),
            Step::Half => (self.connections / 2, CHECK_BLOCKS),
            Step::WholeAgain => (self.connections, CHECK_BLOCKS),
            Step::Twice => (self.connections * 2, CLOSED.1),
        }
    }

    /// Discards an incomplete loop; it counts as not made.
    pub(crate) fn cut(&mut self) {
        self.slices.clear();
        self.used.clear();
        self.failed = 0;
    }

    /// Takes in a block of the wanted loop; `used` is the share of the objective's allowance that it used. Returns the
    /// result of all loops when no further loop is needed.
    pub(crate) fn take(&mut self, record: &TrialRecord, used: f64) -> Option<Settled> {
        self.slices.extend(&record.slices);
        self.used.push(used);
        self.failed += record.errors.iter().map(|error| error.count).sum::<u64>();
        let (_, blocks) = self.wanted();
        if self.used.len() < blocks as usize {
            return None;
        }
        self.seconds += length_s(blocks);
        let holds = self.used.iter().sum::<f64>() <= self.used.len() as f64;
        let slices = std::mem::take(&mut self.slices);
        let done: u64 = slices.iter().map(|slice| slice.completed_whole).sum();
        let is_refused = self.failed as f64 > REFUSED * (done + self.failed) as f64;
        self.cut();
        match self.step {
            Step::Whole => {
                self.whole = slices;
                self.step = Step::Half;
                // A single one has no half; one that is too slow already needs no more of them.
                match (holds, self.connections) {
                    (false, _) => Some(self.settled(false)),
                    (true, 1) => self.raised(),
                    (true, _) => None,
                }
            }
            Step::Half if is_about_half(&slices, &self.whole) => {
                (self.half, self.step) = (slices, Step::WholeAgain);
                None
            }
            Step::Half => Some(self.settled(false)),
            Step::WholeAgain if is_about_half(&self.half, &slices) => self.raised(),
            Step::WholeAgain => Some(self.settled(false)),
            Step::Twice if is_refused => Some(self.settled(true)),
            Step::Twice => {
                let times = rate(&slices) / rate(&self.whole);
                if times >= 1.0 {
                    (self.whole, self.connections) = (slices, 2 * self.connections);
                }
                if times >= GROWS && holds { self.raised() } else { Some(self.settled(false)) }
            }
        }
    }

    /// Goes on with twice the connections, or returns the result if so many are not allowed.
    fn raised(&mut self) -> Option<Settled> {
        if 2 * self.connections > self.most {
            return Some(self.settled(true));
        }
        self.step = Step::Twice;
        None
    }

    fn settled(&mut self, are_the_limit: bool) -> Settled {
        Settled {
            connections: self.connections,
            slices: std::mem::take(&mut self.whole),
            are_the_limit,
            seconds: self.seconds,
        }
    }
}

/// Returns true if a loop completed about half as much as another, and neither was held up.
fn is_about_half(half: &[SliceRecord], whole: &[SliceRecord]) -> bool {
    let share = rate(half) / rate(whole);
    LEAST < share && share * GROWS < 1.0 && !is_held_up(half) && !is_held_up(whole)
}

/// Returns true if the machine stood still, or the generator was throttled, for more than [`HELD_UP`] of a loop's time.
fn is_held_up(slices: &[SliceRecord]) -> bool {
    let held_up_ns = sum_of(slices, |slice| slice.held_up.worst_ns());
    let throttled_ns = sum_of(slices, |slice| slice.throttled_ns);
    held_up_ns.max(throttled_ns) > HELD_UP * sum_of(slices, |slice| slice.measured_ns)
}

/// Sums a count over the slices.
pub(super) fn sum_of(slices: &[SliceRecord], count: fn(&SliceRecord) -> u64) -> f64 {
    slices.iter().map(count).sum::<u64>() as f64
}

/// Returns the completed requests per second.
pub(crate) fn rate(slices: &[SliceRecord]) -> f64 {
    let measured: u64 = slices.iter().map(|slice| slice.measured_ns).sum();
    let completed: u64 = slices.iter().map(|slice| slice.completed).sum();
    completed as f64 / (measured.max(1) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;
    use weir_model::record::{HeldUp, HoldUps};

    use super::*;

    /// Makes a block with so many completed requests, and with these times in which the generator stood still and was
    /// throttled.
    fn block(completed: u64, held_up_ms: u64, throttled_ms: u64) -> TrialRecord {
        let slice = SliceRecord {
            measured_ns: 500_000_000,
            completed,
            completed_whole: completed,
            throttled_ns: throttled_ms * 1_000_000,
            held_up: HoldUps {
                generator: Some(HeldUp { late_ns: held_up_ms * 1_000_000, ..HeldUp::default() }),
                ..HoldUps::default()
            },
            ..SliceRecord::default()
        };
        TrialRecord { slices: vec![slice], ..fixture::trial("closed", "stock", 1) }
    }

    /// A machine that became slower for one loop is not taken for a limit of connections.
    #[test]
    fn half_as_much_counts_only_between_two_loops_with_all_connections() {
        for (completed_in_loops, are_the_limit) in
            [([1000, 500, 1000], true), ([1000, 500, 500], false), ([1000, 900, 1000], false)]
        {
            let mut loops = ClosedLoops::new(10, None);
            let mut index = 0;
            let settled = loop {
                let (_, blocks) = loops.wanted();
                let trial = block(completed_in_loops[index], 0, 0);
                if let Some(settled) = (0..blocks).find_map(|_| loops.take(&trial, 0.5)) {
                    break settled;
                }
                index += 1;
            };
            assert_eq!(settled.are_the_limit, are_the_limit, "{completed_in_loops:?}");
        }
    }

    #[test]
    fn loops_of_a_machine_that_stands_still_do_not_tell_what_connections_let_through() {
        for (held_up_ms, throttled_ms, are_the_limit) in
            [(20, 20, true), (200, 0, false), (0, 200, false)]
        {
            let mut loops = ClosedLoops::new(10, None);
            let settled = loop {
                let (connections, _) = loops.wanted();
                let completed = u64::from(connections) * 100;
                if let Some(settled) = loops.take(&block(completed, held_up_ms, throttled_ms), 0.5)
                {
                    break settled;
                }
            };
            let held = format!("held up {held_up_ms} ms, throttled {throttled_ms} ms");
            assert_eq!(settled.are_the_limit, are_the_limit, "{held}");
        }
    }
}
