//! Arms in order, as far as their pairs can tell them apart.

use weir_analysis::findings::{Comparison, LoadFindings, Ranking, Verdict};
use weir_model::study::{Metric, Study};

use crate::names::{arm, join_names};
use crate::numbers;

/// Maximum number of undecided pairs of different groups that are listed; more are counted.
const OVERLAPS_LISTED: usize = 3;

/// Returns the ranking by a metric: "HAProxy and nginx carry most and cannot be told apart; Envoy carries 0.61 (95 %
/// interval 0.58 to 0.64) times as much as HAProxy". `None` if the study does not compare every pair. Under an idle
/// load nobody was busy, so rates show how fast arms answer and not what they can carry.
pub fn describe_ranking(study: &Study, load: &LoadFindings, metric: Metric) -> Option<String> {
    let ranking = load.rankings.iter().find(|ranking| ranking.metric == metric)?;
    let ranked = Ranked { study, load, ranking, is_idle: load.idle.is_some() };
    let mut clauses = Vec::new();
    if let Some((first, others)) = ranking.groups.split_first() {
        clauses.push(ranked.describe_best(first));
        for (index, group) in others.iter().enumerate() {
            clauses.push(ranked.describe_group(group, &first[0], index == 0));
        }
    }
    clauses.extend(ranked.describe_overlaps());
    if !ranking.unranked.is_empty() {
        let verb = if ranking.unranked.len() == 1 { "has" } else { "have" };
        clauses.push(format!("{} {verb} no valid figures", ranked.list_arms(&ranking.unranked)));
    }
    Some(clauses.join("; "))
}

/// A ranking, with the pairs that it rests on.
struct Ranked<'a> {
    study: &'a Study,
    load: &'a LoadFindings,
    ranking: &'a Ranking,
    /// True if nobody was busy under the load.
    is_idle: bool,
}

impl Ranked<'_> {
    /// Returns the comparison of two arms; `None` if it is INVALID.
    fn find_pair(&self, arm: &str, against: &str) -> Option<Comparison> {
        let pairs = self.load.pairs.iter().filter(|pair| pair.metric == self.ranking.metric);
        let mut valid = pairs.filter(|pair| pair.verdict != Verdict::Invalid);
        valid.find_map(|pair| {
            if pair.arm == arm && pair.against == against {
                Some(pair.clone())
            } else if pair.arm == against && pair.against == arm {
                Some(pair.mirrored())
            } else {
                None
            }
        })
    }

    fn list_arms(&self, arms: &[String]) -> String {
        let names: Vec<String> = arms.iter().map(|name| arm(self.study, name)).collect();
        join_names(&names)
    }

    /// Describes the best group, or the only one. The claim is weakened if another arm may be as good.
    fn describe_best(&self, group: &[String]) -> String {
        let subject = self.list_arms(group);
        let best = match (self.ranking.metric, group.len()) {
            (Metric::Rate, 1) if self.is_idle => "answers most",
            (Metric::Rate, _) if self.is_idle => "answer most",
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
        let certainty = if self.ranking.is_clear { "" } else { " as far as can be told" };
        match (group.len(), self.ranking.groups.len()) {
            (1, _) => format!("{subject} {best}{certainty}"),
            (_, 1) => format!("{subject} {}", self.describe_likeness(group)),
            _ => format!("{subject} {best}{certainty} and {}", self.describe_likeness(group)),
        }
    }

    /// Describes arms that no pair told apart.
    fn describe_likeness(&self, group: &[String]) -> String {
        let mut pairs = group
            .iter()
            .enumerate()
            .flat_map(|(index, a)| group[..index].iter().filter_map(|b| self.find_pair(a, b)));
        if pairs.all(|pair| pair.verdict == Verdict::Equivalent) {
            let band = numbers::level(self.study.objective.band);
            format!("are equal within {band}")
        } else {
            "cannot be told apart".to_owned()
        }
    }

    /// Describes a group that is not the best: "Envoy carries 0.61 (0.58 to 0.64) times as much as HAProxy".
    fn describe_group(&self, group: &[String], best: &str, with_confidence: bool) -> String {
        let is_one = group.len() == 1;
        let against = arm(self.study, best);
        let ratios: Vec<String> = group
            .iter()
            .map(|arm| match self.find_pair(arm, best) {
                Some(pair) => self.format_ratio(&pair, with_confidence && *arm == group[0]),
                None => "an unknown number of".to_owned(),
            })
            .collect();
        let ratios = join_names(&ratios);
        let verb = match (self.ranking.metric, is_one) {
            (Metric::Rate, true) if self.is_idle => "answers",
            (Metric::Rate, false) if self.is_idle => "answer",
            (Metric::Rate, true) => "carries",
            (Metric::Rate, false) => "carry",
            (Metric::ReceivedBytes, true) => "passes on",
            (Metric::ReceivedBytes, false) => "pass on",
            (Metric::CpuPerRequest, true) => "spends",
            (Metric::CpuPerRequest, false) => "spend",
            (Metric::ResponseP50 | Metric::ResponseP99, true) => "takes",
            (Metric::ResponseP50 | Metric::ResponseP99, false) => "take",
        };
        let measure = match self.ranking.metric {
            Metric::Rate if self.is_idle => format!("times as many requests as {against}"),
            Metric::Rate | Metric::ReceivedBytes => format!("times as much as {against}"),
            Metric::CpuPerRequest => format!("times the CPU time of {against}"),
            Metric::ResponseP50 | Metric::ResponseP99 => format!("times as long as {against}"),
        };
        let alike =
            if is_one { String::new() } else { format!(" and {}", self.describe_likeness(group)) };
        format!("{} {verb} {ratios} {measure}{alike}", self.list_arms(group))
    }

    /// Formats the ratio of a pair: `0.61 (95 % interval 0.58 to 0.64)`.
    fn format_ratio(&self, pair: &Comparison, with_confidence: bool) -> String {
        let ends = numbers::interval(pair.interval);
        let confidence = numbers::level(self.study.objective.confidence);
        let interval =
            if with_confidence { format!("{confidence} interval ") } else { String::new() };
        format!("{} ({interval}{ends})", numbers::ratio(pair.ratio))
    }

    /// Lists the overlaps: "Caddy could not be told from nginx either, nor Envoy from Caddy".
    fn describe_overlaps(&self) -> Option<String> {
        let overlaps = &self.ranking.overlaps;
        let pairs = overlaps.iter().enumerate().map(|(index, (better, other))| {
            let [better, other] = [better, other].map(|name| arm(self.study, name));
            match index {
                0 => format!("{other} could not be told from {better} either"),
                _ => format!("nor {other} from {better}"),
            }
        });
        let mut listed: Vec<String> = pairs.take(OVERLAPS_LISTED).collect();
        match overlaps.len().saturating_sub(OVERLAPS_LISTED) {
            0 => {}
            1 => listed.push("nor the arms of 1 other pair".to_owned()),
            more => listed.push(format!("nor the arms of {more} other pairs")),
        }
        (!listed.is_empty()).then(|| listed.join(", "))
    }
}
