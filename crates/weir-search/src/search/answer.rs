//! Answers of a search, at any time.

use super::{AT_CEILING, NARROW_BRACKET, Search, Step, Tried};
use crate::burst::Bursts;
use crate::goal::{Answer, Burst, Ending, Observed};
use crate::threshold::{Kind, Threshold};

/// Share of the ceiling above which an answer is marked.
const NEAR_CEILING: f64 = 0.9;
/// Share of due requests below which a target is overloaded.
const OVERLOADED: f64 = 0.97;
/// Probability of a lower threshold above which the lower end is no longer the rate that was held.
const DOUBT: f64 = 0.1;
/// Possible distance between the limit during a search and the long-term one, in units of the scatter: most of a drift
/// that is slower than the search does not show in it. Fitted on simulated servers that drift (docs/capacity.md).
const BETWEEN_MINUTES: f64 = 6.0;
/// Maximum of the distance given by [`BETWEEN_MINUTES`], as a logarithm: a larger drift shows in the search.
const UNSEEN: f64 = 0.10;
/// Seconds of trials for which [`BETWEEN_MINUTES`] and [`UNSEEN`] were fitted. More of a drift shows in a longer
/// search.
const USUAL_S: f64 = 200.0;
/// Seconds of a search before its first hold: a ramp, and dwells.
const BEFORE_HOLD_S: f64 = 55.0;

impl Search {
    /// Returns the hold that succeeded at the highest rate.
    pub(super) fn longest_held(&self) -> Option<Observed> {
        self.holds()
            .filter(|hold| hold.held())
            .max_by(|a, b| a.rate.total_cmp(&b.rate))
            .map(observed)
    }

    /// Returns the ends of the interval: from the rate that was held to the upper end of the posterior. Only holds and
    /// dwells that broke below the held rate can lower its end.
    pub(super) fn interval(&self, threshold: &Threshold, held: f64) -> (f64, f64) {
        let tail = (1.0 - self.goal.confidence) / 2.0;
        let usual = (USUAL_S / self.spent_s.1).min(1.0).sqrt();
        let unseen = usual * (BETWEEN_MINUTES * threshold.mean_scatter()).min(UNSEEN);
        // Whether a hold meets a stall is chance: one that met none says little of the next.
        let stalling = self.stalls().chance_of_most();
        let doubt = DOUBT + stalling * (tail - DOUBT);
        let [low, middle, high] = [doubt, 0.5, 1.0 - tail]
            .map(|probability| threshold.quantile(Kind::Hold, probability).ln());
        let low_rate = (middle - (middle - low).hypot(unseen)).exp();
        let high_rate = (middle + (high - middle).hypot(unseen)).exp();
        (held.min(low_rate), high_rate.min(self.ceiling).max(held))
    }

    /// Returns an answer with the rate that was held.
    pub(super) fn claim(&self, threshold: &Threshold, held: f64, ending: Ending) -> Answer {
        let bracket = self.broke_above(Some(held)).map(|hold| hold.rate);
        let is_capped = held >= self.ceiling * AT_CEILING;
        let interval = match bracket {
            _ if is_capped => (held, self.ceiling.max(held)),
            Some(broke) if self.builds_up => (held, broke),
            _ => self.interval(threshold, held),
        };
        let tail = (1.0 - self.goal.confidence) / 2.0;
        let fresh =
            (threshold.quantile(Kind::Dwell, tail), threshold.quantile(Kind::Dwell, 1.0 - tail));
        Answer {
            interval,
            is_bracket: self.builds_up || is_capped,
            fresh: (self.builds_up && fresh.0 > held * (1.0 + NARROW_BRACKET)).then_some(fresh),
            is_ceiling: interval.1 >= self.ceiling * NEAR_CEILING,
            ..self.nothing(ending)
        }
    }

    /// Returns an answer without a claim, but with all observations.
    pub(super) fn nothing(&self, ending: Ending) -> Answer {
        let held = self.longest_held();
        let above = held.map_or(0.0, |held| held.rate);
        let broke = self
            .tried
            .iter()
            .filter(|tried| !tried.held() && tried.rate > above)
            .min_by(|a, b| a.rate.total_cmp(&b.rate))
            .map(observed);
        let carried = self
            .dwells()
            .filter(|dwell| dwell.held() && broke.is_none_or(|broke| dwell.rate < broke.rate))
            .max_by(|a, b| a.rate.total_cmp(&b.rate))
            .map(observed);
        let has_both = self.dwells().any(Tried::held) && self.dwells().any(|dwell| !dwell.held());
        Answer {
            interval: (0.0, 0.0),
            is_bracket: false,
            scatter: self.threshold.as_ref().filter(|_| has_both).map(Threshold::scatter),
            stalls: self.stalls().count,
            held,
            broke,
            carried,
            fresh: None,
            burst: None,
            decides: self.decides(),
            saturated: self.saturated(),
            floor: self.floor(),
            least: self.least.clone(),
            is_ceiling: false,
            seconds: self.spent_s,
            ending,
        }
    }

    /// Returns the answer if the time was too short for a hold, or no hold has succeeded in it.
    pub(super) fn too_short(&self) -> Answer {
        if self.is_mostly_spoilt(&[]) {
            return self.nothing(Ending::Spoilt);
        }
        if self.tried.is_empty() && self.ceiling.is_finite() {
            return self.nothing(Ending::NotSent(self.ceiling));
        }
        let hold_s = self.hold(1.0).seconds();
        let more_s = if self.holds().next().is_some() {
            2.0 * hold_s
        } else {
            (BEFORE_HOLD_S - self.spent_s.1).max(0.0) + hold_s
        };
        self.nothing(Ending::TooShort(self.spent_s.1 + more_s))
    }

    /// Ends the search with the claim so far, or without one.
    pub(super) fn stop_with(&mut self, ending: Ending) {
        let answer = match (self.threshold.as_ref(), self.held()) {
            (Some(threshold), Some(held)) => self.claim(threshold, held, ending),
            _ => self.nothing(ending),
        };
        self.end(answer);
    }

    /// Ends the search because no time is left.
    pub(super) fn stop(&mut self) {
        if self.held().is_some() {
            self.stop_with(Ending::Time);
        } else {
            self.end(self.too_short());
        }
    }

    /// Returns the seconds of a hold, if only a hold can make a claim or, because of build-up, narrow it.
    pub fn hold_needed_s(&self) -> Option<f64> {
        let ending = self.answer.as_ref().map(|answer| answer.ending);
        let is_open = matches!(ending, None | Some(Ending::Time | Ending::TooShort(_)));
        let needs_hold = self.builds_up || self.held().is_none();
        (is_open && needs_hold).then(|| self.hold(1.0).seconds())
    }

    /// Stores the answer, and continues with bursts if requested.
    pub(super) fn end(&mut self, answer: Answer) {
        let highest = answer.interval.1.min(self.ceiling);
        self.step = match self.goal.burst_s {
            Some(_) if answer.interval.0 > 0.0 => Step::Burst(Bursts::new(highest)),
            _ => Step::Done,
        };
        self.answer = Some(answer);
    }

    pub(super) fn after_burst(&mut self, mut bursts: Bursts, holds: bool) {
        bursts.put(holds);
        let highest = self.ceiling.min(20.0 * self.goal.closed_rate);
        match bursts.answer(self.lowest(), highest) {
            Some(burst) => self.end_burst(burst),
            None => self.step = Step::Burst(bursts),
        }
    }

    pub(super) fn end_burst(&mut self, burst: Burst) {
        self.step = Step::Done;
        let seconds = self.spent_s;
        if let Some(answer) = &mut self.answer {
            answer.burst = Some(burst);
            answer.seconds = seconds;
        }
    }

    /// Returns the rates between which the capacity is estimated to be, requests/s.
    pub(super) fn between(&self) -> Option<(f64, f64)> {
        let claim =
            self.answer.as_ref().map(|answer| answer.interval).filter(|(low, _)| *low > 0.0);
        // Where only the time is over, it may get some more.
        if claim.is_some() || self.answer.is_some() && !self.is_out_of_time() {
            return claim;
        }
        let threshold = self.threshold.as_ref()?;
        match self.held() {
            Some(held) => Some(self.claim(threshold, held, Ending::Time).interval),
            None => {
                let low = threshold.quantile(Kind::Dwell, 0.025);
                let high = threshold.quantile(Kind::Dwell, 0.975).min(self.ceiling);
                Some((low.min(high), high))
            }
        }
    }

    /// Returns the index of the bound that breaks first: the worst one of the trials that broke, the lowest rates
    /// first.
    fn decides(&self) -> usize {
        let lowest = self
            .tried
            .iter()
            .filter(|tried| !tried.held())
            .min_by(|a, b| a.rate.total_cmp(&b.rate));
        lowest
            .or_else(|| self.tried.iter().max_by(|a, b| a.worst.1.total_cmp(&b.worst.1)))
            .map_or(0, |tried| tried.worst.0)
    }

    /// Returns the responses per second of the overloaded target: the mean over overloaded trials, or that of the
    /// closed loop.
    fn saturated(&self) -> f64 {
        let completed: Vec<f64> = self
            .tried
            .iter()
            .filter(|tried| tried.completed > 0.0 && tried.completed < OVERLOADED * tried.due)
            .map(|tried| tried.completed)
            .collect();
        if completed.is_empty() {
            self.goal.closed_rate
        } else {
            completed.iter().sum::<f64>() / completed.len() as f64
        }
    }

    /// Returns the share of bad responses for each bound in the trials at the lowest rates, a third of the time.
    fn floor(&self) -> Vec<f64> {
        let mut tried: Vec<&Tried> = self.tried.iter().collect();
        tried.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let third_s = tried.iter().map(|tried| tried.seconds).sum::<f64>() / 3.0;
        let mut seconds = 0.0;
        let mut bad = vec![0.0; self.goal.bounds.len()];
        for tried in tried {
            for (sum, share) in bad.iter_mut().zip(&tried.bad) {
                *sum += share * tried.seconds;
            }
            seconds += tried.seconds;
            if seconds >= third_s {
                break;
            }
        }
        bad.iter().map(|sum| sum / seconds.max(1e-9)).collect()
    }
}

/// Returns a trial's rate with the seconds for which it held, or after which it broke.
fn observed(tried: &Tried) -> Observed {
    Observed {
        rate: tried.rate,
        seconds: match &tried.result {
            Ok(seconds) => *seconds,
            Err(how) => how.after_s,
        },
    }
}
