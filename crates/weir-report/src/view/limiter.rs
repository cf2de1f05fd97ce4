//! What limited each arm: the limiter with its evidence, what was ruled out, and what could not be judged.

use weir_analysis::findings::{LimiterFindings, Stretch};
use weir_analysis::limiter::{limiter_name, sentence};
use weir_limits::{Finding, Quantities, Shown, shown};

use crate::input::ReportInput;
use crate::tree::{Block, Cell, Column, Heading, Kind, Outputs, Row, Style, Table, fold, text};
use crate::{number, words};

/// A card for each arm and load of which something was sampled.
pub(super) fn sections(input: &ReportInput<'_>) -> Vec<Block> {
    let found = &input.findings.limiters;
    let loads = input.header.study.loads.len();
    let cards = found.iter().zip(1..).map(|(one, number)| {
        let mut title = format!("What limits {}", one.arm);
        if loads > 1 {
            title += &format!(" under {}", one.load);
        }
        let heading = Heading::section(&format!("limiter-{number}"), title);
        // With a capacity it has been said.
        let said = input.findings.capacity.is_some();
        card(heading.remark(&when(one)), one, said)
    });
    cards.flatten().collect()
}

/// What limits one arm; `said` where it stands elsewhere in a sentence.
pub(crate) fn card(heading: Heading, found: &LimiterFindings, said: bool) -> Vec<Block> {
    let findings = &found.judgement.findings;
    let mut blocks = vec![Block::Heading(heading)];
    if !said {
        blocks.push(text(Style::Plain, sentence(found)));
    }
    let advice = findings
        .first()
        .map(|first| format!("What to do: {}.", first.advice));
    blocks.extend(advice.map(|advice| text(Style::Soft, advice)));
    blocks.extend(evidence(findings));
    blocks.push(Block::Only(Outputs::FILES, others(found)));
    blocks
}

/// The time that was judged.
fn when(found: &LimiterFindings) -> String {
    let said = |stretch: &Stretch| {
        let rate = match stretch.rate {
            Some(rate) => format!("{} requests/s", number::rate(rate)),
            None => "a closed loop".to_owned(),
        };
        let seconds = number::short_time(((stretch.until_s - stretch.from_s) * 1e9).round());
        match stretch.stage {
            Some(stage) => format!("{seconds} of {rate}, {}", words::stage(stage)),
            None => format!("{seconds} of {rate}"),
        }
    };
    let mut parts = vec![said(&found.stretch)];
    parts.extend(
        found
            .low
            .as_ref()
            .map(|low| format!("held against {}", said(low))),
    );
    if let (judged @ 2.., agree) = found.judged {
        parts.push(format!("{agree} of {judged} such times say the same"));
    }
    parts.join("; ")
}

/// What findings rest on.
fn evidence(findings: &[Finding]) -> Option<Block> {
    let rows = findings.iter().flat_map(|finding| {
        let name = limiter_name(&finding.limiter);
        finding.evidence.iter().map(move |one| row(&name, one))
    });
    let rows: Vec<Row> = rows.collect();
    let table = Table::new(Kind::Plain, "What the findings rest on", "limiter")
        .columns([
            Column::left("what"),
            Column::new("now"),
            Column::new("at a low load"),
            Column::left("asked"),
        ])
        .rows(rows);
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

fn row(name: &str, one: &Shown) -> Row {
    let low = one
        .at_low_load
        .map_or_else(|| "–".to_owned(), |value| shown(value, &one.unit));
    let cells = [
        means(&one.quantity),
        shown(one.value, &one.unit),
        low,
        one.condition.clone(),
    ];
    Row::new(name, cells.map(Cell::from))
}

/// What a quantity is, in words; a share of another by both names.
fn means(quantity: &str) -> String {
    let quantities = Quantities::builtin();
    quantities
        .get(quantity)
        .map_or_else(|| quantity.replace('_', " "), |one| one.means.clone())
}

/// What is no finding.
fn others(found: &LimiterFindings) -> Vec<Block> {
    let judgement = &found.judgement;
    let mut folds = Vec::new();
    let rows = judgement.ruled_out.iter().map(|ruled| {
        let why = ruled.why.iter().map(|one| {
            format!(
                "{}: {}, not {}",
                means(&one.quantity),
                shown(one.value, &one.unit),
                one.condition
            )
        });
        let why: Vec<String> = why.collect();
        Row::new(limiter_name(&ruled.limiter), [Cell::from(why.join("; "))])
    });
    let rows: Vec<Row> = rows.collect();
    if !rows.is_empty() {
        let table = Table::new(Kind::Prose, "Limiters that were ruled out", "limiter")
            .columns([Column::left("because")])
            .rows(rows);
        folds.push(fold("What was ruled out", vec![Block::Table(table)]));
    }
    let rows = judgement.unknown.iter().map(|unknown| {
        let why = unknown
            .missing
            .iter()
            .map(|name| match found.evidence.absent.get(name) {
                Some(absent) => format!("{}: {absent}", means(name)),
                None => means(name),
            });
        let why: Vec<String> = why.collect();
        Row::new(limiter_name(&unknown.limiter), [Cell::from(why.join("; "))])
    });
    let rows: Vec<Row> = rows.collect();
    if !rows.is_empty() {
        let table = Table::new(Kind::Prose, "Limiters that could not be judged", "limiter")
            .columns([Column::left("not known")])
            .rows(rows);
        folds.push(fold("What could not be judged", vec![Block::Table(table)]));
    }
    folds
}
