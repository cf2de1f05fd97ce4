//! Closed loops before a search: what an arm completes at most, and whether connections are what limits that.
//!
//! With N connections that are always busy no more than N / D is completed, D being the time that a request takes alone,
//! and no more than the slowest part of the server does (asymptotic bounds: Denning & Buzen 1978, Computing Surveys 10).
//! Half as many connections tell which of both it is: under the first bound they complete half as much. That connections
//! are busy does not tell it: those of a saturated server are too.

use weir_model::record::{SliceRecord, TrialRecord};

use super::CLOSED;

/// Blocks of the loop with half the connections.
const HALF: u32 = 5;
/// Slices of a block.
const SLICES: f64 = 2.0;
/// Connections limit what completes so many times as much with twice as many of them.
const GROWS: f64 = 1.5;
/// With half of them it completes half as much at least. One that does not has broken, or is another now.
const LEAST: f64 = 0.25;
/// Loops in which the machine stood still for more of the time, or a quota let the generator do nothing, do not tell what
/// connections let through.
const HELD_UP: f64 = 0.1;
/// More connections than the server takes are not tried again: of its answers this share were errors.
const REFUSED: f64 = 0.01;

/// The closed loops of an arm, as far as they are.
pub(crate) struct ClosedLoops {
    /// Connections that are asked over, and of the loop that goes on.
    connections: u32,
    most: u32,
    step: Step,
    /// Slices of that loop, and its responses that broke the objective, as the worst share of what is allowed.
    slices: Vec<SliceRecord>,
    used: Vec<f64>,
    failed: u64,
    /// The loop with all connections.
    whole: Vec<SliceRecord>,
    /// Seconds of the loops that were made whole.
    seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// With all connections.
    Whole,
    /// With half of them.
    Half,
    /// With twice as many as completed what `whole` has.
    Twice,
}

/// What they have shown.
pub(crate) struct Settled {
    /// Connections that the search asks over.
    pub(crate) connections: u32,
    /// The loop with all of these.
    pub(crate) slices: Vec<SliceRecord>,
    /// Whether with more of them more would be completed.
    pub(crate) are_the_limit: bool,
    /// Seconds of all the loops.
    pub(crate) seconds: f64,
}

/// Seconds of a loop of so many blocks.
fn length_s(blocks: u32) -> f64 {
    CLOSED.0.as_secs_f64() * SLICES * f64::from(blocks)
}

/// Seconds of the loops of an arm whose connections are not the limit.
pub(crate) fn likely_s() -> f64 {
    length_s(CLOSED.1 + HALF)
}

/// Seconds of its loops at most, where it is asked over so many connections, and may be over as many as `most`.
pub(crate) fn most_s(connections: u32, most: Option<u32>) -> f64 {
    let times = most.unwrap_or(connections) / connections.max(1);
    likely_s() + f64::from(times.max(1).ilog2()) * length_s(CLOSED.1)
}

impl ClosedLoops {
    /// Of an arm that is asked over so many connections, and may be over as many as `most`.
    pub(crate) fn new(connections: u32, most: Option<u32>) -> ClosedLoops {
        ClosedLoops {
            connections,
            most: most.unwrap_or(connections),
            step: Step::Whole,
            slices: Vec::new(),
            used: Vec::new(),
            failed: 0,
            whole: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Connections and blocks of the loop that is to be measured.
    pub(crate) fn wanted(&self) -> (u32, u32) {
        match self.step {
            Step::Whole => (self.connections, CLOSED.1),
            Step::Half => (self.connections / 2, HALF),
            Step::Twice => (self.connections * 2, CLOSED.1),
        }
    }

    /// A loop that has not been seen whole counts as not made.
    pub(crate) fn cut(&mut self) {
        self.slices.clear();
        self.used.clear();
        self.failed = 0;
    }

    /// Takes in a block of the loop that is wanted, which used so much of what the objective allows; says what all have
    /// shown when no further is.
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
            Step::Half => {
                let share = rate(&slices) / rate(&self.whole);
                let is_half = LEAST < share && share * GROWS < 1.0;
                if is_half && !is_held_up(&slices) && !is_held_up(&self.whole) {
                    self.raised()
                } else {
                    Some(self.settled(false))
                }
            }
            Step::Twice if is_refused => Some(self.settled(true)),
            Step::Twice => {
                let times = rate(&slices) / rate(&self.whole);
                if times >= 1.0 {
                    (self.whole, self.connections) = (slices, 2 * self.connections);
                }
                match times >= GROWS && holds {
                    true => self.raised(),
                    false => Some(self.settled(false)),
                }
            }
        }
    }

    /// Goes on with twice the connections, if there may be so many.
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

/// Whether the machine stood still for much of the time of a loop, or the generator was throttled.
fn is_held_up(slices: &[SliceRecord]) -> bool {
    let sum = |of: fn(&SliceRecord) -> u64| slices.iter().map(of).sum::<u64>() as f64;
    let held_up_ns = sum(|slice| slice.held_up.worst_ns());
    let throttled_ns = sum(|slice| slice.throttled_ns);
    held_up_ns.max(throttled_ns) > HELD_UP * sum(|slice| slice.measured_ns)
}

/// Responses per second.
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

    /// A block whose connections completed so much, while the generator stood still and was throttled for so long.
    fn block(completed: u64, held_up_ms: u64, throttled_ms: u64) -> TrialRecord {
        let slice = SliceRecord {
            measured_ns: 500_000_000,
            completed,
            completed_whole: completed,
            throttled_ns: throttled_ms * 1_000_000,
            held_up: HoldUps {
                generator: Some(HeldUp {
                    late_ns: held_up_ms * 1_000_000,
                    ..HeldUp::default()
                }),
                ..HoldUps::default()
            },
            ..SliceRecord::default()
        };
        TrialRecord {
            slices: vec![slice],
            ..fixture::trial("closed", "stock", 1)
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
