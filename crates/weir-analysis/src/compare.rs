//! Comparisons of arms, from blocks to verdicts: relative differences that may be taken for independent, and from them
//! estimate, interval, p, verdict and its reason.

use weir_model::record::LookRecord;
use weir_model::study::{ArmRole, Compare, LoadSpec, Metric, Objective};
use weir_record::Run;
use weir_stats::{Estimate, Evidence, SignedRank, holm, least_replicates, ratio_of, verdict};

use crate::blocks::LoadData;
use crate::findings::{AtLook, Basis, Caveat, Comparison, Needed, Verdict};
use crate::matrix;
use crate::names;
use crate::replicates::{Replicates, group_size, replicates, samples_needed, samples_wanted};
use crate::values::Values;

/// Minimum detectable change above which nothing can be detected.
const UNBOUNDED: f64 = 1e2;

/// Compares the arms under one load.
pub(crate) struct Comparer<'a> {
    pub(crate) data: &'a LoadData<'a>,
    pub(crate) values: Values<'a>,
    /// Tests whose tables are kept from load to load.
    pub(crate) tests: &'a mut SignedRank,
    /// The look that is being evaluated, if there are several.
    pub(crate) look: Option<&'a LookRecord>,
    /// Number of loads in the matrix that the load belongs to; 1 for a load that stands alone.
    cells: usize,
}

/// Comparisons under one load.
#[derive(Default)]
pub(crate) struct Compared {
    /// Comparisons of each arm with the one in its `against`, by metric, then by arm.
    pub(crate) comparisons: Vec<Comparison>,
    /// Comparisons of every pair, if the study asks for them, by metric, then by arm.
    pub(crate) pairs: Vec<Comparison>,
}

impl<'a> Comparer<'a> {
    pub(crate) fn new(
        run: &Run,
        (data, load): (&'a LoadData<'a>, &LoadSpec),
        tests: &'a mut SignedRank,
    ) -> Comparer<'a> {
        let values = Values::new(run, data);
        Comparer { data, values, tests, look: None, cells: matrix::cells(data.study, load) }
    }

    /// Makes all comparisons that the study asks for.
    pub(crate) fn compare(&mut self) -> Compared {
        let mut compared = Compared::default();
        for metric in self.data.metrics() {
            match self.data.study.compare {
                Compare::Against | Compare::Overall => {
                    compared.comparisons.extend(self.against(metric));
                }
                Compare::Pairs => {
                    let pairs = self.pairs(metric);
                    compared.comparisons.extend(self.among(&pairs, metric));
                    compared.pairs.extend(pairs);
                }
            }
        }
        compared
    }

    /// Returns true if p is corrected later, over all loads of a matrix ([`matrix::control`]).
    fn is_of_matrix(&self) -> bool {
        self.cells > 1
    }

    /// Compares each arm with the arm in its `against`, as one family.
    fn against(&mut self, metric: Metric) -> Vec<Comparison> {
        let arms = &self.data.study.arms;
        let mut family: Vec<Comparison> = arms
            .iter()
            .enumerate()
            .skip(1)
            .map(|(arm, spec)| self.estimate(metric, (arm, spec.against)))
            .collect();
        self.correct(&mut family);
        self.judge_all(&mut family);
        family
    }

    /// Compares every arm except the A/A arm with every one before it, as one family.
    fn pairs(&mut self, metric: Metric) -> Vec<Comparison> {
        let arms = self.data.study.arms.iter().enumerate();
        let arms: Vec<usize> = arms
            .filter(|(_, arm)| arm.role != ArmRole::SameAsBaseline)
            .map(|(index, _)| index)
            .collect();
        let mut family = Vec::new();
        for (index, &arm) in arms.iter().enumerate() {
            for &against in &arms[..index] {
                family.push(self.estimate(metric, (arm, against)));
            }
        }
        match self.look {
            Some(look) => correct_at(&mut family, look, self.data),
            None if self.is_of_matrix() => {}
            None => holm_over(&mut family.iter_mut().filter(is_valid).collect::<Vec<_>>()),
        }
        self.judge_all(&mut family);
        family
    }

    /// Returns the comparison of each arm with the arm in its `against`, taken from the pairs, so that a verdict is the
    /// same in both places. The A/A arm is in no pair and is compared by itself.
    fn among(&mut self, pairs: &[Comparison], metric: Metric) -> Vec<Comparison> {
        let arms = &self.data.study.arms;
        let tests = pairs.iter().filter(is_valid).count();
        let compared = arms.iter().enumerate().skip(1).map(|(index, arm)| {
            let against = &arms[arm.against].name;
            if let Some(pair) =
                pairs.iter().find(|pair| pair.arm == arm.name && pair.against == *against)
            {
                return pair.clone();
            }
            let mut comparison = self.estimate(metric, (index, arm.against));
            match self.look {
                Some(look) => correct_at(std::slice::from_mut(&mut comparison), look, self.data),
                None if self.is_of_matrix() => {}
                None => correct_alone(&mut comparison, tests),
            }
            self.judge_all(std::slice::from_mut(&mut comparison));
            comparison
        });
        compared.collect()
    }

    /// Applies Holm's correction to the changes compared on one metric. The A/A arm answers another question (is the
    /// lab sound?) and does not count in their family. It must not raise a false alarm more readily than they do, so
    /// its p is corrected as that of one of them (Bonferroni).
    fn correct(&self, family: &mut [Comparison]) {
        if let Some(look) = self.look {
            return correct_at(family, look, self.data);
        }
        if self.is_of_matrix() {
            return;
        }
        let (mut changes, same): (Vec<_>, Vec<_>) =
            family.iter_mut().filter(is_valid).partition(|c| {
                names::find(self.data.study, &c.arm).is_some_and(|arm| arm.role == ArmRole::Change)
            });
        holm_over(&mut changes);
        for comparison in same {
            correct_alone(comparison, changes.len());
        }
    }

    /// Estimates everything except the verdict, which needs the other comparisons of the family.
    fn estimate(&mut self, metric: Metric, (arm, against): (usize, usize)) -> Comparison {
        let mut comparison = blank(self.data, metric, arm, against);
        let drawn = match self.draw(metric, arm, against) {
            Ok(drawn) => drawn,
            Err(why) => {
                comparison.because.basis = why;
                return comparison;
            }
        };
        let overall = self.data.study.objective.confidence;
        let confidence = self.look.map_or(overall, |look| look.confidence);
        let sample = &drawn.differences;
        let clusters = &drawn.clusters;
        let estimate = match self.look {
            None => Estimate::of(self.tests, sample, clusters, confidence),
            Some(look) => Estimate::at_look(self.tests, sample, clusters, confidence, look.is_last),
        };
        let Some(estimate) = estimate else {
            return comparison;
        };
        let estimate = if drawn.has_few_instances() {
            estimate.with_few_instances(sample, &drawn.instances, confidence)
        } else {
            estimate
        };
        comparison.n = sample.len() as u32;
        (comparison.merged, comparison.requests) = (drawn.merged, drawn.requests);
        comparison.autocorrelation = estimate.autocorrelation;
        comparison.ratio = ratio_of(estimate.value);
        comparison.interval = estimate.interval.ratios();
        comparison.pooled = drawn.pooled;
        comparison.confidence = match estimate.interval.confidence {
            reached if self.look.is_none() => reached,
            // As sure as this look is to be, and so all of them together are.
            reached if reached >= confidence - 1e-12 => overall,
            reached => overall * reached / confidence,
        };
        comparison.p = estimate.p;
        comparison.p_holm = estimate.p;
        comparison.minimum_detectable = match estimate.minimum_detectable(self.level()) {
            least if least > UNBOUNDED => f64::INFINITY,
            // One of them has no figure in most replicates.
            _ if comparison.ratio == 0.0 || comparison.ratio.is_infinite() => f64::NAN,
            least => least,
        };
        comparison.verdict = Verdict::Inconclusive;
        comparison.because.caveats = caveats(metric, &drawn, &estimate);
        // At a look neighbours are taken together.
        if self.look.is_none() && estimate.correlated && drawn.has_short_clusters() {
            comparison.because.caveats.push(Caveat::Correlated);
        }
        comparison.look = self.look.map(|look| AtLook {
            look: look.look,
            of: look.planned.len() as u32,
            confidence: look.confidence,
            level: look.level,
            error: estimate.error,
        });
        comparison
    }

    /// Returns the two-sided level of the test of a comparison, corrected for all comparisons planned beside it. Holm's
    /// method and that of Benjamini and Hochberg hold the smallest p against this level, and other p against larger
    /// ones.
    fn level(&self) -> f64 {
        let family = self.data.study.questions().len().max(1) * self.cells;
        let error = 1.0 - self.data.study.objective.confidence;
        self.look.map_or(error / family as f64, |look| look.level)
    }

    /// Returns the replicates of `metric`, from the blocks in which both arms are usable; else the reason why the arms
    /// cannot be compared.
    pub(crate) fn draw(
        &self,
        metric: Metric,
        arm: usize,
        against: usize,
    ) -> Result<Replicates, Basis> {
        let data = self.data;
        let unseen = [arm, against]
            .map(|index| &data.study.arms[index])
            .into_iter()
            .find(|arm| !data.sees_process(arm));
        if let (Metric::CpuPerRequest, Some(unseen)) = (metric, unseen) {
            return Err(Basis::CpuTimeUnseen { arm: unseen.name.clone() });
        }
        let all = data.usable_pairs(arm, against);
        let blocks = self.values.telling(metric, &[arm, against], all.clone());
        if blocks.is_empty() {
            return Err(match data.blocks.len() {
                0 => Basis::NothingMeasured,
                blocks => Basis::NoValidBlock { blocks: blocks as u32 },
            });
        }
        let values = &self.values;
        let (size, requests) = match samples_wanted(metric) {
            0 => (1, None),
            wanted => {
                let requests = [arm, against].map(|arm| values.times_of(metric, arm, &blocks).due);
                let fewest = requests[0].min(requests[1]);
                let size = group_size(fewest, blocks.len(), wanted, self.replicates_needed());
                let per_block = fewest / blocks.len() as u64;
                (size, Some(per_block * size as u64))
            }
        };
        let mut drawn = replicates(data, &blocks, size, |group| {
            values.value(metric, arm, group) / values.value(metric, against, group)
        });
        drawn.requests = requests;
        if metric == Metric::ResponseP99 {
            let [p99, p99_against] =
                [arm, against].map(|arm| values.times(arm, &all).quantile(0.99));
            drawn.pooled = p99 / p99_against;
        }
        if drawn.differences.is_empty() { Err(Basis::FewAnswers) } else { Ok(drawn) }
    }

    /// Returns the number of replicates from which on a difference can be shown among the study's comparisons.
    fn replicates_needed(&self) -> usize {
        let study = self.data.study;
        match self.look {
            Some(look) => least_replicates(1, 1.0 - look.level),
            None => least_replicates(study.questions().len(), study.objective.confidence),
        }
    }

    /// Sets verdicts and their reasons; leaves comparisons without valid figures as they are.
    fn judge_all(&self, family: &mut [Comparison]) {
        family.iter_mut().filter(is_valid).for_each(|comparison| judge(comparison, self.data));
    }
}

/// Returns a comparison in which nothing is known.
fn blank(data: &LoadData<'_>, metric: Metric, arm: usize, against: usize) -> Comparison {
    let arms = &data.study.arms;
    Comparison {
        metric,
        arm: arms[arm].name.clone(),
        against: arms[against].name.clone(),
        n: 0,
        merged: 1,
        requests: None,
        family: 1,
        autocorrelation: 0.0,
        ratio: f64::NAN,
        pooled: f64::NAN,
        interval: (f64::NAN, f64::NAN),
        confidence: 0.0,
        look: None,
        p: 1.0,
        p_holm: 1.0,
        minimum_detectable: f64::NAN,
        verdict: Verdict::Invalid,
        because: Basis::NotRecorded.into(),
    }
}

/// Returns remarks on how the figures were made.
fn caveats(metric: Metric, drawn: &Replicates, found: &Estimate) -> Vec<Caveat> {
    let has_few_requests = drawn.requests.is_some_and(|requests| {
        (samples_needed(metric)..samples_wanted(metric)).contains(&requests)
    });
    let all = [
        (metric == Metric::ResponseP99, Caveat::TypicalP99),
        (has_few_requests, Caveat::FewRequests),
        (found.is_median, Caveat::Median),
        (drawn.has_few_instances(), Caveat::FewInstances),
    ];
    all.into_iter().filter(|(applies, _)| *applies).map(|(_, caveat)| caveat).collect()
}

/// Corrects the comparisons of one of several looks: each comparison has an equal part of the error at all looks
/// (Bonferroni), and keeps it when others are decided.
fn correct_at(family: &mut [Comparison], look: &LookRecord, data: &LoadData<'_>) {
    let stricter = (1.0 - data.study.objective.confidence) / look.level;
    for comparison in family.iter_mut().filter(is_valid) {
        comparison.family = look.family;
        comparison.p_holm = (comparison.p * stricter).min(1.0);
    }
}

fn is_valid(comparison: &(impl std::borrow::Borrow<Comparison> + ?Sized)) -> bool {
    comparison.borrow().verdict != Verdict::Invalid
}

/// Corrects one comparison for a family of the given size (Bonferroni).
fn correct_alone(comparison: &mut Comparison, family: usize) {
    comparison.family = family.max(1) as u32;
    comparison.p_holm = (comparison.p * f64::from(comparison.family)).min(1.0);
}

/// Applies Holm's correction to one family.
fn holm_over(family: &mut [&mut Comparison]) {
    let p: Vec<f64> = family.iter().map(|comparison| comparison.p).collect();
    for (comparison, corrected) in family.iter_mut().zip(holm(&p)) {
        comparison.family = p.len() as u32;
        comparison.p_holm = corrected;
    }
}

fn judge(comparison: &mut Comparison, data: &LoadData<'_>) {
    let objective = &data.study.objective;
    let evidence = Evidence {
        interval: comparison.interval,
        confidence: comparison.confidence,
        p: comparison.p_holm,
        n: comparison.n as usize,
    };
    let outcome = verdict(
        &evidence,
        objective.band,
        objective.confidence,
        comparison.metric.higher_is_better(),
    );
    let is_doubtful = comparison.lacks_requests() || comparison.is_contradicted(objective.band);
    comparison.verdict = if is_doubtful { Verdict::Inconclusive } else { outcome.into() };
    comparison.because.basis = comparison.basis(objective);
    if comparison.verdict == Verdict::Inconclusive {
        comparison.because.needed = needed(comparison, data, objective);
    }
}

/// Returns how much longer to measure, if too few replicates or requests ruled out that any difference could be shown.
fn needed(comparison: &Comparison, data: &LoadData<'_>, objective: &Objective) -> Option<Needed> {
    let block_s = data.block_ns() as f64 / 1e9;
    if comparison.lacks_requests() {
        let requests = comparison.requests.unwrap_or_default().max(1);
        let times_rate = samples_needed(comparison.metric) as f64 / requests as f64;
        let seconds = (times_rate - 1.0) * data.blocks.len() as f64 * block_s;
        return Some(Needed::Requests { seconds, times_rate });
    }
    let comparisons = comparison.family;
    let replicates = match comparison.look {
        Some(look) => least_replicates(1, 1.0 - look.level) as u32,
        None => least_replicates(comparisons as usize, objective.confidence) as u32,
    };
    let lacking = replicates.checked_sub(comparison.n).filter(|more| *more > 0)?;
    let of_these = f64::from(comparison.n * comparison.merged) / data.blocks.len().max(1) as f64;
    let blocks = f64::from(lacking * comparison.merged) / of_these.max(0.01);
    Some(Needed::Replicates { replicates, comparisons, seconds: blocks * block_s })
}
