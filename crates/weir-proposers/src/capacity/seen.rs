//! Evaluation of a trial's record for a search, and limits of the measurement itself.

use weir_model::limit::Limit;
use weir_model::record::{
    CeilingOf, CeilingRecord, ObservedRecord, RunHeader, SliceRecord, TrialRecord,
};
use weir_model::spin::Spin;
use weir_search::{Bound, Goal, Observed, Window};

use super::closed::{self, Settled, sum_of};
use super::{CLOSED, time};

/// Share of its CPU time from which on a role may be the limiter; from [`BUSY`] on it is.
const NEAR: f64 = 0.8;
const BUSY: f64 = 0.97;
/// Share of a response time's limit. If the generator's own lateness at the p99 exceeds it, a trial that broke the
/// limit says more about the generator than the arm (as in the rule `dispatch-lag`).
const LATE: f64 = 0.5;
/// Allowed lateness of the generator if no limit is a time, nanoseconds.
const LATE_NS: f64 = 5e6;
/// Share of the time for which a CPU quota may hold the generator back; [`STOLEN`] is the share for the hypervisor.
const THROTTLED: f64 = 0.05;
const STOLEN: f64 = 0.2;
/// Share of the requests that is assumed to have been sent in time if the generator was the limiter, since no record
/// has the real share. The next trial's rate is lower by as much.
const SENT: f64 = 0.7;
/// Share of the due requests that may be missing without anybody having waited for them (as in the rule
/// `offered-rate`). If more are missing, the generator is the limiter.
const MISSING: f64 = 0.01;

/// Windows of one trial so far.
#[derive(Default)]
pub(crate) struct Windows {
    pub(crate) seen: Vec<Window>,
    held_back: HeldBack,
}

/// Time in which the generator was held back by a quota or the hypervisor, and length of the windows, nanoseconds.
#[derive(Default)]
struct HeldBack {
    throttled_ns: f64,
    steal_ns: f64,
    whole_ns: f64,
}

impl HeldBack {
    fn add(&mut self, trial: &TrialRecord) {
        self.throttled_ns += sum_of(&trial.slices, |slice| slice.throttled_ns);
        self.steal_ns += sum_of(&trial.slices, |slice| slice.generator_steal_ns);
        self.whole_ns += sum_of(&trial.slices, |slice| slice.whole_ns).max(1.0);
    }

    fn is_much(&self, generators: f64) -> bool {
        self.throttled_ns > THROTTLED * self.whole_ns
            || self.steal_ns > STOLEN * self.whole_ns * generators
    }
}

/// Header and generator limit that all searches of a run share.
pub(crate) struct Frame {
    pub(crate) header: RunHeader,
    /// Highest rate that the generator can send, requests per second; `None` if not known.
    most: Option<f64>,
}

impl Frame {
    pub(crate) fn new(header: &RunHeader, most: Option<f64>) -> Frame {
        Frame { header: header.clone(), most }
    }

    /// Returns the goal of an arm's search after these closed loops. Rates above the ceiling cannot be measured.
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

    /// Returns the highest rate that the measurement can carry; `None` if no limit is known. The lowest of these
    /// counts: the maximum configured for the origin server; the known maximum of the generator; the rate of the closed
    /// loops if connections limit it; and, if a role was nearly busy in them, their rate divided by the share of its
    /// CPU time that the role used (utilization law: Denning & Buzen 1978, Computing Surveys 10).
    pub(crate) fn ceiling(&self, settled: &Settled) -> Option<CeilingRecord> {
        let (study, slices) = (&self.header.study, &settled.slices[..]);
        let rate = closed::rate(slices);
        let connections =
            settled.are_the_limit.then_some(CeilingRecord { of: CeilingOf::Connections, rate });
        let whole_ns = CLOSED.0.as_nanos() as f64 * slices.len() as f64;
        let throttled_ns: u64 = slices.iter().map(|slice| slice.throttled_ns).sum();
        let (of, busy) = if throttled_ns as f64 > THROTTLED * whole_ns {
            // A quota has let it do no more.

            (CeilingOf::Generator, 1.0)
        } else {
            self.busiest(slices, whole_ns)
        };
        let busy = (busy >= NEAR).then(|| CeilingRecord { of, rate: rate / busy.min(1.0) });
        let generator = self.most.map(|rate| CeilingRecord { of: CeilingOf::Generator, rate });
        let origin = study
            .origin
            .at_most()
            .map(|rate| CeilingRecord { of: CeilingOf::Origin, rate: rate / share(slices) });
        [connections, busy, generator, origin]
            .into_iter()
            .flatten()
            .min_by(|a, b| a.rate.total_cmp(&b.rate))
    }

    /// Returns which of generator and origin used the larger share of its CPUs, and that share. If they share CPUs,
    /// their CPU times are added.
    fn busiest(&self, slices: &[SliceRecord], whole_ns: f64) -> (CeilingOf, f64) {
        let cpus = &self.header.cpus;
        let spins = self
            .header
            .study
            .loads
            .iter()
            .any(|load| matches!(load.spin, Spin::For(_)) && !load.spin.is_off());
        let generator_ns = if spins {
            // Its CPU time says nothing.

            0.0
        } else {
            sum_of(slices, |slice| slice.generator_cpu_ns)
        };
        let origin_ns = sum_of(slices, |slice| slice.origin_cpu_ns);
        let (_, shared) = self.header.shared_cpus();
        let (generators, origins) = (self.header.generator_cpus(), cpus.origin.cpus().len());
        let busier =
            if generator_ns >= origin_ns { CeilingOf::Generator } else { CeilingOf::Origin };
        let (generator, origin) = (
            busy_share(generator_ns, whole_ns, generators),
            busy_share(origin_ns, whole_ns, origins),
        );
        match shared {
            0 if generator >= origin => (CeilingOf::Generator, generator),
            0 => (CeilingOf::Origin, origin),
            _ => (
                busier,
                busy_share(generator_ns + origin_ns, whole_ns, generators + origins - shared),
            ),
        }
    }

    /// Adds a window of a trial. The kernel reports throttled time when it ends, and requests still wait afterwards, so
    /// the window with the throttled time may not be the one that it breaks. Therefore all broken windows of a trial in
    /// which the generator was held back are attributed to the generator.
    pub(crate) fn put(&self, windows: &mut Windows, trial: &TrialRecord) {
        windows.seen.push(self.seen(trial));
        windows.held_back.add(trial);
        if windows.held_back.is_much(self.generators()) {
            windows
                .seen
                .iter_mut()
                .filter(|seen| self.breaks(&seen.bad))
                .for_each(|seen| seen.sent = seen.sent.min(SENT));
        }
    }

    fn generators(&self) -> f64 {
        self.header.generator_cpus() as f64
    }

    /// Returns true if these shares of bad responses exceed the objective.
    fn breaks(&self, bad: &[f64]) -> bool {
        let mut limits = self.header.study.capacity.iter().zip(bad);
        limits.any(|(limit, bad)| *bad > bound(limit).allowed)
    }

    fn seen(&self, trial: &TrialRecord) -> Window {
        let seconds = sum_of(&trial.slices, |slice| slice.measured_ns) / 1e9;
        let study = &self.header.study;
        let limits = study.capacity.iter().zip(&trial.bad);
        Window {
            bad: trial.bad.clone(),
            value: limits.map(|(limit, bad)| value(trial, limit, *bad)).collect(),
            due: sum_of(&trial.slices, |slice| slice.due) / seconds,
            sent: if self.is_generators(trial) { SENT } else { 1.0 },
            completed: sum_of(&trial.slices, |slice| slice.completed) / seconds,
            is_held_up: trial.stood_still(&study.capacity),
        }
    }

    /// Returns the share of the objective's allowance that a trial used, of the limit that it used most of.
    pub(crate) fn used(&self, trial: &TrialRecord) -> f64 {
        self.header
            .study
            .capacity
            .iter()
            .zip(&trial.bad)
            .map(|(limit, bad)| bad / bound(limit).allowed)
            .fold(0.0, f64::max)
    }

    /// Returns the window of an arm to which nobody can connect.
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

    /// Returns true if the result of a trial is due to the generator rather than the arm.
    fn is_generators(&self, trial: &TrialRecord) -> bool {
        let due = sum_of(&trial.slices, |slice| slice.due);
        let offered = sum_of(&trial.slices, |slice| slice.sent + slice.queued + slice.dropped);
        if (due - offered).abs() > MISSING * due {
            return true;
        }
        if !self.breaks(&trial.bad) {
            return false;
        }
        let late_ns = self
            .header
            .study
            .capacity
            .iter()
            .filter_map(Limit::time)
            .min()
            .map(|time| time.as_nanos() as f64 * LATE);
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

/// Returns the share of the time for which so many CPUs were busy.
fn busy_share(busy_ns: f64, whole_ns: f64, cpus: usize) -> f64 {
    busy_ns / (whole_ns * cpus.max(1) as f64)
}

/// Returns the requests to the origin for each response of the arm: less than 1 if a cache answers some.
fn share(slices: &[SliceRecord]) -> f64 {
    let share = sum_of(slices, |slice| slice.origin_requests)
        / sum_of(slices, |slice| slice.completed_whole);
    if share > 0.0 && share < 1.0 { share } else { 1.0 }
}

/// Converts a rate and its seconds to a record.
pub(crate) fn observed(observed: Observed) -> ObservedRecord {
    ObservedRecord { rate: observed.rate, seconds: observed.seconds }
}

/// Converts a limit to the search's type.
fn bound(limit: &Limit) -> Bound {
    match limit {
        Limit::Quantile(quantile, time) => Bound::quantile(*quantile, time.as_secs_f64()),
        Limit::Mean(time) => Bound::mean(time.as_secs_f64()),
        Limit::Errors(share) => Bound::errors(*share),
    }
}

/// Returns the quantity that a limit is about: seconds, or the share of errors; NaN if the record lacks it.
fn value(trial: &TrialRecord, limit: &Limit, bad: f64) -> f64 {
    let times = &trial.response_time;
    let quantiles = [(0.5, times.p50), (0.9, times.p90), (0.99, times.p99), (0.999, times.p999)];
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

    /// Makes a window with this throttled time and this share of late responses.
    fn window(throttled_ns: u64, bad: f64) -> TrialRecord {
        let slice = SliceRecord {
            measured_ns: 50 * MS,
            whole_ns: 50 * MS,
            due: 100,
            sent: 100,
            throttled_ns,
            ..SliceRecord::default()
        };
        TrialRecord { bad: vec![bad], slices: vec![slice], ..fixture::trial("closed", "stock", 1) }
    }

    fn sent_shares(frame: &Frame, trials: &[TrialRecord]) -> Vec<f64> {
        let mut windows = Windows::default();
        trials.iter().for_each(|trial| frame.put(&mut windows, trial));
        windows.seen.iter().map(|window| window.sent).collect()
    }

    #[test]
    fn what_a_quota_broke_is_the_generators_in_whichever_window_it_is_counted() {
        let mut study = fixture::study(vec![fixture::arm("stock", ArmRole::Baseline, &[])]);
        study.capacity = Limit::parse_all("p90 < 30ms").expect("a limit");
        let frame = Frame::new(&fixture::header(study), None);
        let broken = window(0, 0.8);
        let quiet = window(0, 0.0);
        assert_eq!(sent_shares(&frame, &[broken.clone(), quiet.clone()]), [1.0, 1.0]);
        let throttled = window(60 * MS, 0.0);
        assert_eq!(
            sent_shares(&frame, &[quiet, broken.clone(), throttled, broken]),
            [1.0, SENT, 1.0, SENT]
        );
    }
}
