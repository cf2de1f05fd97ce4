//! Arms in order, as far as their pairs can tell them apart.
//!
//! An arm's position comes from the mean of its log ratios to all others. Going down the order, an arm joins the group
//! before it if no pair with a member of that group is better or worse; else it begins the next. "Cannot be told apart"
//! is not transitive, so pairs across the border of two groups may be undecided too: these are named.

use std::collections::BTreeMap;

use weir_model::study::{ArmRole, Metric, Study};

use crate::findings::{Comparison, Ranking, Verdict};
use crate::names;

/// Maximum number of undecided pairs of different groups that are listed; more are counted.
const OVERLAPS_LISTED: usize = 3;

/// Returns a ranking for each metric; none if the study does not compare pairs. Under `idle` loads nobody was busy, so
/// rates show how fast arms answer and not what they can carry.
pub fn rankings(
    study: &Study,
    metrics: &[Metric],
    pairs: &[Comparison],
    idle: bool,
) -> Vec<Ranking> {
    if pairs.is_empty() {
        return Vec::new();
    }
    metrics
        .iter()
        .map(|metric| Pairs { idle, ..Pairs::of(study, *metric, pairs) }.ranking())
        .collect()
}

/// The pairs of one metric, each in both directions.
struct Pairs<'a> {
    study: &'a Study,
    metric: Metric,
    idle: bool,
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
            idle: false,
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
        let words = self.words(&groups, &overlaps, &unranked);
        Ranking { metric: self.metric, groups, overlaps, unranked, words }
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

    /// Returns the ranking as text: "HAProxy and nginx carry most and cannot be told apart; Envoy carries 0.61 times as
    /// much as HAProxy (95 % interval 0.58 to 0.64)".
    fn words(
        &self,
        groups: &[Vec<String>],
        overlaps: &[(String, String)],
        unranked: &[String],
    ) -> String {
        let mut parts = Vec::new();
        if let Some(first) = groups.first() {
            let is_decided = overlaps.iter().all(|(better, _)| !first.contains(better));
            let mut later = groups[1..].iter().flatten();
            let is_compared =
                later.all(|arm| first.iter().all(|best| self.get(arm, best).is_some()));
            let is_clear = is_decided && is_compared;
            parts.push(self.of_best(first, groups.len() == 1, is_clear));
            let mut with_confidence = true;
            for group in &groups[1..] {
                parts.push(self.of_group(group, &first[0], with_confidence));
                with_confidence = false;
            }
        }
        parts.extend(self.of_overlaps(overlaps));
        if !unranked.is_empty() {
            let verb = if unranked.len() == 1 { "has" } else { "have" };
            parts.push(format!("{} {verb} no valid figures", self.named(unranked)));
        }
        if parts.is_empty() { "nothing could be compared".to_owned() } else { parts.join("; ") }
    }

    fn named(&self, arms: &[String]) -> String {
        let shown = arms.iter().map(|arm| names::arm(self.study, arm));
        names::listed(&shown.collect::<Vec<_>>())
    }

    /// Describes the best group, or the only one. If `is_clear` is false, because a later arm could not be told from
    /// one of the group or has no valid pair with one, the claim is weakened.
    fn of_best(&self, group: &[String], is_only: bool, is_clear: bool) -> String {
        let subject = self.named(group);
        let best = match (self.metric, group.len()) {
            (Metric::Rate, 1) if self.idle => "answers most",
            (Metric::Rate, _) if self.idle => "answer most",
            (Metric::Rate, 1) => "carries most",
            (Metric::Rate, _) => "carry most",
            (Metric::ReceivedBytes, 1) => "passes on most bytes",
            (Metric::ReceivedBytes, _) => "pass on most bytes",
            (Metric::CpuPerRequest, 1) => "spends least CPU time on a request",
            (Metric::CpuPerRequest, _) => "spend least CPU time on a request",
            (Metric::ResponseP50, 1) => "has the shortest median response time",
            (Metric::ResponseP50, _) => "have the shortest median response times",
            (Metric::ResponseP99, 1) => "has the shortest 0.99 quantile of the response time",
            (Metric::ResponseP99, _) => "have the shortest 0.99 quantiles of the response time",
        };
        let best = if is_clear { best.to_owned() } else { format!("{best} as far as can be told") };
        match (group.len(), is_only) {
            (1, _) => format!("{subject} {best}"),
            (_, true) => format!("{subject} {}", self.alike(group)),
            (_, false) => format!("{subject} {best} and {}", self.alike(group)),
        }
    }

    /// Describes arms that no pair told apart.
    fn alike(&self, group: &[String]) -> String {
        let mut pairs = group
            .iter()
            .enumerate()
            .flat_map(|(index, a)| group[..index].iter().filter_map(|b| self.get(a, b)));
        if pairs.all(|pair| pair.verdict == Verdict::Equivalent) {
            let band = (self.study.objective.band * 1e4).round() / 1e2;
            format!("are equal within {band} %")
        } else {
            "cannot be told apart".to_owned()
        }
    }

    fn of_group(&self, group: &[String], best: &str, with_confidence: bool) -> String {
        let is_one = group.len() == 1;
        let against = names::arm(self.study, best);
        let ratios: Vec<String> = group
            .iter()
            .map(|arm| match self.get(arm, best) {
                Some(pair) => self.ratio(pair, with_confidence && *arm == group[0]),
                None => "an unknown number of".to_owned(),
            })
            .collect();
        let ratios = names::listed(&ratios);
        let verb = match (self.metric, is_one) {
            (Metric::Rate, true) if self.idle => "answers",
            (Metric::Rate, false) if self.idle => "answer",
            (Metric::Rate, true) => "carries",
            (Metric::Rate, false) => "carry",
            (Metric::ReceivedBytes, true) => "passes on",
            (Metric::ReceivedBytes, false) => "pass on",
            (Metric::CpuPerRequest, true) => "spends",
            (Metric::CpuPerRequest, false) => "spend",
            (Metric::ResponseP50 | Metric::ResponseP99, true) => "takes",
            (Metric::ResponseP50 | Metric::ResponseP99, false) => "take",
        };
        let measure = match self.metric {
            Metric::Rate if self.idle => format!("times as many requests as {against}"),
            Metric::Rate | Metric::ReceivedBytes => format!("times as much as {against}"),
            Metric::CpuPerRequest => format!("times the CPU time of {against}"),
            Metric::ResponseP50 | Metric::ResponseP99 => format!("times as long as {against}"),
        };
        let alike = if is_one { String::new() } else { format!(" and {}", self.alike(group)) };
        format!("{} {verb} {ratios} {measure}{alike}", self.named(group))
    }

    /// Returns the ratio of a pair: "0.61 (95 % interval 0.58 to 0.64)".
    fn ratio(&self, pair: &Comparison, with_confidence: bool) -> String {
        let ends = names::interval(pair.interval);
        let confidence = (self.study.objective.confidence * 1e4).round() / 1e2;
        let interval =
            if with_confidence { format!("{confidence} % interval ") } else { String::new() };
        format!("{:.2} ({interval}{ends})", pair.ratio)
    }

    /// Lists the overlaps: "Caddy could not be told from nginx either, nor Envoy from Caddy".
    fn of_overlaps(&self, overlaps: &[(String, String)]) -> Option<String> {
        let pairs = overlaps.iter().enumerate().map(|(index, (better, arm))| {
            let [better, arm] = [better, arm].map(|arm| names::arm(self.study, arm));
            match index {
                0 => format!("{arm} could not be told from {better} either"),
                _ => format!("nor {arm} from {better}"),
            }
        });
        let mut listed: Vec<String> = pairs.take(OVERLAPS_LISTED).collect();
        if overlaps.len() > OVERLAPS_LISTED {
            listed
                .push(format!("nor the arms of {} other pairs", overlaps.len() - OVERLAPS_LISTED));
        }
        (!listed.is_empty()).then(|| listed.join(", "))
    }
}
