//! Glossary of a report, for first-time readers.

use weir_analysis::findings::Findings;

use crate::tree::{Block, Cell, Column, Heading, Kind, Row, Style, Table, fold, text};

/// Words and their meanings, in the order in which they occur in a report.
type Words = &'static [(&'static str, &'static str)];

const ALWAYS: Words = &[
    (
        "VALID, SUSPECT, INVALID",
        "Whether a figure may be used, used with care, or not used. The generator, the origin server and the machine \
         decide this, not the outcome.",
    ),
    ("interval", "The range that contains the true value, with the confidence that is stated."),
    (
        "response time, p50, p99",
        "From the moment a request was due to the last byte of its response. Half of the requests took no longer than \
         the p50, 99 of 100 no longer than the p99.",
    ),
];

const CAPACITIES: Words = &[
    (
        "capacity, objective",
        "The highest rate at which responses keep the objective, which is a limit such as p99 < 100ms.",
    ),
    (
        "sustained, fresh",
        "Sustained: held for longer than the slowest memory of the system. Fresh: held only for a short time after a \
         rest.",
    ),
    (
        "knee",
        "The rate from which on the p99 stays above twice its lowest value. It is not a limit.",
    ),
];

const COMPARISONS: Words = &[
    (
        "arm, baseline",
        "An arm is one configuration of the system under test. The others are compared with the baseline.",
    ),
    ("ratio", "The arm's figure divided by the baseline's: 1.05 is 5 % more."),
    (
        "p",
        "How probable a difference as large as this one would be if the arms were equal, corrected for the number of \
         comparisons. A small p: chance is a poor explanation.",
    ),
    (
        "better, worse",
        "The whole interval is on one side of 1, and p is small: chance does not explain the difference.",
    ),
    (
        "equivalent, inconclusive",
        "Equivalent: the whole interval is within the band of differences that do not matter. Inconclusive: neither a \
         difference nor equivalence is shown. More blocks, or a quieter machine, are needed.",
    ),
];

/// Glossary for arms that are compared in blocks.
const BLOCKS: Words = &[
    (
        "block, replicates, n",
        "A block is two slices of every arm. Blocks are the replicates of the statistics, and n is their number. \
         Requests are not replicates: those of one moment share its disturbances.",
    ),
    (
        "MDE",
        "Minimum detectable effect: the smallest difference that this run would probably have found. A smaller one may \
         exist.",
    ),
    (
        "A/A",
        "The baseline compared with itself: the difference that this machine produces where there is none.",
    ),
    (
        "typical p99, pooled p99",
        "Typical: the p99 of an ordinary short time, which comparisons use. Pooled: the p99 of all requests together, \
         which a few bad moments can decide.",
    ),
];

/// Returns the glossary of the words that these findings use, folded if the output supports that.
pub(super) fn section(findings: &Findings) -> Vec<Block> {
    let words: &[Words] = match &findings.capacity {
        Some(found) if found.arms.len() == 1 => &[ALWAYS, CAPACITIES],
        Some(_) => &[ALWAYS, CAPACITIES, COMPARISONS],
        None => &[ALWAYS, COMPARISONS, BLOCKS],
    };
    let rows = words
        .iter()
        .copied()
        .flatten()
        .copied()
        .map(|(word, meaning)| Row::new(word, [Cell::from(meaning)]));
    let table = Table::new(Kind::Prose, "Words of this report", "word")
        .columns([Column::left("meaning")])
        .rows(rows);
    vec![
        Block::Heading(Heading::section("glossary", "How to read this report")),
        text(Style::Soft, "docs/statistics.md of weir describes the method."),
        fold("What the words mean here", vec![Block::Table(table)]),
    ]
}
