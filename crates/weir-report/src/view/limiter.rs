//! Limiter of each arm with its evidence, the limiters that were ruled out, and those that could not be judged.

use weir_analysis::findings::{LimiterFindings, Stretch};
use weir_limits::{ConditionEvidence, Finding, Series};
use weir_sentences::limiter::{
    describe, describe_condition, describe_measure, describe_missing, describe_outcome,
    describe_quantity, format_value, is_flag, limiter_name, what_to_do,
};
use weir_sentences::with_unit;

use crate::input::ReportInput;
use crate::number;
use crate::tree::{
    Block, Cell, Chart, Column, Heading, Kind, Multiple, Outputs, Part, Role, Row, Style, Table,
    Text, figure, fold, list, text,
};

/// Number of samples below which each is marked.
const FEW: usize = 12;
/// Maximum number of workers that are shown, the busiest first.
const WORKERS: usize = 16;

/// Returns a card for each arm and load that was sampled.
pub(super) fn sections(input: &ReportInput<'_>) -> Vec<Block> {
    let limiters = &input.findings.limiters;
    let loads = input.header.study.loads.len();
    let cards = limiters.iter().zip(1..).map(|(limiter, number)| {
        let mut title = format!("What limits {}", limiter.arm);
        if loads > 1 {
            title += &format!(" under {}", limiter.load);
        }
        let heading = Heading::section(&format!("limiter-{number}"), title);
        // With a capacity it has been said.
        let is_said = input.findings.capacity.is_some();
        card(heading.remark(&when(limiter)), limiter, is_said)
    });
    cards.flatten().collect()
}

/// Describes the limiter of one arm. `said` is true if the same screen has the sentence elsewhere.
pub(crate) fn card(heading: Heading, found: &LimiterFindings, said: bool) -> Vec<Block> {
    let findings = &found.judgement.findings;
    let mut blocks = vec![Block::Heading(heading)];
    let summary = text(Style::Plain, describe(found));
    if said {
        blocks.push(Block::Only(Outputs::FILES, vec![summary]));
    } else {
        blocks.push(summary);
    }
    blocks.extend(what_to_do(found).map(|advice| text(Style::Soft, advice)));
    blocks.extend(evidence(findings));
    blocks.extend(workers(found));
    blocks.extend(series(found));
    blocks.push(Block::Only(Outputs::FILES, others(found)));
    blocks
}

/// Describes the time that was judged.
fn when(found: &LimiterFindings) -> String {
    let pods = found.pods.as_ref().map_or_else(String::new, |pods| format!(", read in {pods}"));
    let mut parts =
        vec![format!("judged by samples of {}{pods}", describe_stretch(&found.stretch))];
    let low = found.low.as_ref();
    parts.extend(low.map(|low| format!("the low load is {}", describe_stretch(low))));
    if let (judged @ 2.., agree) = found.judged {
        parts.push(format!("{agree} of {judged} such times say the same"));
    }
    parts.join("; ")
}

fn describe_stretch(stretch: &Stretch) -> String {
    let rate = match stretch.rate {
        Some(rate) => format!("at {} requests/s", number::rate(rate)),
        None => "in a closed loop".to_owned(),
    };
    let seconds = number::short_time(((stretch.until_s - stretch.from_s) * 1e9).round());
    format!("{seconds} {rate}")
}

/// Shows the evidence of findings: a table in files, a clause for each finding in terminals, whose lines are short.
fn evidence(findings: &[Finding]) -> Vec<Block> {
    let items = findings.iter().map(|finding| {
        let conditions: Vec<String> = finding.evidence.iter().map(describe_condition).collect();
        Text::of(Role::Strong, limiter_name(&finding.limiter))
            .plain(format!(": {}", conditions.join("; ")))
    });
    let items = list(items, false).into_iter().collect();
    let rows = findings.iter().flat_map(|finding| {
        let group = Row::new(limiter_name(&finding.limiter), []).part(Part::Group);
        let rows = finding.evidence.iter().map(|one| {
            let [means, cells @ ..] = figures(one);
            Row::new(means, cells.map(Cell::from))
        });
        std::iter::once(group).chain(rows)
    });
    let rows: Vec<Row> = rows.collect();
    let table = Table::new(Kind::Plain, "The evidence of the findings", "what was measured")
        .columns([
            Column::new("value"),
            Column::new("at a low load"),
            Column::left("shows the limit"),
        ])
        .rows(rows);
    if table.rows.is_empty() {
        Vec::new()
    } else {
        vec![
            Block::Only(Outputs::TERMINAL, items),
            Block::Only(Outputs::FILES, vec![Block::Table(table)]),
        ]
    }
}

/// Returns the cells of a piece of evidence: quantity, value, value at a low load, and if it shows the limit.
fn figures(one: &ConditionEvidence) -> [String; 4] {
    let low = one.at_low_load.map(|value| format_value(one, value));
    let mut shows = if one.holds { "yes" } else { "no" }.to_owned();
    // What rules ask of a flag is a number between its two values.
    if !is_flag(one) {
        shows += &format!(": {}", describe_outcome(one));
    }
    [
        describe_measure(one),
        format_value(one, one.value),
        low.unwrap_or_else(|| number::NONE.to_owned()),
        shows,
    ]
}

/// Shows the CPU time of the proxy's workers, because a mean hides a single busy worker.
fn workers(found: &LimiterFindings) -> Option<Block> {
    let rows = found.workers.iter().take(WORKERS).map(|worker| {
        let cpus: Vec<f64> = worker.points.iter().map(|(_, cpus)| *cpus).collect();
        let most = cpus.iter().copied().fold(0.0, f64::max);
        let mean = cpus.iter().sum::<f64>() / cpus.len() as f64;
        let line = Text::of(Role::Picture, number::sparkline(&cpus, most.max(1.0)));
        let [mean, most] = [mean, most].map(|cpus| with_unit(cpus, "CPUs").into());
        Row::new(&*worker.name, [line.into(), mean, most])
    });
    let columns =
        [Column::left("over that time, up to 1 CPU"), Column::new("mean"), Column::new("most")];
    let label = "CPU time of the proxy's processes and threads";
    let table = Table::new(Kind::Plain, label, "worker").columns(columns).rows(rows);
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

/// Shows the samples of that time: charts, and sparklines in outputs without charts.
fn series(found: &LimiterFindings) -> Vec<Block> {
    let all: Vec<&Series> = found
        .series
        .iter()
        .filter(|one| one.points.len() > 2 && one.points.iter().any(|(_, value)| *value > 0.0))
        .collect();
    if all.is_empty() {
        return Vec::new();
    }
    let seconds = found.stretch.until_s - found.stretch.from_s;
    let end = format!("{} s", number::tenths(seconds));
    let charts = all.iter().map(|one| {
        let (least, most) = bounds(one);
        Multiple {
            name: describe_quantity(&one.quantity),
            said: format!(
                "from {} to {} within {end}",
                with_unit(least, &one.unit),
                with_unit(most, &one.unit)
            ),
            unit: one.unit.clone(),
            across: ((0.0, seconds), ("0 s".to_owned(), end.clone())),
            // Few samples are no curve.
            dots: match one.points.len() {
                ..FEW => one.points.clone(),
                _ => Vec::new(),
            },
            line: one.points.clone(),
            ..Multiple::default()
        }
    });
    let caption = "What was sampled in that time, from one sample to the next.";
    let charts = figure(caption, Chart::Multiples(charts.collect()));
    let rows = all.iter().map(|one| {
        let (least, most) = bounds(one);
        let values: Vec<f64> = one.points.iter().map(|(_, value)| *value).collect();
        let line = Text::of(Role::Picture, number::sparkline(&values, most));
        let ends = [least, most].map(|value| Cell::from(with_unit(value, &one.unit)));
        Row::new(describe_quantity(&one.quantity), [Cell::from(line)].into_iter().chain(ends))
    });
    let columns = [Column::left("over that time"), Column::new("least"), Column::new("most")];
    let table = Table::new(Kind::Plain, "What was sampled", "quantity").columns(columns).rows(rows);
    vec![
        Block::Only(Outputs::HTML, vec![charts]),
        Block::Only(Outputs::MARKDOWN, vec![Block::Table(table)]),
    ]
}

fn bounds(one: &Series) -> (f64, f64) {
    let values = one.points.iter().map(|(_, value)| *value);
    (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
}

/// Lists the limiters that were ruled out or could not be judged.
fn others(found: &LimiterFindings) -> Vec<Block> {
    let judgement = &found.judgement;
    let mut folds = Vec::new();
    let rows = judgement.ruled_out.iter().map(|ruled| {
        let why: Vec<String> = ruled.why.iter().map(describe_condition).collect();
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
        let why: Vec<String> =
            unknown.missing.iter().map(|name| describe_missing(found, name)).collect();
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
