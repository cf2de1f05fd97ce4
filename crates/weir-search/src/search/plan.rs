//! Planning of the next step of a search, from the results of all trials.

use super::faults::GENTLY;
use super::{AT_CEILING, NARROW_BRACKET, Search, Step, Tried, trials};
use crate::goal::{Ending, Stage};
use crate::judge::Break;
use crate::threshold::{Kind, Threshold};

/// First rate of a ramp, as a share of the rate that a closed loop completed.
const FIRST: f64 = 0.75;
/// Factor to the next rate of a ramp while only one end is known.
const RAMP_UP: f64 = 1.2;
const RAMP_DOWN: f64 = 0.6;
const RAMP_FAR_DOWN: f64 = 0.3;
/// Ratio of the rate that breaks to the one that holds at which a ramp ends.
const RAMP_ENDS: f64 = 1.08;
/// Dwells after the ramp before the first hold, and between two holds.
const DWELLS_BEFORE_HOLD: usize = 4;
/// Dwells after a hold that broke, if none has held.
const DWELLS_AFTER_FAILURE: usize = 2;
/// Minimum share of a hold's rate for the next one, if the target stalled.
const AFTER_STALL: f64 = 0.8;
/// Chance of success for the first hold, and for further ones: with a claim made, more can be risked.
const HOLD_CHANCE: f64 = 0.85;
const NEXT_HOLD_CHANCE: f64 = 0.65;
/// Expected narrowing of the interval, as a share, above which a hold is worth its time.
const WORTHWHILE: f64 = 0.15;
/// Narrowing of the interval by a hold below which the search is settled, once the threshold is known to a part of its
/// scatter.
const SETTLED_GAIN: f64 = 0.15;
const SETTLED_UNCERTAINTY: f64 = 0.4;
const SETTLED_DWELLS: usize = 24;
/// Largest and smallest step down after a hold that broke because something builds up, logarithms.
const BUILD_UP_STEPS: (f64, f64) = (0.15, 1.2);
/// Position of a hold after the first one that broke, as a share of the logarithmic distance to the lowest sustainable
/// rate: if there is time for more holds, and if it is the last. The second pair is for a target that still answered
/// after the hold had broken: its resource was not exhausted completely.
const TOWARDS_LEAST: (f64, f64) = (0.65, 1.1);
const TOWARDS_LEAST_ALIVE: (f64, f64) = (0.5, 0.8);
/// Position of a hold after the first one that broke, as a share of the logarithmic distance from the rate that the
/// target then completed to the rate that a stock would sustain.
const TOWARDS_STOCK: f64 = 0.5;
/// Further reduction below the completed rate, as a logarithm.
const BELOW_COMPLETED: f64 = 0.1;
/// Probability above which build-up is assumed. The second value applies after a dwell that held where a hold broke.
const LIKELY: f64 = 0.5;
const CONFIRMED: f64 = 0.2;
/// Minimum number of dwells after the ramp for a precise answer: a drift over minutes does not show in a single minute.
const PRECISE_DWELLS: usize = 8;
/// Maximum distance of a dwell from the threshold, as a logarithm: farther away it provides hardly any information.
const FARTHEST: f64 = 0.35;
/// Maximum number of times that the distance of a dwell from the threshold is doubled, once for each consecutive dwell
/// that contradicted it.
const MOST_DOUBLINGS: u32 = 4;
/// The lowest rate that is tried, requests/s.
const LOWEST: f64 = 1.0;

impl Search {
    /// Decides on the next step.
    pub(super) fn plan(&mut self) {
        if let Some(rate) = self.ramp_rate() {
            if rate < self.lowest() {
                return self.end(self.nothing(Ending::Never));
            }
            let reserved_s = self.reserved_s();
            if self.left_s() >= self.dwell(Stage::Ramp, rate).seconds() + reserved_s {
                self.step = Step::Ramp(rate);
                return;
            }
        }
        match self.threshold.clone() {
            Some(threshold) if self.dwells().any(Tried::held) => self.refine(&threshold),
            _ => self.end(self.too_short()),
        }
    }

    /// Returns the next rate of the ramp; None if it is over.
    pub(super) fn ramp_rate(&self) -> Option<f64> {
        let held =
            self.dwells().filter(|tried| tried.held()).map(|tried| tried.rate).reduce(f64::max);
        let broke =
            self.dwells().filter(|tried| !tried.held()).map(|tried| tried.rate).reduce(f64::min);
        let closed = self.goal.closed_rate;
        let next = match (held, broke) {
            (None, None) => (closed * FIRST).max(self.lowest()),
            (Some(held), _) if held >= self.ceiling * AT_CEILING => return None,
            (Some(held), None) => held * RAMP_UP,
            // One that broke may be a little too high; two say that the limit may be anywhere.
            (None, Some(broke)) if broke > closed / 2.0 => broke * RAMP_DOWN,
            (None, Some(broke)) => broke * RAMP_FAR_DOWN,
            (Some(held), Some(broke)) if broke <= held * RAMP_ENDS => return None,
            (Some(held), Some(broke)) => (held * broke).sqrt(),
        };
        Some(next.min(self.ceiling))
    }

    /// Returns the seconds reserved for the first hold, 0 if there was never enough time for one.
    fn reserved_s(&self) -> f64 {
        let hold_s = self.hold(1.0).seconds();
        if self.held().is_some() || hold_s > self.end_s { 0.0 } else { hold_s }
    }

    /// Plans after the ramp: a dwell or a hold, whichever narrows the answer more, or the end.
    fn refine(&mut self, threshold: &Threshold) {
        let can_hold = self.left_s() >= self.hold(1.0).seconds();
        self.builds_up |= self.has_shown_build_up(threshold);
        if self.builds_up {
            return self.bracket(can_hold);
        }
        let chance = if self.held().is_some() { NEXT_HOLD_CHANCE } else { HOLD_CHANCE };
        let rate = self.cap(self.hold_rate(threshold, chance));
        let dwells = self.dwells_since_hold();
        let Some(held) = self.held() else {
            let wanted = if self.holds().next().is_some() {
                DWELLS_AFTER_FAILURE
            } else {
                DWELLS_BEFORE_HOLD
            };
            let is_ready = self.has_surprised || dwells >= wanted;
            if can_hold && (is_ready || !self.has_time_for_dwell(threshold)) {
                self.step = Step::Hold(rate);
            } else if self.has_time_for_dwell(threshold) {
                self.step = Step::Dwell(self.dwell_rate(threshold));
            } else {
                self.end(self.too_short());
            }
            return;
        };
        let (low, high) = self.interval(threshold, held);
        let width = (high / low).ln();
        let is_narrow = width / 2.0 <= self.goal.precision;
        let is_precise = is_narrow && self.count_dwells() >= PRECISE_DWELLS;
        if is_precise || held >= self.ceiling * AT_CEILING {
            return self.end(self.claim(threshold, held, Ending::Found));
        }
        let gain = (rate / held).ln();
        let is_worthwhile = can_hold && !is_narrow && gain > WORTHWHILE * width;
        let has_time = self.has_time_for_dwell(threshold);
        if is_worthwhile && (dwells >= DWELLS_BEFORE_HOLD || !has_time) {
            self.step = Step::Hold(rate);
        } else if self.is_settled(threshold, gain / width) {
            self.end(self.claim(threshold, held, Ending::Settled));
        } else if has_time {
            self.step = Step::Dwell(self.dwell_rate(threshold));
        } else {
            self.end(self.claim(threshold, held, Ending::Time));
        }
    }

    /// Returns the rate of a hold that succeeds with this chance; not far below holds that broke because the target
    /// stalled, nor below the rate at which half of the dwells hold, if some of them stalled. If there is no time for a
    /// further hold, only the chance counts, including that of build-up.
    fn hold_rate(&self, threshold: &Threshold, chance: f64) -> f64 {
        if self.is_last_hold() {
            let low = threshold.quantile(Kind::Hold, 1.0 - chance);
            return low.min(threshold.rate_of_chance(chance));
        }
        let of_dwells = self.has_stalled().then(|| threshold.mean().exp());
        let stalled =
            self.holds().filter(|hold| hold.has_stalled).map(|hold| hold.rate).reduce(f64::min);
        let least = AFTER_STALL * stalled.or(of_dwells).unwrap_or(0.0);
        threshold.rate_of_chance(chance).max(least)
    }

    /// Returns true if there is time for only one more hold, and none has held: only that one can make a claim.
    fn is_last_hold(&self) -> bool {
        self.held().is_none() && self.left_s() < 2.0 * self.hold(1.0).seconds()
    }

    /// Limits a rate to the ceiling.
    fn cap(&self, rate: f64) -> f64 {
        if rate >= self.ceiling * AT_CEILING { self.ceiling } else { rate }
    }

    /// Returns true if further trials would change little.
    fn is_settled(&self, threshold: &Threshold, gain_share: f64) -> bool {
        self.dwells().count() >= SETTLED_DWELLS
            && gain_share < SETTLED_GAIN
            && threshold.uncertainty() < SETTLED_UNCERTAINTY * threshold.scatter()
    }

    /// Returns true if there is time for another dwell, in addition to the hold after it.
    fn has_time_for_dwell(&self, threshold: &Threshold) -> bool {
        let dwell = self.dwell(Stage::Dwell, self.dwell_rate(threshold));
        let hold_s = self.hold(1.0).seconds();
        // A second hold is planned for as long as there is time for one.
        let is_hold_left = self.left_s() >= hold_s && hold_s <= self.end_s;
        let kept_free_s =
            if self.held().is_none() || is_hold_left { hold_s.min(self.end_s) } else { 0.0 };
        let kept_free_s = if hold_s > self.end_s { 0.0 } else { kept_free_s };
        self.left_s() >= dwell.seconds() + kept_free_s
    }

    fn dwells_since_hold(&self) -> usize {
        self.tried.iter().rev().take_while(|tried| tried.stage == Stage::Dwell).count()
    }

    /// Returns the number of dwells after the ramp.
    fn count_dwells(&self) -> usize {
        let dwells = self.dwells();
        dwells.filter(|dwell| dwell.stage == Stage::Dwell).count()
    }

    /// Returns the rate of the next dwell: alternately above and below the threshold, where each provides most
    /// information about it; farther away after some that held above it, or broke below it. A hold that broke is
    /// repeated for a short time: that distinguishes a server that has become slower from one with build-up.
    fn dwell_rate(&self, threshold: &Threshold) -> f64 {
        if let Some(last) = self.tried.last()
            && last.is_hold()
            && !last.held()
        {
            return last.rate * self.lag(trials::DWELL_S);
        }
        let is_above = self.dwells_since_hold().is_multiple_of(2);
        let mean = threshold.mean();
        let contradictions = self
            .tried
            .iter()
            .rev()
            .filter(|dwell| dwell.stage == Stage::Dwell && dwell.was_expected != is_above)
            .take_while(|dwell| dwell.held() != dwell.was_expected)
            .count() as u32;
        let distance = (threshold.scatter().max(threshold.uncertainty())
            * f64::from(1_u32 << contradictions.min(MOST_DOUBLINGS)))
        .min(FARTHEST.max(threshold.uncertainty()));
        let rate = (mean + if is_above { distance } else { -distance }).exp();
        self.cap(rate * self.lag(trials::DWELL_S))
    }

    /// Returns true if holds break at rates at which dwells hold. The dwell that follows a broken hold at the same rate
    /// is the best evidence, and sufficient if the hold ended with a target that answered hardly anything.
    fn has_shown_build_up(&self, threshold: &Threshold) -> bool {
        let chance = threshold.chance_of_build_up();
        self.tried.windows(2).any(|pair| {
            let (hold, next) = (&pair[0], &pair[1]);
            let has_broken = !hold.is_as_short_as_a_dwell() && !hold.held() && !hold.has_stalled;
            let is_confirmed = !next.is_hold() && next.held();
            let is_likely = chance > if is_confirmed { CONFIRMED } else { LIKELY };
            has_broken && is_likely || hold.has_collapsed_late() && is_confirmed
        })
    }

    /// Plans only holds, between a rate that held and one that broke.
    fn bracket(&mut self, can_hold: bool) {
        let held = self.held();
        let broke = self.broke_above(held);
        let narrow = NARROW_BRACKET.max(2.0 * self.goal.precision);
        let is_narrow = match (held, broke) {
            (Some(held), Some(broke)) => (broke.rate / held).ln() <= narrow,
            _ => false,
        };
        match (held, self.threshold.clone()) {
            (Some(held), Some(threshold)) if is_narrow || !can_hold => {
                let ending = if is_narrow { Ending::Found } else { Ending::Time };
                self.end(self.claim(&threshold, held, ending));
            }
            _ if !can_hold => self.end(self.too_short()),
            _ => match self.next_in_bracket(held) {
                rate if rate < self.lowest() => self.end(self.nothing(Ending::Never)),
                rate => self.step = Step::Hold(self.cap(rate)),
            },
        }
    }

    /// Returns the rate of the next hold in case of build-up.
    fn next_in_bracket(&self, held: Option<f64>) -> f64 {
        match (held, self.broke_above(held)) {
            (Some(held), Some(broke)) => (held * broke.rate).sqrt(),
            (None, Some(broke)) => {
                let (least, most) = BUILD_UP_STEPS;
                let step = self.step_to_what_lasts(broke).clamp(least, most);
                broke.rate * (-step).exp()
            }
            (Some(held), None) => match self.dwell_that_broke_above(held) {
                Some(broke) => (held * broke).sqrt(),
                None => held * RAMP_UP,
            },
            (None, None) => GENTLY * self.highest_held().unwrap_or(0.0),
        }
    }

    /// Returns the logarithm of the lowest rate at which a hold broke, minus that of a rate that may be sustainable.
    /// The latter is between the rate that the target completed after the hold had broken, which is sustainable if the
    /// target only became slower, and the rate that a stock sustains.
    fn step_to_what_lasts(&self, broke: &Tried) -> f64 {
        let of_stock = self.step_to_what_a_stock_lasts();
        let completes = broke.result.map_or_else(|how| how.completes, |_| 1.0);
        let of_completed = BELOW_COMPLETED - completes.max(f64::EPSILON).ln();
        let nearest = of_completed.min(of_stock);
        nearest + TOWARDS_STOCK * (of_stock - nearest)
    }

    /// Returns the logarithm of the lowest rate at which a hold broke, minus that of a rate that may be sustainable,
    /// from the seconds t for which holds of rate r were clean before they broke: each has used up a stock S = (r - c)
    /// t, which is refilled at the rate c. One hold gives the lowest sustainable rate, with c = 0; a second one gives c
    /// too, which is the highest if the refill is larger where more is used up.
    fn step_to_what_a_stock_lasts(&self) -> f64 {
        let hold_s = self.goal.hold_s;
        let mut broke: Vec<(f64, Break)> =
            self.holds().filter_map(|hold| hold.result.err().map(|how| (hold.rate, how))).collect();
        broke.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some((rate, how)) = broke.first().copied() else {
            return 0.0;
        };
        let clean_s = how.clean_s;
        // A hold that comes after others may last longer than one alone; one that was never good tells nothing.
        let least = (clean_s / hold_s).clamp(f64::EPSILON, 1.0);
        let farthest = -least.ln();
        let (usual, last) = if how.is_dead { TOWARDS_LEAST } else { TOWARDS_LEAST_ALIVE };
        if self.is_last_hold() {
            return last * farthest;
        }
        let Some((higher, sooner)) = broke.get(1).filter(|other| other.1.clean_s < clean_s) else {
            return usual * farthest;
        };
        let sooner_s = sooner.clean_s;
        let stock = (higher - rate) * clean_s * sooner_s / (clean_s - sooner_s);
        let most = 1.0 - stock / rate * (1.0 / clean_s - 1.0 / hold_s);
        0.5 * (farthest - most.clamp(least, 1.0).ln())
    }

    /// Returns the lowest rate above `held` at which a dwell broke.
    fn dwell_that_broke_above(&self, held: f64) -> Option<f64> {
        self.dwells()
            .filter(|dwell| !dwell.held() && dwell.rate > held)
            .map(|dwell| dwell.rate)
            .reduce(f64::min)
    }

    /// Returns the broken hold with the lowest rate above `held`.
    pub(super) fn broke_above(&self, held: Option<f64>) -> Option<&Tried> {
        self.holds()
            .filter(|hold| !hold.held() && hold.rate > held.unwrap_or(0.0))
            .min_by(|a, b| a.rate.total_cmp(&b.rate))
    }

    /// Returns the lowest rate to try. Below it, a dwell has too few requests for a single one to be allowed to be bad.
    pub(super) fn lowest(&self) -> f64 {
        let allowed = self.goal.least_allowed();
        let telling = 1.0 / (allowed * trials::LONGEST_DWELL_S);
        LOWEST.max(telling.min(self.goal.closed_rate / 10.0))
    }
}
