//! Response times against the rate, and where they begin to grow.

use weir_model::limit::Limit;
use weir_model::record::{BracketRecord, SearchStage, TrialRecord};
use weir_record::Run;

use super::{Capacity, CurvePoint};
use crate::blocks::LoadData;
use crate::outcomes::{Answers, sum};
use crate::values::Times;

/// Share by which the rates of short trials may exceed the lowest among them to be one point of the curve.
const SAME_RATE: f64 = 0.01;
/// Ratio of the p99 at the knee to its lowest value. A factor does not depend on the unit of the time, nor on how far
/// above the capacity was measured; a point of greatest curvature (as Kneedle finds it: Satopaa et al., ICDCS
/// workshops 2011) depends on both. For M/M/1, compared with a rate near 0, it is the rate at which throughput /
/// response time, Kleinrock's "power" (ICC 1979), is greatest.
const AT_KNEE: f64 = 2.0;
/// Maximum number of lower rates that may be above that factor by chance.
const STALLS: usize = 1;
/// Minimum number of requests for a p99.
const LEAST_REQUESTS: u64 = 100;
/// Maximum rate that counts as low, as a share of the capacity.
pub(super) const LOW: f64 = 0.5;

/// A trial at a rate, with its purpose in the search.
#[derive(Clone, Copy)]
pub(super) struct AtRate<'a> {
    pub(super) trial: &'a TrialRecord,
    pub(super) rate: f64,
    stage: Option<SearchStage>,
    /// Index of the search step that the trial is part of.
    step: Option<usize>,
}

impl AtRate<'_> {
    /// Returns true if this is a short trial in which the machine stood still.
    fn stood_still(&self, limits: &[Limit]) -> bool {
        self.stage != Some(SearchStage::Hold) && self.trial.stood_still(limits)
    }
}

/// The usable trials of an arm's search, except those of a closed loop, which have no rate.
pub(super) struct Trials<'a> {
    run: &'a Run,
    limits: Vec<Limit>,
    all: Vec<AtRate<'a>>,
}

impl<'a> Trials<'a> {
    pub(super) fn of(
        (run, data, arm): (&'a Run, &LoadData<'a>, usize),
        steps: &[&BracketRecord],
        found: &Capacity,
    ) -> Trials<'a> {
        let all = data.usable_of(arm).filter_map(|trial| {
            let step = steps.iter().position(|step| {
                (step.first_block..step.first_block.saturating_add(step.blocks))
                    .contains(&trial.block)
            });
            Some(AtRate {
                trial,
                rate: rate(trial)?,
                stage: step.map(|step| steps[step].stage),
                step,
            })
        });
        let all: Vec<AtRate<'a>> = all.filter(|at| at.stage != Some(SearchStage::Closed)).collect();
        // The search has left out what the machine did to short trials, unless it did so most of the time.
        let limits = found.answer.limits.clone();
        let still = all.iter().filter(|at| at.stood_still(&limits)).count();
        let is_rare = 2 * still <= all.len();
        Trials {
            run,
            all: all.into_iter().filter(|at| !(is_rare && at.stood_still(&limits))).collect(),
            limits,
        }
    }

    /// Returns the trials that the curve is made of. Bursts and holds are left out: a burst begins rested, and a long
    /// trial may meet events that a short one does not.
    fn short(&self) -> impl Iterator<Item = &AtRate<'a>> {
        self.all
            .iter()
            .filter(|at| !matches!(at.stage, Some(SearchStage::Hold | SearchStage::Burst)))
    }

    /// Returns all trials except bursts.
    pub(super) fn steady(&self) -> impl Iterator<Item = &AtRate<'a>> {
        self.all.iter().filter(|at| at.stage != Some(SearchStage::Burst))
    }

    pub(super) fn curve(&self) -> Vec<CurvePoint> {
        let mut all: Vec<AtRate<'_>> = self.short().copied().collect();
        all.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let mut points = Vec::new();
        let mut remaining = &all[..];
        while let Some(first) = remaining.first() {
            let most = first.rate * (1.0 + SAME_RATE);
            let (same, higher) =
                remaining.split_at(remaining.partition_point(|at| at.rate < most).max(1));
            points.extend(self.point(same));
            remaining = higher;
        }
        points
    }

    pub(super) fn holds(&self) -> Vec<CurvePoint> {
        let all: Vec<AtRate<'_>> =
            self.all.iter().filter(|at| at.stage == Some(SearchStage::Hold)).copied().collect();
        let steps = all.chunk_by(|a, b| a.step == b.step);
        steps.filter_map(|step| self.point(step)).collect()
    }

    /// Returns the short trials that ended, each with all of its windows.
    pub(super) fn dwells(&self) -> Vec<CurvePoint> {
        let all: Vec<AtRate<'_>> = self.short().filter(|at| at.step.is_some()).copied().collect();
        let steps = all.chunk_by(|a, b| (a.step, a.rate) == (b.step, b.rate));
        steps.filter_map(|step| self.point(step)).collect()
    }

    pub(super) fn singly(&self) -> Vec<CurvePoint> {
        self.short().filter_map(|at| self.point(&[*at])).collect()
    }

    /// Makes one point of several trials; `None` if no requests were due, or no response times were kept.
    fn point(&self, all: &[AtRate<'_>]) -> Option<CurvePoint> {
        let times = self.times(all);
        if times.buckets.is_empty() && times.due == 0 {
            return None;
        }
        // How often each limit was broken, in shares of what it allows.
        let most = self
            .limits
            .iter()
            .enumerate()
            .map(|(index, limit)| (index, bad_share(all, index) / allowed(limit)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b));
        let (limit, used) = most.unwrap_or_default();
        let stage = all.first().and_then(|at| at.stage);
        Some(CurvePoint {
            rate: mean(all, |at| at.rate),
            p50: finite_quantile(&times, 0.5),
            p90: finite_quantile(&times, 0.9),
            p99: finite_quantile(&times, 0.99),
            p999: finite_quantile(&times, 0.999),
            limit,
            bad: bad_share(all, limit),
            holds: used <= 1.0,
            trials: all.len() as u32,
            seconds: measured_s(all.iter().map(|at| at.trial)),
            requests: times.due,
            stage: stage.filter(|_| all.iter().all(|at| at.stage == stage)),
        })
    }

    fn times(&self, all: &[AtRate<'_>]) -> Times {
        let trials = all.iter().map(|at| at.trial);
        let mut buckets: Vec<(u64, u64)> = trials
            .clone()
            .flat_map(|trial| self.run.histogram(&trial.response_time).to_vec())
            .collect();
        buckets.sort_unstable();
        let answered = buckets.iter().map(|(_, count)| count).sum();
        Times {
            good: Answers::of(trials.clone(), &self.run.header.study).good_share(),
            due: (sum(trials, |slice| slice.due) as u64).max(answered),
            buckets,
        }
    }
}

/// Returns the share of the requests that broke a limit: the shares of all trials add up, by their requests.
fn bad_share(all: &[AtRate<'_>], limit: usize) -> f64 {
    mean(all, |at| at.trial.bad.get(limit).copied().unwrap_or(0.0))
}

/// Returns the mean over trials, each weighted by its requests.
fn mean(all: &[AtRate<'_>], value: impl Fn(&AtRate<'_>) -> f64) -> f64 {
    let weight: f64 = all.iter().map(|at| due(at.trial)).sum();
    all.iter().map(|at| due(at.trial) * value(at)).sum::<f64>() / weight.max(1.0)
}

fn due(trial: &TrialRecord) -> f64 {
    sum([trial], |slice| slice.due)
}

fn finite_quantile(times: &Times, quantile: f64) -> Option<u64> {
    let ns = times.quantile(quantile);
    ns.is_finite().then_some(ns as u64)
}

/// Returns the requests per second that were due while the arm had the load; `None` in a closed loop. Pauses do not
/// count: the mean rate of a trial with pauses is lower.
pub(crate) fn rate(trial: &TrialRecord) -> Option<f64> {
    let intended = trial.rate_intended?;
    let (due, ns) = trial
        .slices
        .iter()
        .filter(|slice| slice.due > 0)
        .fold((0, 0), |(due, ns), slice| (due + slice.due, ns + slice.measured_ns));
    let measured = due as f64 * 1e9 / ns as f64;
    // What is counted is rounded; where both agree the one that was asked for is exact.
    let is_as_asked = !measured.is_finite() || (measured / intended - 1.0).abs() < 0.02;
    Some(if is_as_asked { intended } else { measured }).filter(|rate| *rate > 0.0)
}

pub(super) fn measured_s<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> f64 {
    sum(trials, |slice| slice.measured_ns) / 1e9
}

/// Returns how long the verified rate was held, seconds; 0 if no rate was verified.
pub(super) fn held(found: &Capacity) -> f64 {
    found
        .holds
        .iter()
        .filter(|hold| (hold.rate / found.answer.verified - 1.0).abs() < SAME_RATE / 2.0)
        .filter(|hold| hold.holds)
        .map(|hold| hold.seconds)
        .fold(0.0, f64::max)
}

/// Returns the share of the requests that may break a limit; for a limit on the mean, the value of [`TrialRecord::bad`]
/// at the limit.
pub fn allowed(limit: &Limit) -> f64 {
    match limit {
        Limit::Quantile(quantile, _) => 1.0 - quantile,
        Limit::Mean(_) => (-1.0_f64).exp(),
        Limit::Errors(share) => *share,
    }
}

/// Returns true if the trials together break a limit of the objective.
pub(crate) fn breaks(trials: &[&TrialRecord], limits: &[Limit]) -> bool {
    let all: f64 = trials.iter().map(|trial| due(trial)).sum();
    limits.iter().enumerate().any(|(index, limit)| {
        trials
            .iter()
            .map(|trial| due(trial) * trial.bad.get(index).copied().unwrap_or(0.0))
            .sum::<f64>()
            > allowed(limit) * all
    })
}

/// Returns the rate from which on the p99 stays above [`AT_KNEE`] times its lowest value at any rate. Between two
/// points it interpolates, linearly in the rate and in the logarithm of the time. A stall at a low rate changes
/// nothing, because it is neither the lowest nor the last value. `None` if the p99 is above the bound at several lower
/// rates already: then it rises and falls, and there is no knee.
pub(super) fn knee(curve: &[CurvePoint]) -> Option<f64> {
    let with_p99 = curve.iter().filter(|point| point.requests >= LEAST_REQUESTS);
    let bound = AT_KNEE * with_p99.map(p99_ns).reduce(f64::min)?;
    let last_below = curve.iter().rposition(|point| p99_ns(point) <= bound)?;
    let (below, above) = (&curve[last_below], curve.get(last_below + 1)?);
    let early = curve[..last_below].iter().filter(|point| p99_ns(point) > bound);
    if early.count() > STALLS {
        return None;
    }
    let share = (bound / p99_ns(below)).ln() / (p99_ns(above) / p99_ns(below)).ln();
    // Of a time without end the logarithm is none either: the knee is then at the last point below.
    Some(below.rate + share.clamp(0.0, 1.0) * (above.rate - below.rate))
}

fn p99_ns(point: &CurvePoint) -> f64 {
    point.p99.map_or(f64::INFINITY, |ns| ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knee_is_where_the_p99_rises_once_and_for_all() {
        // The p99 at 100/s, 200/s and so on in milliseconds, and where the knee is.
        let rows: [(&[u64], Option<f64>); 5] = [
            (&[1, 1, 1, 2, 9], Some(400.0)),
            (&[1, 9, 1, 2, 9], Some(400.0)),
            (&[1, 9, 9, 2, 9], None),
            (&[3, 1, 3, 1, 9], None),
            (&[1, 1, 1, 1, 2], None),
        ];
        for (times, expected) in rows {
            let curve: Vec<CurvePoint> = times
                .iter()
                .enumerate()
                .map(|(place, ms)| CurvePoint {
                    rate: 100.0 * (place + 1) as f64,
                    p99: Some(ms * 1_000_000),
                    requests: LEAST_REQUESTS,
                    ..CurvePoint::default()
                })
                .collect();
            assert_eq!(knee(&curve), expected, "{times:?}");
        }
    }
}
