//! One figure over all runs.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use weir_stats::monitor::{LEAST_LENGTH, level_of, monitor, size_of};
use weir_stats::slope_of;

use crate::figures::{FigureKey, RunFigures};
use crate::judge::has_rate_of;

/// Seconds of a week.
const WEEK_S: f64 = 604_800.0;

/// A figure over all runs. Runs are indexes in the list of all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Name of the figure.
    pub key: FigureKey,
    /// Value in each run, requests per second or nanoseconds; `None` if the run has no valid figure, or one at another
    /// rate.
    pub values: Vec<Option<f64>>,
    /// Number of runs that are left out because their open loop had another rate than that of the newest run.
    pub other_rates: usize,
    /// True if some stretch on one machine has enough runs for a claim.
    pub is_judged: bool,
    /// Stretches without a change, in order of time.
    pub segments: Vec<Segment>,
    /// Changes from one segment to the next on the same machine.
    pub changes: Vec<SeriesChange>,
}

/// A stretch of runs without a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segment {
    /// First run.
    pub first: usize,
    /// Last run.
    pub last: usize,
    /// Number of runs with a value.
    pub runs: usize,
    /// Level of the figure: its geometric mean, with distant values limited.
    pub level: f64,
    /// Standard deviation between runs as a share, robust against outliers; `None` of one run.
    pub spread: Option<f64>,
    /// Drift; `None` if there is none.
    pub drift: Option<Drift>,
}

/// A slow trend within a segment. Each pair is an estimate with its interval, as ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drift {
    /// Ratio of one run to the one before.
    pub per_run: (f64, (f64, f64)),
    /// Ratio of one week to the one before; `None` if the runs are of less than two days.
    pub per_week: Option<(f64, (f64, f64))>,
    /// Run with which it was found.
    pub found: usize,
    /// True if the figure becomes worse.
    pub is_worse: bool,
}

/// A change of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesChange {
    /// First run after it.
    pub at: usize,
    /// Run with which it was found.
    pub found: usize,
    /// Ratio of the level after it to that before.
    pub ratio: f64,
    /// Interval of the ratio.
    pub interval: (f64, f64),
    /// True if the figure became worse.
    pub is_worse: bool,
}

impl Series {
    /// Collects a figure from all runs, and finds its changes. `breaks` are the runs with which another machine begins,
    /// `level` is the chance of a false claim in 100 runs, `seconds` is when each run began.
    pub(crate) fn of(
        key: &FigureKey,
        runs: &[&RunFigures],
        seconds: &[f64],
        breaks: &[usize],
        (level, confidence): (f64, f64),
    ) -> Series {
        let newest_rate = runs
            .iter()
            .rev()
            .filter_map(|run| run.figure(key))
            .find(|figure| figure.value.is_some())
            .and_then(|figure| figure.rate);
        let mut other_rates = 0;
        let mut values: Vec<Option<f64>> = Vec::new();
        for run in runs {
            let figure = run.figure(key);
            let value = figure.and_then(|figure| figure.value);
            let is_at_rate = figure.is_none_or(|figure| has_rate_of(figure.rate, newest_rate));
            other_rates += usize::from(value.is_some() && !is_at_rate);
            values.push(value.filter(|value| is_at_rate && value.is_finite() && *value > 0.0));
        }
        let mut series = Series {
            key: key.clone(),
            values,
            other_rates,
            is_judged: false,
            segments: Vec::new(),
            changes: Vec::new(),
        };
        let mut begin = 0;
        for &end in breaks.iter().chain([&runs.len()]) {
            series.judge(begin..end, seconds, (level, confidence));
            begin = end;
        }
        series
    }

    /// Judges a stretch of runs on one machine.
    fn judge(&mut self, stretch: Range<usize>, seconds: &[f64], (level, confidence): (f64, f64)) {
        let (places, logs): (Vec<usize>, Vec<f64>) =
            stretch.filter_map(|run| self.values[run].map(|value| (run, value.ln()))).unzip();
        self.is_judged |= logs.len() >= LEAST_LENGTH;
        let monitored = monitor(&logs, level);
        let mut starts = vec![0];
        starts.extend(monitored.changes.iter().map(|change| change.place));
        let ends = starts.iter().skip(1).copied().chain([logs.len()]);
        let ranges: Vec<Range<usize>> =
            starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            let drift = monitored.drift.filter(|_| range.end == logs.len()).and_then(|found| {
                self.drift(&places[range.clone()], &logs[range.clone()], seconds, confidence)
                    .map(|drift| Drift { found: places[found], ..drift })
            });
            let Some(level) = level_of(&logs[range.clone()]) else { continue };
            self.segments.push(Segment {
                first: places[range.start],
                last: places[range.end - 1],
                runs: range.len(),
                level: level.mean.exp(),
                spread: level.sd.map(f64::exp_m1),
                drift,
            });
        }
        for (pair, change) in ranges.windows(2).zip(&monitored.changes) {
            let [before, after] = [0, 1].map(|side| &logs[pair[side].clone()]);
            let Some((size, half)) = size_of(before, after, confidence) else { continue };
            self.changes.push(SeriesChange {
                at: places[change.place],
                found: places[change.found],
                ratio: size.exp(),
                interval: ((size - half).exp(), (size + half).exp()),
                is_worse: self.is_worse(size),
            });
        }
    }

    /// Returns the drift of a segment; it is found with its last run, and corrected by the caller.
    fn drift(
        &self,
        places: &[usize],
        logs: &[f64],
        seconds: &[f64],
        confidence: f64,
    ) -> Option<Drift> {
        let by_run: Vec<(f64, f64)> = (0_u32..).map(f64::from).zip(logs.iter().copied()).collect();
        let weeks = places.iter().map(|&run| seconds[run] / WEEK_S);
        let by_week: Vec<(f64, f64)> = weeks.zip(logs.iter().copied()).collect();
        let per_run = slope_of(&by_run, confidence)?;
        let (first, last) = (by_week.first()?.0, by_week.last()?.0);
        let is_long = last - first >= 2.0 / 7.0;
        let per_week = slope_of(&by_week, confidence).filter(|_| is_long);
        let [per_run_ratio, per_week_ratio] = [Some(per_run), per_week].map(|slope| {
            slope.map(|slope| (slope.value.exp(), (slope.low.exp(), slope.high.exp())))
        });
        Some(Drift {
            per_run: per_run_ratio?,
            per_week: per_week_ratio,
            found: *places.last()?,
            is_worse: self.is_worse(per_run.value),
        })
    }

    /// Returns true if a difference of logarithms is for the worse.
    fn is_worse(&self, difference: f64) -> bool {
        (difference > 0.0) != self.key.metric.higher_is_better()
    }
}
