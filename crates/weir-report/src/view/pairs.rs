//! Every arm against every other on one metric, as a table and in words.

use weir_analysis::findings::{Comparison, LoadFindings, Verdict};
use weir_model::study::{ArmRole, Metric, Study};

use super::compare::LEAST_CONFIDENCE;
use super::{number, words};

/// All pairs of a load on one metric.
#[derive(Debug, Clone)]
pub struct PairsView {
    /// Which arms are best, and which cannot be told apart, in one sentence.
    pub ranking: String,
    /// What a cell says: `the row carries so many times as much as the column`.
    pub reading: &'static str,
    /// What to know beside it: how p was corrected, and intervals that are less sure than asked.
    pub note: String,
    /// Arms in the order of rows and columns: the best first, those without valid figures last.
    pub arms: Vec<String>,
    /// One row for each arm.
    pub rows: Vec<PairRow>,
}

/// One arm against all.
#[derive(Debug, Clone)]
pub struct PairRow {
    /// The arm.
    pub arm: String,
    /// Against each arm of [`PairsView::arms`]; `None` against itself.
    pub cells: Vec<Option<PairCell>>,
}

/// One pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairCell {
    /// Ratio of the row's arm to the column's.
    pub ratio: String,
    /// Its interval.
    pub interval: String,
    /// Whether the row's arm is better.
    pub verdict: Verdict,
    /// Why.
    pub because: String,
}

impl PairCell {
    /// The verdict's sign and the ratio: `▲ 1.64×`.
    pub fn signed(&self) -> String {
        format!("{} {}", words::verdict_sign(self.verdict), self.ratio)
    }

    /// The verdict in one word, which is the name of its style too.
    pub fn word(&self) -> &'static str {
        words::verdict(self.verdict)
    }
}

impl PairsView {
    /// Leaves the ranking out where the answer says the same.
    pub(super) fn beside(&mut self, answer: &str) {
        let words = self.ranking.trim_end_matches('.');
        // The answer may begin its sentence otherwise.
        if answer.contains(words.get(1..).unwrap_or(words)) {
            self.ranking.clear();
        }
    }
}

pub(super) fn view(study: &Study, load: &LoadFindings, metric: Metric) -> Option<PairsView> {
    let pairs = load.pairs.iter().filter(|pair| pair.metric == metric);
    let pairs: Vec<&Comparison> = pairs.collect();
    if pairs.is_empty() {
        return None;
    }
    let ranking = load.rankings.iter().find(|r| r.metric == metric);
    let arms: Vec<String> = match ranking {
        Some(ranking) => {
            let ranked = ranking.groups.iter().flatten();
            ranked.chain(&ranking.unranked).cloned().collect()
        }
        None => {
            let arms = study.arms.iter();
            let arms = arms.filter(|arm| arm.role != ArmRole::SameAsBaseline);
            arms.map(|arm| arm.name.clone()).collect()
        }
    };
    let rows = arms.iter().map(|arm| PairRow {
        arm: arm.clone(),
        cells: arms
            .iter()
            .map(|against| cell(&pairs, arm, against))
            .collect(),
    });
    Some(PairsView {
        ranking: ranking.map_or_else(String::new, |ranking| {
            format!("{}.", words::sentence(&ranking.words))
        }),
        reading: reading(metric),
        note: note(&pairs, study.objective.confidence),
        rows: rows.collect(),
        arms,
    })
}

fn cell(pairs: &[&Comparison], arm: &str, against: &str) -> Option<PairCell> {
    let found = pairs.iter().find_map(|pair| match () {
        () if pair.arm == arm && pair.against == against => Some((*pair).clone()),
        () if pair.arm == against && pair.against == arm => Some(pair.mirrored()),
        () => None,
    })?;
    Some(PairCell {
        ratio: number::ratio(found.ratio),
        interval: match found.confidence < LEAST_CONFIDENCE {
            true => number::NONE.to_owned(),
            false => number::ratio_interval(found.ratio, found.interval),
        },
        verdict: found.verdict,
        because: found.because,
    })
}

fn reading(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "the row carries so many times as much as the column",
        Metric::ReceivedBytes => "the row passes on so many times as many bytes as the column",
        Metric::CpuPerRequest => {
            "the row spends so many times the CPU time of the column on a request"
        }
        Metric::ResponseP50 | Metric::ResponseP99 => {
            "the row takes so many times as long as the column"
        }
    }
}

fn note(pairs: &[&Comparison], asked: f64) -> String {
    let valid = pairs.iter().filter(|pair| pair.verdict != Verdict::Invalid);
    let tests = valid.clone().count();
    let of = number::plural(tests as u64, "pair");
    let mut note = match tests {
        0 | 1 => String::new(),
        _ => format!("verdicts are corrected over these {of} (Holm)"),
    };
    let least = valid.map(|pair| pair.confidence).fold(1.0, f64::min);
    if least < asked - 0.0005 {
        let least = number::level(least);
        let colon = if note.is_empty() { "" } else { "; " };
        note += &format!("{colon}too few replicates: intervals reach a confidence of {least} only");
    }
    note
}
