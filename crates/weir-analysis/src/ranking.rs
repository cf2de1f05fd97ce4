//! Arms in order, as far as their pairs can tell them apart.
//!
//! An arm's position comes from the mean of its log ratios to all others. Going down the order, an arm joins the group
//! before it if no pair with a member of that group is better or worse; else it begins the next. "Cannot be told apart"
//! is not transitive, so pairs across the border of two groups may be undecided too: these are named.

use std::collections::BTreeMap;

use weir_model::study::{ArmRole, Metric, Study};

use crate::findings::{Comparison, Ranking, Verdict};

/// Returns a ranking for each metric; none if the study does not compare pairs.
pub fn rankings(study: &Study, metrics: &[Metric], pairs: &[Comparison]) -> Vec<Ranking> {
    if pairs.is_empty() {
        return Vec::new();
    }
    metrics.iter().map(|metric| Pairs::of(study, *metric, pairs).ranking()).collect()
}

/// The pairs of one metric, each in both directions.
struct Pairs<'a> {
    study: &'a Study,
    metric: Metric,
    by_arms: BTreeMap<(String, String), Comparison>,
}

impl<'a> Pairs<'a> {
    fn of(study: &'a Study, metric: Metric, pairs: &[Comparison]) -> Pairs<'a> {
        let both = pairs
            .iter()
            .filter(|pair| pair.metric == metric)
            .flat_map(|pair| [pair.clone(), pair.mirrored()]);
        Pairs {
            study,
            metric,
            by_arms: both.map(|pair| ((pair.arm.clone(), pair.against.clone()), pair)).collect(),
        }
    }

    fn get(&self, arm: &str, against: &str) -> Option<&Comparison> {
        self.by_arms
            .get(&(arm.to_owned(), against.to_owned()))
            .filter(|pair| pair.verdict != Verdict::Invalid)
    }

    fn ranking(&self) -> Ranking {
        let (ranked, unranked) = self.ordered();
        let groups = self.groups(&ranked);
        let overlaps = self.overlaps(&groups);
        let is_clear = self.is_clear(&groups);
        Ranking { metric: self.metric, groups, overlaps, unranked, is_clear }
    }

    /// Returns all arms with a valid pair, from the best to the worst, and those without.
    fn ordered(&self) -> (Vec<String>, Vec<String>) {
        let arms = self.study.arms.iter().filter(|arm| arm.role != ArmRole::SameAsBaseline);
        let arms: Vec<&String> = arms.map(|arm| &arm.name).collect();
        let mut ranked: Vec<(f64, String)> = Vec::new();
        let mut unranked = Vec::new();
        for arm in &arms {
            let logs: Vec<f64> = arms
                .iter()
                .filter_map(|other| self.get(arm, other))
                .map(|pair| pair.ratio.ln())
                .collect();
            if logs.is_empty() {
                unranked.push((*arm).clone());
            } else {
                let score = logs.iter().sum::<f64>() / (logs.len() + 1) as f64;
                ranked.push((score, (*arm).clone()));
            }
        }
        let sign = if self.metric.higher_is_better() { -1.0 } else { 1.0 };
        ranked.sort_by(|(a, _), (b, _)| (a * sign).total_cmp(&(b * sign)));
        (ranked.into_iter().map(|(_, arm)| arm).collect(), unranked)
    }

    fn is_undecided(&self, a: &str, b: &str) -> bool {
        let pair = self.get(a, b);
        pair.is_some_and(|pair| !matches!(pair.verdict, Verdict::Better | Verdict::Worse))
    }

    fn groups(&self, ranked: &[String]) -> Vec<Vec<String>> {
        let mut groups: Vec<Vec<String>> = Vec::new();
        for arm in ranked {
            let last = groups.last_mut();
            match last.filter(|group| group.iter().all(|other| self.is_undecided(arm, other))) {
                Some(group) => group.push(arm.clone()),
                None => groups.push(vec![arm.clone()]),
            }
        }
        groups
    }

    fn overlaps(&self, groups: &[Vec<String>]) -> Vec<(String, String)> {
        let mut overlaps = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            for better in group {
                let undecided = groups[index + 1..]
                    .iter()
                    .flatten()
                    .filter(|arm| self.is_undecided(better, arm));
                overlaps.extend(undecided.map(|arm| (better.clone(), arm.clone())));
            }
        }
        overlaps
    }

    /// Returns true if every arm of the first group is better than every arm of the others.
    fn is_clear(&self, groups: &[Vec<String>]) -> bool {
        let Some((first, others)) = groups.split_first() else {
            return false;
        };
        let mut later = others.iter().flatten();
        later.all(|arm| {
            first.iter().all(|best| self.get(arm, best).is_some() && !self.is_undecided(arm, best))
        })
    }
}
