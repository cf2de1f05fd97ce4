//! Axes: conversion of values to pixels, and choice of ticks.

use crate::number;

/// A linear or logarithmic axis between two pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    log: bool,
    from: (f64, f64),
    to: (f64, f64),
}

impl Scale {
    /// Creates a linear axis. An empty or unusable domain becomes 0..1.
    pub(super) fn linear(domain: (f64, f64), to: (f64, f64)) -> Scale {
        let usable = domain.0.is_finite() && domain.1.is_finite() && domain.1 > domain.0;
        Scale { log: false, from: if usable { domain } else { (0.0, 1.0) }, to }
    }

    /// Creates a logarithmic axis. A domain that is empty or not above zero becomes 1..10.
    pub(super) fn log(domain: (f64, f64), to: (f64, f64)) -> Scale {
        let usable = domain.0 > 0.0 && domain.1.is_finite() && domain.1 > domain.0;
        let (low, high) = if usable { domain } else { (1.0, 10.0) };
        Scale { log: true, from: (low.ln(), high.ln()), to }
    }

    /// Describes the axis for the script of the page: `log` or `linear`, and the values of its ends.
    pub(super) fn described(&self) -> String {
        let (low, high) = self.from;
        if self.log {
            format!("log {:.6e} {:.6e}", low.exp(), high.exp())
        } else {
            format!("linear {low:.6e} {high:.6e}")
        }
    }

    /// Returns the pixel of a value. Values beyond the domain are placed at its ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.max(0.0).ln() } else { value };
        if value.is_nan() {
            return self.to.0;
        }
        let share = (value - self.from.0) / (self.from.1 - self.from.0);
        self.to.0 + share.clamp(0.0, 1.0) * (self.to.1 - self.to.0)
    }

    /// Returns true if a value is within the domain.
    pub(super) fn holds(&self, value: f64) -> bool {
        let value = if self.log { value.max(0.0).ln() } else { value };
        // A tick at the very end must not be lost to rounding.
        let slack = (self.from.1 - self.from.0) * 1e-9;
        value >= self.from.0 - slack && value <= self.from.1 + slack
    }

    /// Selects those of `candidates`, in order of preference, that fit with `gap` pixels between them. The result is
    /// ascending.
    pub(super) fn pick(&self, candidates: impl IntoIterator<Item = f64>, gap: f64) -> Vec<f64> {
        let mut picked: Vec<f64> = Vec::new();
        for value in candidates {
            if self.holds(value)
                && picked.iter().all(|other| (self.at(*other) - self.at(value)).abs() >= gap)
            {
                picked.push(value);
            }
        }
        picked.sort_by(f64::total_cmp);
        picked
    }
}

/// Returns round values from 0 to at least `max`, in at most `most` steps of 1, 2, 2.5 or 5 times a power of ten. The
/// last value is the end of the axis.
pub(super) fn round_steps(max: f64, most: u32) -> Vec<f64> {
    if !max.is_finite() || max <= 0.0 {
        return vec![0.0, 1.0];
    }
    let raw = max / f64::from(most.max(1));
    let magnitude = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|factor| factor * magnitude)
        .into_iter()
        .find(|step| step * f64::from(most) >= max * (1.0 - 1e-9))
        .unwrap_or(10.0 * magnitude);
    if !step.is_finite() || step <= 0.0 {
        return vec![0.0, 1.0];
    }
    let steps = (max / step - 1e-9).ceil().max(1.0) as u32;
    (0..=steps).map(|index| f64::from(index) * step).collect()
}

/// Maps a point; a value that is not finite stays so.
pub(super) fn to_pixels(&(at, value): &(f64, f64), x: &Scale, y: &Scale) -> (f64, f64) {
    (x.at(at), if value.is_finite() { y.at(value) } else { value })
}

/// Returns 1, 2 and 5 times the powers of ten that cover `low..=high`, powers of ten first.
pub(super) fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let powers = (first..=last).map(|power| 10_f64.powi(power));
    powers
        .clone()
        .chain(powers.clone().map(|power| 5.0 * power))
        .chain(powers.map(|power| 2.0 * power))
        .collect()
}

/// Ratios that may have a tick on a logarithmic axis around 1, in order of preference.
pub(super) const RATIOS: [f64; 31] = [
    1.0, 2.0, 0.5, 10.0, 0.1, 5.0, 0.2, 3.0, 1.5, 0.7, 100.0, 0.01, 1000.0, 0.001, 1.2, 0.8, 1.1,
    0.9, 20.0, 50.0, 0.05, 0.02, 1.05, 0.95, 1.02, 0.98, 1.01, 0.99, 4.0, 1.005, 0.995,
];

/// Formats a tick's time without trailing zeros: `200 µs` and not `200.00 µs`.
pub(super) fn tick_time(ns: f64) -> String {
    let text = number::time(ns);
    match text.split_once(' ') {
        _ if ns == 0.0 => "0".to_owned(),
        Some((value, unit)) => format!("{} {unit}", trimmed(value)),
        None => text,
    }
}

/// Formats a tick's rate. If the axis' end `top` is large enough, all its ticks are in thousands.
pub(super) fn tick_rate(rate: f64, top: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if top >= 1e4 => format!("{}k", trimmed(&number::rate(rate / 1e3))),
        rate => trimmed(&number::rate(rate)).to_owned(),
    }
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_no_empty_digits() {
        assert_eq!(tick_time(2e5), "200 µs");
        assert_eq!(tick_time(1e6), "1 ms");
        assert_eq!(tick_time(1.5e6), "1.5 ms");
        assert_eq!(tick_time(0.0), "0");
        assert_eq!(tick_time(20e6), "20 ms");
    }

    #[test]
    fn all_ticks_of_an_axis_are_written_alike() {
        for (top, most, all) in [
            (29_300.0, 4, "0 10k 20k 30k"),
            (10_000.0, 4, "0 2.5k 5k 7.5k 10k"),
            (5_000.0, 4, "0 2,000 4,000 6,000"),
            (7_500.0, 3, "0 2,500 5,000 7,500"),
            (0.2, 4, "0 0.05 0.1 0.15 0.2"),
        ] {
            let ticks = round_steps(top, most);
            let end = ticks.last().copied().unwrap_or(0.0);
            let words: Vec<String> = ticks.iter().map(|tick| tick_rate(*tick, end)).collect();
            assert_eq!(words.join(" "), all);
        }
    }

    #[test]
    fn values_land_where_they_belong_and_never_outside() {
        let scale = Scale::log((0.5, 2.0), (0.0, 100.0));
        for (value, px) in [(0.5, 0.0), (1.0, 50.0), (2.0, 100.0), (9.0, 100.0), (0.0, 0.0)] {
            assert!((scale.at(value) - px).abs() < 1e-9, "{value}");
        }
        let down = Scale::linear((0.0, 10.0), (100.0, 0.0));
        assert_eq!(down.at(2.5), 75.0);
        assert_eq!(down.at(f64::NAN), 100.0);
    }

    #[test]
    fn a_domain_that_is_none_still_gives_an_axis() {
        for domain in [(1.0, 1.0), (f64::NAN, 2.0), (0.0, f64::INFINITY), (3.0, 1.0)] {
            assert!(Scale::linear(domain, (0.0, 9.0)).at(0.5).is_finite());
            assert!(Scale::log(domain, (0.0, 9.0)).at(0.5).is_finite());
        }
    }

    #[test]
    fn ticks_keep_their_distance_and_the_most_wanted_win() {
        let scale = Scale::log((0.9, 2.8), (0.0, 400.0));
        let ticks = scale.pick(RATIOS, 44.0);
        assert!(ticks.contains(&1.0) && ticks.contains(&2.0), "{ticks:?}");
        for pair in ticks.windows(2) {
            assert!(scale.at(pair[1]) - scale.at(pair[0]) >= 44.0);
        }
    }

    #[test]
    fn round_steps_reach_the_maximum() {
        assert_eq!(round_steps(29_300.0, 4), [0.0, 10_000.0, 20_000.0, 30_000.0]);
        // A larger step would leave a third of the axis empty.
        assert_eq!(round_steps(68_000.0, 3), [0.0, 25_000.0, 50_000.0, 75_000.0]);
        assert_eq!(round_steps(10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-320] {
            assert!(round_steps(bad, 4).len() >= 2, "{bad}");
        }
    }

    #[test]
    fn decades_cover_the_range() {
        let all = decades(30.0, 4000.0);
        for tick in [100.0, 1000.0, 50.0, 2000.0] {
            assert!(all.contains(&tick), "{tick}");
        }
    }
}
