//! All runs of a study over time: what changed when, on which machine.
//!
//! Each figure is a series, monitored after every run ([`weir_stats::monitor`]); the chance of a false claim is shared
//! by all of them (Bonferroni), because they are correlated in unknown ways. Figures that change at about the same time
//! are one change. What differs between the environments of the runs before and after it is named with it, which is not
//! to say that it is the cause.

use serde::{Deserialize, Serialize};
use weir_model::record::RunHeader;
use weir_stats::monitor::LEAST_LENGTH;

use crate::differences::{Difference, differences};
use crate::figures::{FigureKey, RunFigures};
use crate::series::{Series, SeriesChange};

/// Number of runs on one machine that are needed before anything is claimed.
pub const LEAST_RUNS: usize = LEAST_LENGTH;
/// Maximum number of runs between the changes of two figures that are called one change.
const SAME_CHANGE: usize = 2;

/// A run, and when it began.
#[derive(Debug, Clone)]
pub struct DatedRun {
    /// The run's plan and environment.
    pub header: RunHeader,
    /// The run's figures, with the name that the run is called by.
    pub figures: RunFigures,
    /// Time at which it began, seconds of Unix time.
    pub began_s: f64,
}

/// Runs of one study over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryFindings {
    /// Name of the study.
    pub study: String,
    /// All runs, in order of time.
    pub runs: Vec<RunName>,
    /// Chance of any false claim in 100 runs, over all figures.
    pub level: f64,
    /// Runs with which another machine begins, and in what it differs.
    pub breaks: Vec<MachineBreak>,
    /// Changes, in order of time.
    pub changes: Vec<ChangeFindings>,
    /// Figures over all runs, in the order of the study.
    pub series: Vec<Series>,
    /// Runs that are left out.
    pub left_out: Vec<LeftOutRun>,
}

/// Name of a run, and when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunName {
    /// Name of its folder.
    pub name: String,
    /// Time at which it began, RFC 3339 in UTC.
    pub started_at: String,
}

/// The first run on another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineBreak {
    /// The run.
    pub at: usize,
    /// Properties of the machine that differ from those of the run before.
    pub differences: Vec<Difference>,
}

/// A change of one or more figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeFindings {
    /// First run after it.
    pub at: usize,
    /// Run with which it was first found.
    pub found: usize,
    /// Figures that changed.
    pub figures: Vec<ChangedFigure>,
    /// Differences of the environment near the change.
    pub differences: Vec<Difference>,
    /// Run with which these differences began, up to two from `at`; that run without differences.
    pub differences_at: usize,
}

/// A figure that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedFigure {
    /// Name of the figure.
    pub key: FigureKey,
    /// Its change.
    #[serde(flatten)]
    pub change: SeriesChange,
}

/// A run that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOutRun {
    /// Name of its folder.
    pub name: String,
    /// Reason.
    pub why: WhyLeftOut,
}

/// Reason why a run is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WhyLeftOut {
    /// Others could have written its folder.
    Foreign,
    /// It cannot be read.
    Damaged {
        /// The first problem.
        problem: String,
    },
    /// It did not end as planned.
    Incomplete,
    /// All its figures are INVALID.
    Invalid,
    /// It is a run of another study.
    OtherStudy {
        /// Name of that study.
        study: String,
    },
    /// It has the same start as another run: a copy.
    Copy,
}

/// Finds the changes of all figures. The runs are in order of time and of one study.
pub fn over_time(runs: &[DatedRun], left_out: Vec<LeftOutRun>) -> HistoryFindings {
    let breaks = find_breaks(runs);
    let break_runs: Vec<usize> = breaks.iter().map(|one| one.at).collect();
    let seconds: Vec<f64> = runs.iter().map(|run| run.began_s).collect();
    let figures: Vec<&RunFigures> = runs.iter().map(|run| &run.figures).collect();
    let keys = all_keys(&figures);
    let newest = figures.last();
    let confidence = newest.map_or(0.95, |run| run.confidence);
    let level = 1.0 - confidence;
    let share = level / keys.len().max(1) as f64;
    let series: Vec<Series> = keys
        .iter()
        .map(|key| Series::of(key, &figures, &seconds, &break_runs, (share, confidence)))
        .collect();
    let changes = group(&series).into_iter().map(|figures| describe(runs, figures)).collect();
    HistoryFindings {
        study: runs.last().map_or_else(String::new, |run| run.header.study.name.clone()),
        runs: runs.iter().map(name_of).collect(),
        level,
        breaks,
        changes,
        series,
        left_out,
    }
}

fn name_of(run: &DatedRun) -> RunName {
    RunName { name: run.figures.name.clone(), started_at: run.header.started_at.clone() }
}

/// Returns the names of all figures: those of the newest run first, in the order of the study.
fn all_keys(runs: &[&RunFigures]) -> Vec<FigureKey> {
    let mut keys: Vec<FigureKey> = Vec::new();
    for figure in runs.iter().rev().flat_map(|run| &run.figures) {
        if !keys.contains(&figure.key) {
            keys.push(figure.key.clone());
        }
    }
    keys
}

/// Finds the runs with which another machine begins.
fn find_breaks(runs: &[DatedRun]) -> Vec<MachineBreak> {
    let pairs = runs.windows(2).enumerate();
    pairs
        .map(|(index, pair)| {
            let mut all = differences(&pair[0].header, &pair[1].header);
            all.retain(|one| one.is_of_machine);
            MachineBreak { at: index + 1, differences: all }
        })
        .filter(|one| !one.differences.is_empty())
        .collect()
}

/// Groups the changes of all figures by time.
fn group(series: &[Series]) -> Vec<Vec<ChangedFigure>> {
    let mut all: Vec<ChangedFigure> = series
        .iter()
        .flat_map(|one| {
            one.changes.iter().map(|&change| ChangedFigure { key: one.key.clone(), change })
        })
        .collect();
    all.sort_by_key(|figure| figure.change.at);
    let mut groups: Vec<Vec<ChangedFigure>> = Vec::new();
    for figure in all {
        let fits = groups.last().is_some_and(|group| {
            figure.change.at - group[0].change.at <= SAME_CHANGE
                && group.iter().all(|other| other.key != figure.key)
        });
        match groups.last_mut().filter(|_| fits) {
            Some(group) => group.push(figure),
            None => groups.push(vec![figure]),
        }
    }
    groups
}

/// Returns a change with the differences of the environment that are nearest to it.
fn describe(runs: &[DatedRun], figures: Vec<ChangedFigure>) -> ChangeFindings {
    let at = figures[figures.len() / 2].change.at;
    let first_found = figures.iter().map(|figure| figure.change.found).min();
    let nearby = [Some(at), at.checked_sub(1), Some(at + 1), at.checked_sub(2), Some(at + 2)];
    let candidates = nearby.into_iter().flatten().filter(|&run| run > 0 && run < runs.len());
    let around = candidates
        .map(|run| (run, software_differences(&runs[run - 1], &runs[run])))
        .find(|(_, differences)| !differences.is_empty());
    let (differences_at, differences) = around.unwrap_or((at, Vec::new()));
    ChangeFindings { at, found: first_found.unwrap_or(at), figures, differences, differences_at }
}

fn software_differences(before: &DatedRun, after: &DatedRun) -> Vec<Difference> {
    let mut all = differences(&before.header, &after.header);
    all.retain(|one| !one.is_of_machine);
    all
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;
    use weir_model::study::ArmRole;
    use weir_stats::SplitMix64;

    use super::*;
    use crate::figures::{Figure, Quantity};

    /// Draws runs of two figures that differ by 1 %: the rate of a closed loop, and the p99 of an open one.
    fn draw(seed: u64, levels: &[f64]) -> Vec<DatedRun> {
        let mut rng = SplitMix64::new(seed);
        let study = fixture::study(vec![fixture::arm("stock", ArmRole::Baseline, &[])]);
        let runs = levels.iter().zip(0_u32..).map(|(level, number)| {
            let figures = [Quantity::Rate, Quantity::ResponseP99].map(|metric| {
                let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                let side = if metric == Quantity::Rate { 1.0 } else { -1.0 };
                let rate = (metric == Quantity::ResponseP99).then_some((5_000.0, 5_000.0));
                let key = FigureKey { load: "load".to_owned(), arm: "stock".to_owned(), metric };
                let value = Some(10_000.0 * (side * level + 0.01 * normal).exp());
                Figure { key, value, rate }
            });
            let figures = RunFigures {
                name: format!("run-{number}"),
                figures: figures.into(),
                confidence: 0.95,
                band: 0.02,
            };
            let header = fixture::header(study.clone());
            DatedRun { header, figures, began_s: 86_400.0 * f64::from(number) }
        });
        runs.collect()
    }

    #[test]
    fn figures_that_change_together_are_one_change_with_what_else_changed() {
        let mut levels = [0.0; 40];
        levels[25..].fill(-0.1);
        levels[7] = -0.5;
        let mut runs = draw(1, &levels);
        for run in &mut runs[26..] {
            run.header.environment.versions.insert("nginx".to_owned(), "nginx/9".to_owned());
        }
        let history = over_time(&runs, Vec::new());
        assert_eq!(history.changes.len(), 1, "{:?}", history.changes);
        let change = &history.changes[0];
        assert_eq!((change.at, change.figures.len(), change.differences_at), (25, 2, 26));
        for figure in &change.figures {
            let SeriesChange { ratio, interval: (low, high), is_worse, .. } = figure.change;
            assert!(is_worse && low < ratio && ratio < high, "{figure:?}");
            let wanted = if figure.key.metric == Quantity::Rate { -0.1 } else { 0.1 };
            assert!((ratio.ln() - wanted).abs() < 0.02, "{figure:?}");
        }
        assert_eq!(history.series[0].segments.len(), 2);
    }

    #[test]
    fn another_machine_is_a_break_and_no_change() {
        let mut levels = [0.0; 30];
        levels[15..].fill(-0.3);
        let mut runs = draw(2, &levels);
        for run in &mut runs[15..] {
            run.header.environment.cpu_model.push_str(" II");
        }
        let history = over_time(&runs, Vec::new());
        assert_eq!((history.changes.len(), history.breaks.len(), history.breaks[0].at), (0, 1, 15));
        let ends: Vec<usize> = history.series[0].segments.iter().map(|one| one.last).collect();
        assert_eq!(ends, [14, 29]);
    }

    #[test]
    fn a_slow_trend_is_a_drift_with_its_slope() {
        let levels: Vec<f64> = (0..60).map(|run| -0.001 * f64::from(run)).collect();
        let history = over_time(&draw(3, &levels), Vec::new());
        let newest = history.series[0].segments.last().expect("a segment");
        let drift = newest.drift.expect("a drift");
        let (per_week, (low, high)) = drift.per_week.expect("weeks");
        assert!(drift.is_worse && (0.98..1.0).contains(&per_week), "{drift:?}");
        assert!(low < 0.993 && high > 0.993, "{drift:?}");
    }

    #[test]
    fn runs_at_another_rate_are_left_out_of_response_times() {
        let mut runs = draw(4, &[0.0; 12]);
        for run in &mut runs[..4] {
            run.figures.figures[1].rate = Some((6_000.0, 6_000.0));
        }
        let history = over_time(&runs, Vec::new());
        assert_eq!((history.series[0].other_rates, history.series[1].other_rates), (0, 4));
        assert_eq!(history.series[1].values.iter().flatten().count(), 8);
        assert!(!over_time(&runs[..5], Vec::new()).series[0].is_judged);
    }
}
