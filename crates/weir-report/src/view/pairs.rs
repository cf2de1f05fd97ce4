//! Comparison of every arm with every other on one metric, as a table and in words.

use weir_analysis::findings::{Comparison, LoadFindings, Verdict};
use weir_model::study::{ArmRole, Metric, Study};
use weir_sentences::{capitalize, describe_ranking, explain_verdict};

use super::tones;
use crate::input::ReportInput;
use crate::tree::{Block, Cell, Column, Kind, Role, Row, Style, Table, Text, labelled, text};
use crate::{number, words};

/// Content of the cell of an arm with itself.
const ITSELF: &str = "·";

/// Returns the comparison. Empty if the study does not compare every pair.
pub(super) fn blocks(input: &ReportInput<'_>, load: &LoadFindings, metric: Metric) -> Vec<Block> {
    let study = &input.header.study;
    let pairs = load.pairs.iter().filter(|pair| pair.metric == metric);
    let pairs: Vec<&Comparison> = pairs.collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let ranking = describe_ranking(study, load, metric);
    let mut blocks = Vec::new();
    if let Some(ranking) = ranking.filter(|ranking| !is_said(&input.answer, ranking)) {
        let sentence = capitalize(study, &ranking);
        blocks.push(text(Style::Strong, format!("{sentence}.")));
    }
    let reading = match note(&pairs, study.objective.confidence).as_str() {
        "" => reading(metric).to_owned(),
        note => format!("{}; {note}", reading(metric)),
    };
    blocks.push(labelled("Pairs", Style::Soft, reading));
    blocks.push(Block::Table(table(study, &arms(study, load, metric), &pairs, metric)));
    blocks
}

/// Returns true if the answer contains the ranking. The first letter may differ.
fn is_said(answer: &str, ranking: &str) -> bool {
    let words = ranking.trim_end_matches('.');
    answer.contains(words.get(1..).unwrap_or(words))
}

/// Returns the arms, best first. Arms without valid figures are last.
fn arms<'a>(study: &'a Study, load: &'a LoadFindings, metric: Metric) -> Vec<&'a str> {
    let ranking = load.rankings.iter().find(|ranking| ranking.metric == metric);
    match ranking {
        Some(ranking) => {
            ranking.groups.iter().flatten().chain(&ranking.unranked).map(String::as_str).collect()
        }
        None => study
            .arms
            .iter()
            .filter(|arm| arm.role != ArmRole::SameAsBaseline)
            .map(|arm| arm.name.as_str())
            .collect(),
    }
}

fn table(study: &Study, arms: &[&str], pairs: &[&Comparison], metric: Metric) -> Table {
    let label = format!("Every pair of arms: {}", words::metric(metric));
    Table::new(Kind::Pairs, label, "row against column")
        .columns(arms.iter().map(|arm| Column::new(*arm)))
        .rows(
            arms.iter().map(|arm| {
                Row::new(*arm, arms.iter().map(|against| cell(study, pairs, arm, against)))
            }),
        )
}

fn cell(study: &Study, pairs: &[&Comparison], arm: &str, against: &str) -> Cell {
    let comparison = pairs.iter().find_map(|pair| match () {
        () if pair.arm == arm && pair.against == against => Some((*pair).clone()),
        () if pair.arm == against && pair.against == arm => Some(pair.mirrored()),
        () => None,
    });
    let Some(comparison) = comparison else {
        return Text::of(Role::Soft, ITSELF).into();
    };
    let (ratio, interval) = match comparison.verdict {
        Verdict::Invalid => (number::NONE.to_owned(), String::new()),
        // The note says what confidence is reached.
        _ => (number::ratio(comparison.ratio), words::interval(&comparison, 0.0)),
    };
    let signed = format!("{} {ratio}", words::verdict_sign(comparison.verdict));
    let word = comparison.verdict.word();
    let reason = explain_verdict(&comparison, &study.objective);
    Cell::tone(tones::tone(comparison.verdict), signed)
        .small(interval)
        .title(format!("{arm} against {against}: {word}, {reason}"))
}

fn reading(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "how many times as much the row carries as the column",
        Metric::ReceivedBytes => "how many times as many bytes the row passes on as the column",
        Metric::CpuPerRequest => "how many times the column's CPU time per request the row spends",
        Metric::ResponseP50 | Metric::ResponseP99 => {
            "how many times as long the row takes as the column"
        }
    }
}

fn note(pairs: &[&Comparison], asked: f64) -> String {
    let valid = pairs.iter().filter(|pair| pair.verdict != Verdict::Invalid);
    let tests = valid.clone().count();
    let pair_count = number::plural(tests as u64, "pair");
    let mut note = match tests {
        0 | 1 => String::new(),
        _ => format!("verdicts are corrected over these {pair_count} (Holm)"),
    };
    let least = valid.map(|pair| pair.confidence).fold(1.0, f64::min);
    if least < asked - 0.0005 {
        let least = number::level(least);
        let colon = if note.is_empty() { "" } else { "; " };
        note += &format!("{colon}too few replicates: intervals reach a confidence of {least} only");
    }
    note
}
