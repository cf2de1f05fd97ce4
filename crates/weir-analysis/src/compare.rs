//! One arm against another: estimate, interval, p, verdict, and why.

use weir_model::study::{ArmRole, Compare, Metric, Objective};
use weir_record::Run;
use weir_stats::verdict::LEAST_REPLICATES;
use weir_stats::{
    Evidence, Outcome, SignedRank, hodges_lehmann, holm, minimum_detectable, qn, sd, verdict,
};

use crate::findings::{Comparison, LimitFindings, Verdict};
use crate::gather::LoadData;
use crate::limits::limits;
use crate::replicates::{GroupSize, Replicates, Values, group_size, replicates, samples_wanted};

/// Response times of two arms are compared only at the same achieved rate: a proxy that answers
/// less has an easier life. As a ratio.
const SAME_RATE: f64 = 0.01;

/// Compares the arms of one load after another and keeps what can be used again.
pub(crate) struct Comparer<'a> {
    run: &'a Run,
    tests: SignedRank,
}

/// Why there is nothing to compare, in half a sentence.
struct NotComparable(String);

/// What was compared under a load.
#[derive(Default)]
pub(crate) struct Compared {
    /// Each arm with the one in its `against`, by metric, then by arm.
    pub(crate) comparisons: Vec<Comparison>,
    /// Every pair, where the study asks for them, by metric, then by arm.
    pub(crate) pairs: Vec<Comparison>,
    pub(crate) limits: Vec<LimitFindings>,
}

/// What the replicates of one comparison are, or why there are none.
type Drawn = Result<(Replicates, Option<GroupSize>), NotComparable>;

impl<'a> Comparer<'a> {
    pub(crate) fn new(run: &'a Run) -> Comparer<'a> {
        Comparer {
            run,
            tests: SignedRank::new(),
        }
    }

    /// Compares everything that is to be compared under a load, and whether each arm stays within the
    /// study's limit.
    pub(crate) fn compare(&mut self, data: &LoadData<'_>) -> Compared {
        let mut values = Values::new(self.run, data);
        let mut compared = Compared::default();
        for metric in data.metrics() {
            match data.study.compare {
                Compare::Against => {
                    let family = self.against(data, &mut values, metric);
                    compared.comparisons.extend(family);
                }
                Compare::Pairs => {
                    let pairs = self.pairs(data, &mut values, metric);
                    let own = self.among(&pairs, data, &mut values, metric);
                    compared.comparisons.extend(own);
                    compared.pairs.extend(pairs);
                }
            }
        }
        compared.limits = limits(data, &mut values, &mut self.tests);
        compared
    }

    /// Each arm with the one that it is compared with: one family.
    fn against(
        &mut self,
        data: &LoadData<'_>,
        values: &mut Values<'_>,
        metric: Metric,
    ) -> Vec<Comparison> {
        let arms = 1..data.study.arms.len();
        let mut family: Vec<Comparison> = arms
            .map(|arm| self.estimate(data, values, metric, (arm, data.study.arms[arm].against)))
            .collect();
        correct(&mut family, data);
        judge_all(&mut family, data);
        family
    }

    /// Every arm but the A/A arm with every one before it: one family.
    fn pairs(
        &mut self,
        data: &LoadData<'_>,
        values: &mut Values<'_>,
        metric: Metric,
    ) -> Vec<Comparison> {
        let is_of_pairs = |arm: &usize| data.study.arms[*arm].role != ArmRole::SameAsBaseline;
        let arms: Vec<usize> = (0..data.study.arms.len()).filter(is_of_pairs).collect();
        let mut family = Vec::new();
        for (place, &arm) in arms.iter().enumerate() {
            for &against in &arms[..place] {
                family.push(self.estimate(data, values, metric, (arm, against)));
            }
        }
        holm_over(&mut family.iter_mut().filter(is_valid).collect::<Vec<_>>());
        judge_all(&mut family, data);
        family
    }

    /// Each arm with the one that it is compared with, taken from the pairs: a verdict is the same
    /// wherever it stands. The A/A arm is in no pair and is compared by itself.
    fn among(
        &mut self,
        pairs: &[Comparison],
        data: &LoadData<'_>,
        values: &mut Values<'_>,
        metric: Metric,
    ) -> Vec<Comparison> {
        let arms = &data.study.arms;
        let tests = pairs.iter().filter(is_valid).count();
        let each = arms.iter().enumerate().skip(1).map(|(index, arm)| {
            let against = &arms[arm.against].name;
            let is_it = |pair: &&Comparison| pair.arm == arm.name && pair.against == *against;
            if let Some(pair) = pairs.iter().find(is_it) {
                return pair.clone();
            }
            let mut own = self.estimate(data, values, metric, (index, arm.against));
            own.p_holm = (own.p * tests.max(1) as f64).min(1.0);
            judge(&mut own, data);
            own
        });
        each.collect()
    }

    /// Everything but the verdict, which needs the comparisons made beside this one.
    fn estimate(
        &mut self,
        data: &LoadData<'_>,
        values: &mut Values<'_>,
        metric: Metric,
        (arm, against): (usize, usize),
    ) -> Comparison {
        let mut comparison = blank(data, metric, arm, against);
        let (drawn, size) = match draw(data, values, metric, arm, against) {
            Ok(drawn) => drawn,
            Err(NotComparable(why)) => {
                comparison.because = why;
                return comparison;
            }
        };
        let d = &drawn.log_ratios;
        let estimate = hodges_lehmann(d);
        let interval = self.tests.interval(d, data.study.objective.confidence);
        let p = self.tests.p_two_sided(d);
        let (Some(estimate), Some(interval), Some(p)) = (estimate, interval, p) else {
            comparison.because = "the metric was not recorded".to_owned();
            return comparison;
        };
        comparison.n = d.len() as u32;
        comparison.merged = drawn.merged;
        comparison.autocorrelation = drawn.autocorrelation;
        comparison.ratio = estimate.exp();
        comparison.interval = (interval.low.exp(), interval.high.exp());
        comparison.confidence = interval.confidence;
        comparison.p = p;
        comparison.p_holm = p;
        // Qn is zero when half of the replicates are equal; then the plain one says more.
        let spread = qn(d).filter(|qn| *qn > 0.0).or(sd(d));
        if let Some(spread) = spread {
            comparison.minimum_detectable = minimum_detectable(spread, d.len());
        }
        comparison.verdict = Verdict::Inconclusive;
        comparison.because = caveats(&drawn, size.as_ref());
        comparison
    }
}

/// A comparison of which nothing is known yet.
fn blank(data: &LoadData<'_>, metric: Metric, arm: usize, against: usize) -> Comparison {
    let arms = &data.study.arms;
    Comparison {
        metric,
        arm: arms[arm].name.clone(),
        against: arms[against].name.clone(),
        n: 0,
        merged: 1,
        autocorrelation: 0.0,
        ratio: f64::NAN,
        interval: (f64::NAN, f64::NAN),
        confidence: 0.0,
        p: 1.0,
        p_holm: 1.0,
        minimum_detectable: f64::NAN,
        verdict: Verdict::Invalid,
        because: String::new(),
    }
}

/// The replicates of `metric`, from the blocks in which both arms are usable.
fn draw(
    data: &LoadData<'_>,
    values: &mut Values<'_>,
    metric: Metric,
    arm: usize,
    against: usize,
) -> Drawn {
    let unseen = [arm, against].map(|index| &data.study.arms[index]);
    let unseen = unseen.into_iter().find(|arm| !data.sees_process(arm));
    if let (Metric::CpuPerRequest, Some(unseen)) = (metric, unseen) {
        return Err(NotComparable(format!(
            "weir did not start the proxy of {} and does not see its CPU time",
            unseen.name
        )));
    }
    let blocks = data.usable_pairs(arm, against);
    if blocks.is_empty() {
        return Err(NotComparable(match data.blocks.len() {
            0 => "nothing was measured".to_owned(),
            n => format!("none of {n} blocks was valid for both arms"),
        }));
    }
    let size = match metric.response_quantile().is_some() {
        true => Some(quantile_groups(values, metric, &blocks, arm, against)?),
        false => None,
    };
    let least = size.as_ref().map_or(1, |size| size.blocks);
    let drawn = replicates(&blocks, least, |group| {
        (values.value(metric, arm, group) / values.value(metric, against, group)).ln()
    });
    Ok((drawn, size))
}

fn quantile_groups(
    values: &Values<'_>,
    metric: Metric,
    blocks: &[usize],
    arm: usize,
    against: usize,
) -> Result<GroupSize, NotComparable> {
    let (ours, theirs) = (values.rate(arm, blocks), values.rate(against, blocks));
    // A rate that is not a number is not the same as any other.
    let same = (1.0 - SAME_RATE..=1.0 + SAME_RATE).contains(&(ours / theirs));
    if !same {
        return Err(NotComparable(format!(
            "the arms answered at different rates, {ours:.0} and {theirs:.0} per second"
        )));
    }
    let (wanted, least) = samples_wanted(metric);
    let requests = values
        .samples(arm, blocks)
        .min(values.samples(against, blocks));
    let size = group_size(requests, blocks.len(), wanted);
    if size.samples < least {
        return Err(NotComparable(format!(
            "only {} requests in a replicate, fewer than the {least} that the quantile needs",
            size.samples
        )));
    }
    Ok(size)
}

/// What a reader should know beside the verdict, to be appended to its reason.
fn caveats(drawn: &Replicates, size: Option<&GroupSize>) -> String {
    let mut text = String::new();
    if let Some(size) = size.filter(|size| size.samples < size.wanted) {
        text += &format!(
            "; about {} requests behind each quantile, {} would be better",
            size.samples, size.wanted
        );
    }
    if drawn.correlated {
        text += "; neighbouring replicates still follow from one another, so the interval may be too narrow";
    }
    text
}

/// Holm's correction over the changes that were compared on one metric. The A/A arm answers another
/// question (is the lab sound?) and does not weigh on them, but it must not cry wolf more readily
/// than they do: its p is corrected as that of one of them (Bonferroni).
fn correct(family: &mut [Comparison], data: &LoadData<'_>) {
    let is_change = |c: &Comparison| {
        let arm = data.study.arms.iter().find(|arm| arm.name == c.arm);
        arm.is_some_and(|arm| arm.role == ArmRole::Change)
    };
    let valid = family.iter_mut().filter(is_valid);
    let (mut changes, same): (Vec<_>, Vec<_>) = valid.partition(|c| is_change(c));
    holm_over(&mut changes);
    for comparison in same {
        comparison.p_holm = (comparison.p * changes.len().max(1) as f64).min(1.0);
    }
}

fn is_valid(comparison: &(impl std::borrow::Borrow<Comparison> + ?Sized)) -> bool {
    comparison.borrow().verdict != Verdict::Invalid
}

/// Holm's correction over one family.
fn holm_over(family: &mut [&mut Comparison]) {
    let p: Vec<f64> = family.iter().map(|comparison| comparison.p).collect();
    for (comparison, corrected) in family.iter_mut().zip(holm(&p)) {
        comparison.p_holm = corrected;
    }
}

fn judge_all(family: &mut [Comparison], data: &LoadData<'_>) {
    for comparison in family {
        judge(comparison, data);
    }
}

/// The verdict and its reason; leaves what is not comparable as it is.
fn judge(comparison: &mut Comparison, data: &LoadData<'_>) {
    if comparison.verdict == Verdict::Invalid {
        return;
    }
    let objective = &data.study.objective;
    let evidence = Evidence {
        interval: comparison.interval,
        confidence: comparison.confidence,
        p: comparison.p_holm,
        n: comparison.n as usize,
    };
    let higher_is_better = comparison.metric.higher_is_better();
    let outcome = verdict(
        &evidence,
        objective.band,
        objective.confidence,
        higher_is_better,
    );
    comparison.verdict = match outcome {
        Outcome::Better => Verdict::Better,
        Outcome::Worse => Verdict::Worse,
        Outcome::Equivalent => Verdict::Equivalent,
        Outcome::Inconclusive => Verdict::Inconclusive,
    };
    let reason = reason(comparison, objective);
    comparison.because.insert_str(0, &reason);
}

fn reason(comparison: &Comparison, objective: &Objective) -> String {
    let (low, high) = comparison.interval;
    let band = format!("±{} %", (objective.band * 1e4).round() / 1e2);
    // For the A/A arm, or a single change, there was nothing to correct for.
    let corrected = match comparison.p_holm > comparison.p {
        true => " after correction",
        false => "",
    };
    let p = match comparison.p_holm {
        p if p < 1e-4 => format!("p is below 0.0001{corrected}"),
        p => format!("p is {p:.4}{corrected}"),
    };
    let few = (comparison.n as usize) < LEAST_REPLICATES;
    match comparison.verdict {
        Verdict::Better | Verdict::Worse => {
            let side = if low > 1.0 { "above" } else { "below" };
            format!("the whole interval lies {side} 1 and {p}")
        }
        Verdict::Equivalent => format!("the whole interval lies within {band}"),
        _ if few => format!(
            "too few replicates ({}); nothing is claimed from fewer than {LEAST_REPLICATES}",
            comparison.n
        ),
        _ if comparison.confidence < objective.confidence => format!(
            "{} replicates reach a confidence of {:.1} % only",
            comparison.n,
            comparison.confidence * 100.0
        ),
        _ if low <= 1.0 && high >= 1.0 => {
            format!("the interval holds 1 and reaches beyond {band}")
        }
        _ => format!("the interval excludes 1, but {p}"),
    }
}
