//! Verdict on a run, held against earlier ones.
//!
//! The logarithm of each figure is predicted from the earlier runs ([`weir_stats::prediction`]). A run is worse if one of
//! its figures is further on the bad side than one run in twenty of the same kind would be, corrected for the number of
//! figures by Holm's method.

use serde::{Deserialize, Serialize};
use weir_stats::holm;
use weir_stats::prediction::{LEAST_VALUES, predict};

use crate::differences::Difference;
use crate::figures::{FigureKey, RunFigures};

/// Largest difference between the rates of two open loops whose response times are compared, as a share.
const SAME_RATE: f64 = 0.02;

/// A run beside an earlier one, judged by the spread of all earlier ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunsFindings {
    /// Name of the earlier run.
    pub old: String,
    /// Name of the later run.
    pub new: String,
    /// Differences between their environments.
    pub differences: Vec<Difference>,
    /// Names of the earlier runs whose spread is the noise, the earlier run included, in order of time.
    pub history: Vec<String>,
    /// Verdict on the later run.
    pub verdict: RunVerdict,
    /// Figures that both runs have, in the order of the study.
    pub figures: Vec<FigureVerdict>,
    /// Figures that only one of the runs has.
    pub unmatched: Vec<FigureKey>,
}

/// Verdict on a run or one of its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RunVerdict {
    /// Worse than runs of the same kind are.
    Worse,
    /// Better than runs of the same kind are.
    Better,
    /// Like runs of the same kind.
    Usual,
    /// Nothing can be said.
    Open,
}

/// A figure of both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureVerdict {
    /// Name of the figure.
    pub key: FigureKey,
    /// Its values in the earlier and in the later run, requests per second or nanoseconds; infinite (null in JSON) among
    /// unanswered requests, `None` without valid figures.
    pub values: [Option<f64>; 2],
    /// Ratio of the later run to the mean of all earlier ones; `None` if it is not known.
    pub ratio: Option<f64>,
    /// Interval in which the ratio of a run of the same kind lies; `None` with too few earlier runs.
    pub usual: Option<(f64, f64)>,
    /// p of the figure on the side that the verdict is about, after Holm's correction; 1 without a verdict.
    pub p_holm: f64,
    /// The verdict.
    pub verdict: RunVerdict,
    /// Reason for [`RunVerdict::Open`].
    pub why: Option<WhyOpen>,
}

/// Reason why nothing can be said of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WhyOpen {
    /// There are only so many earlier runs with the figure, and this many are needed.
    FewRuns {
        /// Number of earlier runs.
        runs: usize,
        /// Number that is needed.
        needed: usize,
    },
    /// The earlier runs do not differ at all, as copies of one run.
    NoSpread,
    /// The machine is another one.
    Machine,
    /// The open loops had other rates.
    Rates {
        /// Requests per second that were completed in the earlier and in the later run.
        completed: [f64; 2],
    },
    /// One of the runs has no valid figure.
    Invalid,
}

/// Holds the later run against the earlier one and all others of `history`, which were earlier too and on the same
/// machine. The order of time is that of `history`, with `old` last.
pub fn judge(
    [old, new]: [&RunFigures; 2],
    history: &[RunFigures],
    differences: Vec<Difference>,
) -> RunsFindings {
    let is_other_machine = differences.iter().any(|one| one.is_of_machine);
    let earlier: Vec<&RunFigures> = history.iter().chain([old]).collect();
    let mut figures: Vec<FigureVerdict> = new
        .figures
        .iter()
        .filter(|figure| old.figure(&figure.key).is_some())
        .map(|figure| compare(&figure.key, [old, new], &earlier, is_other_machine))
        .collect();
    decide(&mut figures, new.confidence, new.band);
    let [missing, added] = [(old, new), (new, old)].map(|(one, other)| one.keys_without(other));
    RunsFindings {
        old: old.name.clone(),
        new: new.name.clone(),
        differences,
        history: earlier.iter().map(|run| run.name.clone()).collect(),
        verdict: combine(&figures),
        unmatched: [missing, added].concat(),
        figures,
    }
}

/// Compares a figure of two runs. The verdict is usual or open, and `p_holm` is not corrected yet.
fn compare(
    key: &FigureKey,
    [old, new]: [&RunFigures; 2],
    earlier: &[&RunFigures],
    is_other_machine: bool,
) -> FigureVerdict {
    let both = [old, new].map(|run| run.figure(key));
    let values = both.map(|figure| figure.and_then(|figure| figure.value));
    let rates = both.map(|figure| figure.and_then(|figure| figure.rate));
    let mut verdict = FigureVerdict {
        key: key.clone(),
        values,
        ratio: None,
        usual: None,
        p_holm: 1.0,
        verdict: RunVerdict::Open,
        why: None,
    };
    let (Some(_), Some(value)) = (values[0], values[1]) else {
        verdict.why = Some(WhyOpen::Invalid);
        return verdict;
    };
    if is_other_machine {
        verdict.why = Some(WhyOpen::Machine);
        return verdict;
    }
    if let [Some((_, old)), Some((_, new))] = rates
        && (new / old - 1.0).abs() > SAME_RATE
    {
        verdict.why = Some(WhyOpen::Rates { completed: [old, new] });
        return verdict;
    }
    let logs: Vec<f64> = earlier
        .iter()
        .filter_map(|run| run.figure(key))
        .filter(|figure| has_rate_of(figure.rate, rates[1]))
        .filter_map(|figure| figure.value)
        .filter(|value| value.is_finite() && *value > 0.0)
        .map(f64::ln)
        .collect();
    let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
    verdict.ratio = (!logs.is_empty()).then(|| (value.ln() - mean).exp());
    // Two sides of 5 % each: one test for worse and one for better.
    let confidence = 1.0 - 2.0 * (1.0 - new.confidence);
    let Some(prediction) = predict(&logs, value.ln().min(f64::MAX.ln()), confidence) else {
        verdict.why = Some(match logs.len() {
            runs if runs < LEAST_VALUES => WhyOpen::FewRuns { runs, needed: LEAST_VALUES },
            _ => WhyOpen::NoSpread,
        });
        return verdict;
    };
    verdict.usual = Some(((-prediction.half_width).exp(), prediction.half_width.exp()));
    let is_higher = value.ln() > prediction.mean;
    verdict.p_holm = if is_higher { prediction.p_higher } else { 1.0 - prediction.p_higher };
    verdict.verdict = RunVerdict::Usual;
    verdict
}

/// Returns true if an open loop of another run had the same rate; always true for closed ones.
pub(crate) fn has_rate_of(other: Option<(f64, f64)>, new: Option<(f64, f64)>) -> bool {
    match (other, new) {
        (Some((_, other)), Some((_, new))) => (new / other - 1.0).abs() <= SAME_RATE,
        _ => true,
    }
}

/// Corrects p over the figures on either side, and calls those worse or better whose corrected p is small and whose
/// difference is beyond the band.
fn decide(figures: &mut [FigureVerdict], confidence: f64, band: f64) {
    for wanted in [RunVerdict::Worse, RunVerdict::Better] {
        let mut family: Vec<&mut FigureVerdict> =
            figures.iter_mut().filter(|figure| figure.usual.is_some()).collect();
        // The other side has the rest of the probability.
        let p: Vec<f64> = family
            .iter()
            .map(|figure| if side(figure) == wanted { figure.p_holm } else { 1.0 })
            .collect();
        for (figure, corrected) in family.iter_mut().zip(holm(&p)) {
            if side(figure) != wanted {
                continue;
            }
            figure.p_holm = corrected;
            let is_large = figure.ratio.is_some_and(|ratio| (ratio - 1.0).abs() > band);
            if corrected <= 1.0 - confidence + 1e-12 && is_large {
                figure.verdict = wanted;
            }
        }
    }
}

/// Returns the side on which a figure is: worse or better than the mean of the earlier runs.
fn side(figure: &FigureVerdict) -> RunVerdict {
    let is_higher = figure.ratio.is_some_and(|ratio| ratio > 1.0);
    if is_higher == figure.key.metric.higher_is_better() {
        RunVerdict::Better
    } else {
        RunVerdict::Worse
    }
}

/// Combines the verdicts on the figures. Response times at other rates are left out if there is anything else: a rate
/// that is a share of what was carried is another one in every run.
fn combine(figures: &[FigureVerdict]) -> RunVerdict {
    let verdicts: Vec<RunVerdict> = figures
        .iter()
        .filter(|figure| !matches!(figure.why, Some(WhyOpen::Rates { .. })))
        .map(|figure| figure.verdict)
        .collect();
    if verdicts.contains(&RunVerdict::Worse) {
        RunVerdict::Worse
    } else if verdicts.contains(&RunVerdict::Open) || verdicts.is_empty() {
        RunVerdict::Open
    } else if verdicts.contains(&RunVerdict::Better) {
        RunVerdict::Better
    } else {
        RunVerdict::Usual
    }
}

#[cfg(test)]
mod tests {
    use weir_stats::SplitMix64;

    use super::*;
    use crate::figures::{Figure, Quantity};

    fn key(metric: Quantity) -> FigureKey {
        let load = if metric == Quantity::Rate { "closed" } else { "open" };
        FigureKey { load: load.to_owned(), arm: "stock".to_owned(), metric }
    }

    const METRICS: [Quantity; 3] = [Quantity::Rate, Quantity::ResponseP50, Quantity::ResponseP99];

    fn run(name: &str, values: [f64; 3], rate: f64) -> RunFigures {
        let figures = METRICS.iter().zip(values).map(|(&metric, value)| Figure {
            key: key(metric),
            value: value.is_finite().then_some(value),
            rate: (metric != Quantity::Rate).then_some((rate, rate)),
        });
        RunFigures {
            name: name.to_owned(),
            figures: figures.collect(),
            confidence: 0.95,
            band: 0.02,
        }
    }

    /// Draws runs whose figures differ by 3 % from run to run: standard normal by the sum of twelve.
    fn draw(rng: &mut SplitMix64, factor: f64) -> RunFigures {
        let values = [20_000.0 / factor, 2e6 * factor, 9e6 * factor].map(|value| {
            let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
            value * (0.03 * normal).exp()
        });
        run("drawn", values, 10_000.0)
    }

    /// Returns the share of 2,000 runs that are called so, after ten earlier ones.
    fn share_of(wanted: RunVerdict, factor: f64, seed: u64) -> f64 {
        let mut rng = SplitMix64::new(seed);
        let called = (0..2_000).filter(|_| {
            let mut history: Vec<RunFigures> = (0..10).map(|_| draw(&mut rng, 1.0)).collect();
            let old = history.pop().unwrap();
            let new = draw(&mut rng, factor);
            judge([&old, &new], &history, Vec::new()).verdict == wanted
        });
        called.count() as f64 / 2_000.0
    }

    #[test]
    fn of_equal_runs_few_are_called_worse_and_of_worse_ones_most() {
        let [equal, worse, better] = [
            share_of(RunVerdict::Worse, 1.0, 1),
            share_of(RunVerdict::Worse, 1.1, 2),
            share_of(RunVerdict::Better, 1.0 / 1.1, 3),
        ];
        assert!(equal <= 0.06, "{equal}");
        assert!(worse >= 0.8 && better >= 0.8, "{worse} {better}");
    }

    /// Returns the reason why nothing is said of the p99 of a run after an ordinary one.
    fn why_open(
        new: &RunFigures,
        history: &[RunFigures],
        differences: &[Difference],
    ) -> Option<WhyOpen> {
        let old = run("old", [20_000.0, 2e6, 9e6], 10_000.0);
        let findings = judge([&old, new], history, differences.to_vec());
        assert_eq!(findings.verdict, RunVerdict::Open, "{findings:?}");
        findings.figures[2].why
    }

    #[test]
    fn nothing_is_said_where_nothing_is_known() {
        let equal = run("new", [20_000.0, 2e6, 9e6], 10_000.0);
        let history: Vec<RunFigures> = (0..6)
            .map(|place| run("earlier", [20_000.0 + 100.0 * f64::from(place), 2e6, 9e6], 10_000.0))
            .collect();
        let machine = Difference {
            what: "CPU model".to_owned(),
            old: "a".to_owned(),
            new: "b".to_owned(),
            is_of_machine: true,
        };
        let none: &[RunFigures] = &[];
        let few = WhyOpen::FewRuns { runs: 1, needed: LEAST_VALUES };
        assert_eq!(why_open(&equal, none, &[]), Some(few));
        assert_eq!(why_open(&equal, &history, &[machine]), Some(WhyOpen::Machine));
        let old = run("old", [20_000.0, 2e6, 9e6], 10_000.0);
        let at_another_rate = run("new", [20_000.0, 2e6, 9e6], 12_000.0);
        let findings = judge([&old, &at_another_rate], &history, Vec::new());
        let rates = WhyOpen::Rates { completed: [10_000.0, 12_000.0] };
        assert_eq!(findings.figures[2].why, Some(rates));
        assert_eq!(findings.verdict, RunVerdict::Usual, "by the closed loop");
        let invalid = run("new", [20_000.0, 2e6, f64::NAN], 10_000.0);
        assert_eq!(why_open(&invalid, &history, &[]), Some(WhyOpen::Invalid));
    }

    #[test]
    fn figures_of_one_run_alone_are_named() {
        let (old, mut new) = (run("old", [1.0; 3], 1.0), run("new", [1.0; 3], 1.0));
        new.figures[0].key.arm = "added".to_owned();
        let findings = judge([&old, &new], &[], Vec::new());
        let names: Vec<&str> = findings.unmatched.iter().map(|key| &*key.arm).collect();
        assert_eq!(names, ["stock", "added"]);
        assert_eq!(findings.figures.len(), 2);
    }
}
