//! What a trial's record says to a search, and what the measurement itself cannot carry.

use weir_model::limit::Limit;
use weir_model::record::{
    CeilingOf, CeilingRecord, ObservedRecord, RunHeader, SliceRecord, TrialRecord,
};
use weir_model::spin::Spin;
use weir_search::{Bound, Goal, Observed, Window};

use super::closed::{self, Settled};
use super::{CLOSED, time};

/// From this share of the CPU time that it has a role may be what cannot carry more, and from that it is.
const NEAR: f64 = 0.8;
const BUSY: f64 = 0.97;
/// The generator's own lateness at the p99, as a share of the limit of a response time: from there on a trial that broke
/// it says more about the generator (as the rule `dispatch-lag` has it).
const LATE: f64 = 0.5;
/// The lateness that is allowed where no limit is one of time, nanoseconds.
const LATE_NS: f64 = 5e6;
/// Shares of the time that the generator was held back, by a CPU quota or by the hypervisor.
const THROTTLED: f64 = 0.05;
const STOLEN: f64 = 0.2;
/// What is taken to have been sent in time where the generator was the limit: how much it was, no record says. It is tried
/// with as much less next.
const SENT: f64 = 0.7;
/// Of what was due so much may be missing without anybody having waited for it (as the rule `offered-rate` has it).
const MISSING: f64 = 0.01;

/// What the windows of one trial have shown so far.
#[derive(Default)]
pub(crate) struct Windows {
    pub(crate) seen: Vec<Window>,
    held_back: HeldBack,
}

/// Time in which the generator was held back, of that of its windows.
#[derive(Default)]
struct HeldBack {
    throttled_ns: f64,
    steal_ns: f64,
    whole_ns: f64,
}

impl HeldBack {
    fn add(&mut self, trial: &TrialRecord) {
        let sum = |of: fn(&SliceRecord) -> u64| trial.slices.iter().map(of).sum::<u64>() as f64;
        self.throttled_ns += sum(|slice| slice.throttled_ns);
        self.steal_ns += sum(|slice| slice.generator_steal_ns);
        self.whole_ns += sum(|slice| slice.whole_ns).max(1.0);
    }

    fn is_much(&self, generators: f64) -> bool {
        self.throttled_ns > THROTTLED * self.whole_ns
            || self.steal_ns > STOLEN * self.whole_ns * generators
    }
}

/// What all searches of a run have in common.
pub(crate) struct Frame {
    pub(crate) header: RunHeader,
    /// Requests per second that the generator can send, where that is known.
    most: Option<f64>,
}

impl Frame {
    pub(crate) fn new(header: &RunHeader, most: Option<f64>) -> Frame {
        Frame {
            header: header.clone(),
            most,
        }
    }

    /// Question about an arm that did that in a closed loop. Nothing above a ceiling can be seen.
    pub(crate) fn goal(
        &self,
        arm: &str,
        settled: &Settled,
        ceiling: Option<CeilingRecord>,
    ) -> Goal {
        let study = &self.header.study;
        let spec = study.arms.iter().find(|spec| spec.name == arm);
        let is_started = spec.is_some_and(|spec| study.proxy_of(spec).is_started());
        Goal {
            bounds: study.capacity.iter().map(bound).collect(),
            confidence: study.objective.confidence,
            precision: study.search.precision,
            hold_s: study.search.hold.as_secs_f64(),
            time_s: time::trials_s(study, settled.seconds),
            until_held_s: time::until_held_s(study),
            burst_s: study.search.burst.map(|burst| burst.as_secs_f64()),
            ceiling: ceiling.map(|ceiling| ceiling.rate),
            // An arm that completed nothing is asked for one request per second.
            closed_rate: closed::rate(&settled.slices).max(1.0),
            renews: is_started && !study.is_in_turn(),
        }
    }

    /// What the measurement carries at most: what the origin is told to carry; and where closed loops came near it, all
    /// that the connections let through, or the rate by the share of its CPU time that a role used (utilization law: Denning
    /// & Buzen 1978, Computing Surveys 10).
    pub(crate) fn ceiling(&self, settled: &Settled) -> Option<CeilingRecord> {
        let (study, slices) = (&self.header.study, &settled.slices[..]);
        let rate = closed::rate(slices);
        let connections = settled.are_the_limit.then_some(CeilingRecord {
            of: CeilingOf::Connections,
            rate,
        });
        let whole_ns = CLOSED.0.as_nanos() as f64 * slices.len() as f64;
        let throttled_ns: u64 = slices.iter().map(|slice| slice.throttled_ns).sum();
        let (of, busy) = match throttled_ns as f64 > THROTTLED * whole_ns {
            // A quota has let it do no more.
            true => (CeilingOf::Generator, 1.0),
            false => self.busiest(slices, whole_ns),
        };
        let seen = (busy >= NEAR).then(|| CeilingRecord {
            of,
            rate: rate / busy.min(1.0),
        });
        let known = self.most.map(|rate| CeilingRecord {
            of: CeilingOf::Generator,
            rate,
        });
        let told = study.origin.at_most().map(|rate| CeilingRecord {
            of: CeilingOf::Origin,
            rate: rate / share(slices),
        });
        let all = [connections, seen, known, told].into_iter().flatten();
        all.min_by(|a, b| a.rate.total_cmp(&b.rate))
    }

    /// Who of generator and origin used more of its CPUs, and how much. On the same CPUs they are busy together.
    fn busiest(&self, slices: &[SliceRecord], whole_ns: f64) -> (CeilingOf, f64) {
        let cpus = &self.header.cpus;
        let sum = |of: fn(&SliceRecord) -> u64| slices.iter().map(of).sum::<u64>() as f64;
        let spins = self
            .header
            .study
            .loads
            .iter()
            .any(|load| matches!(load.spin, Spin::For(_)) && !load.spin.is_off());
        let generator_ns = match spins {
            // Its CPU time says nothing.
            true => 0.0,
            false => sum(|slice| slice.generator_cpu_ns),
        };
        let origin_ns = sum(|slice| slice.origin_cpu_ns);
        let (_, shared) = self.header.shared_cpus();
        let (generators, origins) = (self.header.generator_cpus(), cpus.origin.cpus().len());
        let of = match generator_ns >= origin_ns {
            true => CeilingOf::Generator,
            false => CeilingOf::Origin,
        };
        let used = |ns: f64, count: usize| ns / (whole_ns * count.max(1) as f64);
        let (generator, origin) = (used(generator_ns, generators), used(origin_ns, origins));
        match shared {
            0 if generator >= origin => (CeilingOf::Generator, generator),
            0 => (CeilingOf::Origin, origin),
            _ => (
                of,
                used(generator_ns + origin_ns, generators + origins - shared),
            ),
        }
    }

    /// Takes in what a window of a trial showed. The kernel tells of a quota's times when they end, and requests go on
    /// to wait after them: the window with the time that was taken is another than the one that it breaks. So all that
    /// broke are the generator's in a trial in which it was held back.
    pub(crate) fn put(&self, windows: &mut Windows, trial: &TrialRecord) {
        windows.seen.push(self.seen(trial));
        windows.held_back.add(trial);
        if windows.held_back.is_much(self.generators()) {
            let broken = windows
                .seen
                .iter_mut()
                .filter(|seen| self.breaks(&seen.bad));
            broken.for_each(|seen| seen.sent = seen.sent.min(SENT));
        }
    }

    fn generators(&self) -> f64 {
        self.header.generator_cpus() as f64
    }

    /// Whether so much is more than the objective allows.
    fn breaks(&self, bad: &[f64]) -> bool {
        let mut limits = self.header.study.capacity.iter().zip(bad);
        limits.any(|(limit, bad)| *bad > bound(limit).allowed)
    }

    fn seen(&self, trial: &TrialRecord) -> Window {
        let sum = |of: fn(&SliceRecord) -> u64| trial.slices.iter().map(of).sum::<u64>() as f64;
        let seconds = sum(|slice| slice.measured_ns) / 1e9;
        let study = &self.header.study;
        let limits = study.capacity.iter().zip(&trial.bad);
        Window {
            bad: trial.bad.clone(),
            value: limits
                .map(|(limit, bad)| value(trial, limit, *bad))
                .collect(),
            due: sum(|slice| slice.due) / seconds,
            sent: match self.is_generators(trial) {
                true => SENT,
                false => 1.0,
            },
            completed: sum(|slice| slice.completed) / seconds,
            is_held_up: trial.stood_still(&study.capacity),
        }
    }

    /// How much of what the objective allows a trial has used, of the limit that it used most of.
    pub(crate) fn used(&self, trial: &TrialRecord) -> f64 {
        let limits = self.header.study.capacity.iter().zip(&trial.bad);
        let used = limits.map(|(limit, bad)| bad / bound(limit).allowed);
        used.fold(0.0, f64::max)
    }

    /// What is seen of an arm that nobody can connect to.
    pub(crate) fn nothing(&self, rate: f64) -> Window {
        let limits = &self.header.study.capacity;
        Window {
            bad: vec![1.0; limits.len()],
            value: vec![f64::NAN; limits.len()],
            due: rate,
            sent: 1.0,
            completed: 0.0,
            is_held_up: false,
        }
    }

    /// Whether a trial that broke its objective says something about the generator and not about the arm.
    fn is_generators(&self, trial: &TrialRecord) -> bool {
        let sum = |of: fn(&SliceRecord) -> u64| trial.slices.iter().map(of).sum::<u64>() as f64;
        let due = sum(|slice| slice.due);
        let offered = sum(|slice| slice.sent + slice.queued + slice.dropped);
        if (due - offered).abs() > MISSING * due {
            return true;
        }
        if !self.breaks(&trial.bad) {
            return false;
        }
        let times = self.header.study.capacity.iter().filter_map(Limit::time);
        let late_ns = times.min().map(|time| time.as_nanos() as f64 * LATE);
        let mut held_back = HeldBack::default();
        held_back.add(trial);
        let is_shared = self.header.shared_cpus().1 > 0;
        let is_busy = match self.busiest(&trial.slices, held_back.whole_ns) {
            (CeilingOf::Generator, busy) => busy >= BUSY,
            // The origin leaves it no time.
            (_, busy) => is_shared && busy >= BUSY,
        };
        is_busy
            || trial.dispatch_lag.p99 as f64 > late_ns.unwrap_or(LATE_NS)
            || held_back.is_much(self.generators())
    }
}

/// Requests that the origin was asked for one that the arm answered: less than 1 where a cache answers some.
fn share(slices: &[SliceRecord]) -> f64 {
    let sum = |of: fn(&SliceRecord) -> u64| slices.iter().map(of).sum::<u64>() as f64;
    let share = sum(|slice| slice.origin_requests) / sum(|slice| slice.completed_whole);
    match share > 0.0 && share < 1.0 {
        true => share,
        false => 1.0,
    }
}

/// A rate and its seconds, as a record has them.
pub(crate) fn observed(observed: Observed) -> ObservedRecord {
    ObservedRecord {
        rate: observed.rate,
        seconds: observed.seconds,
    }
}

/// A limit in the words of a search.
fn bound(limit: &Limit) -> Bound {
    match limit {
        Limit::Quantile(quantile, time) => Bound::quantile(*quantile, time.as_secs_f64()),
        Limit::Mean(time) => Bound::mean(time.as_secs_f64()),
        Limit::Errors(share) => Bound::errors(*share),
    }
}

/// What a limit is about, as far as the record has it: seconds, or the share of errors.
fn value(trial: &TrialRecord, limit: &Limit, bad: f64) -> f64 {
    let times = &trial.response_time;
    let quantiles = [
        (0.5, times.p50),
        (0.9, times.p90),
        (0.99, times.p99),
        (0.999, times.p999),
    ];
    match limit {
        Limit::Errors(_) => bad,
        Limit::Mean(_) => times.mean / 1e9,
        Limit::Quantile(quantile, _) => quantiles
            .iter()
            .find(|(known, _)| (known - quantile).abs() < 1e-9)
            .map_or(f64::NAN, |(_, ns)| *ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;
    use weir_model::study::ArmRole;

    use super::*;

    const MS: u64 = 1_000_000;

    /// A window in which so much of the time was taken by a quota, and so much was too late.
    fn window(throttled_ns: u64, bad: f64) -> TrialRecord {
        let slice = SliceRecord {
            measured_ns: 50 * MS,
            whole_ns: 50 * MS,
            due: 100,
            sent: 100,
            throttled_ns,
            ..SliceRecord::default()
        };
        TrialRecord {
            bad: vec![bad],
            slices: vec![slice],
            ..fixture::trial("closed", "stock", 1)
        }
    }

    #[test]
    fn what_a_quota_broke_is_the_generators_in_whichever_window_it_is_counted() {
        let mut study = fixture::study(vec![fixture::arm("stock", ArmRole::Baseline, &[])]);
        study.capacity = Limit::parse_all("p90 < 30ms").expect("a limit");
        let frame = Frame::new(&fixture::header(study), None);
        let sent = |all: &[TrialRecord]| -> Vec<f64> {
            let mut windows = Windows::default();
            all.iter().for_each(|one| frame.put(&mut windows, one));
            windows.seen.iter().map(|seen| seen.sent).collect()
        };
        let broken = window(0, 0.8);
        let kept = window(0, 0.0);
        assert_eq!(sent(&[broken.clone(), kept.clone()]), [1.0, 1.0]);
        let told = window(60 * MS, 0.0);
        assert_eq!(
            sent(&[kept, broken.clone(), told, broken]),
            [1.0, SENT, 1.0, SENT]
        );
    }
}
