//! Check that the winner's ratio holds when arms run one at a time.

use weir_analysis::findings::AloneFindings;
use weir_model::study::Study;

use super::tones;
use crate::tree::{Block, Cell, Column, Heading, Kind, Row, Style, Table, clause};
use crate::{number, words};

/// Returns the section. Empty if the study does not request the check.
pub(super) fn section(study: &Study, found: Option<&AloneFindings>) -> Vec<Block> {
    let Some(found) = found else {
        return Vec::new();
    };
    let heading = Heading::section("alone", "One arm at a time").badge(found.validity);
    let summary = clause(Style::Plain, weir_sentences::describe_alone(study, found));
    if found.n == 0 {
        return vec![Block::Heading(heading), summary];
    }
    let rows = [
        ("side by side", found.together),
        ("alone", found.alone),
        ("alone / side by side", found.change),
    ]
    .map(|(name, (ratio, interval))| {
        let cells =
            [Cell::from(number::ratio(ratio)), Cell::from(number::ratio_interval(ratio, interval))];
        Row::new(name, cells)
    });
    let label = format!(
        "{} against {} by {} under the load {}",
        found.arm,
        found.against,
        words::metric(found.metric),
        found.load
    );
    let table = Table::new(Kind::Plain, label, "measured")
        .columns([Column::new("ratio"), Column::new("interval")])
        .rows(rows);
    let like = words::limit_as_verdict(found.verdict);
    let verdict = [
        Cell::tone(
            tones::tone(like),
            format!("{} {}", words::verdict_sign(like), words::limit(found.verdict)),
        ),
        Cell::from(weir_sentences::explain_alone(study, found)),
    ];
    let verdicts = Table::new(Kind::Plain, "Whether the ratio holds", "the ratio")
        .columns([Column::left("verdict"), Column::left("why").below()])
        .rows([Row::new(format!("{} / {}", found.arm, found.against), verdict)]);
    let chosen = match found.chosen {
        Some(choice) => {
            let why = weir_sentences::explain_choice(choice, found.metric);
            format!("{} was measured because {why}. ", found.arm)
        }
        None => String::new(),
    };
    let note = format!(
        "{chosen}{} pairs of stretches, in each of which one new instance ran and no other arm; load {}.",
        found.n, found.load
    );
    vec![
        Block::Heading(heading),
        clause(Style::Soft, note),
        Block::Table(table),
        Block::Table(verdicts),
    ]
}
