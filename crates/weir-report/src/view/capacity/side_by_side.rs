//! Comparison of several arms: the capacity of each, their ratios, and their p99 in one chart.

use weir_analysis::capacity::{Capacity, CapacityFindings, Ratio};
use weir_analysis::findings::Verdict;
use weir_model::record::CapacityEnd;
use weir_model::study::{ArmRole, Study};
use weir_sentences::capacity::because;

use super::curve;
use crate::tree::{
    Axis, Block, Cell, Chart, Column, Effect, Extent, Forest, ForestRow, Heading, Kind, Line,
    Lines, Marks, Outputs, Part, Row, Style, Table, Tone, figure, text,
};
use crate::view::{charts, tones};
use crate::{number, words};

pub(super) fn section(study: &Study, found: &CapacityFindings) -> Vec<Block> {
    let heading = Heading::section("capacity", "Capacity").badge(found.validity);
    let columns = [
        Column::new("requests/s").small("held"),
        Column::new("ratio").small("interval").whole(),
        Column::left("verdict"),
        Column::left("why").below(),
    ];
    let rows = found.arms.iter().map(|arm| {
        let ratio = found.ratios.iter().find(|ratio| ratio.arm == arm.answer.arm);
        row(study, arm, ratio)
    });
    let table = Table::new(Kind::Plain, "Capacity of each arm", "arm").columns(columns).rows(rows);
    vec![
        Block::Heading(heading),
        Block::Table(table),
        Block::Only(Outputs::FILES, vec![text(Style::Soft, note(study, found))]),
        Block::Only(Outputs::HTML, drawn(study, found)),
    ]
}

/// Explains the sources of error that the interval of a ratio includes and excludes.
fn note(study: &Study, found: &CapacityFindings) -> String {
    if !study.is_in_turn() {
        return "The interval of a ratio treats the searches as independent. What the machine did to all arms at once does not cancel in it, so it is too wide rather than too narrow.".to_owned();
    }
    let widths = found
        .arms
        .iter()
        .filter(|arm| arm.claimed && arm.answer.ceiling.is_none())
        .map(|arm| (arm.answer.high / arm.answer.low).sqrt() - 1.0);
    // Before anything is known: as well as each search was asked to.
    let widest = widths.fold(0.0, f64::max);
    let (subject, precision) = if widest > 0.0 {
        ("The capacities here are known to", widest)
    } else {
        ("Capacities are to be known to", study.search.precision)
    };
    let both = precision * 2_f64.sqrt();
    format!(
        "The arms were searched one after the other, so the ratios are unpaired. {subject} ±{:.1} % or better, which gives ratios that are known to ±{:.1} % or better, if nothing changes between the searches. What does change (the speed of the machine, other load in the cluster) is in the ratio and not in its interval, which is too narrow then. An A/A arm, which is searched last, shows how much that is, and no difference is claimed that is not larger; without that arm, none is.",
        precision * 100.0,
        both * 100.0
    )
}

fn drawn(study: &Study, found: &CapacityFindings) -> Vec<Block> {
    let rows: Vec<ForestRow> = found
        .ratios
        .iter()
        .filter(|ratio| ratio.verdict != Verdict::Invalid)
        .map(|ratio| effect(study, ratio))
        .collect();
    let mut drawn = Vec::new();
    if !rows.is_empty() {
        let forest = Chart::Forest(Forest {
            title: "Capacity against the arm that each is compared with".to_owned(),
            band: study.objective.band,
            sides: ["carries less", "carries more"],
            close_up: false,
            rows,
        });
        let caption =
            "Ratios of capacities with their intervals; ratios within the band count as equal.";
        drawn.push(figure(caption, forest));
    }
    drawn.extend(together(study, found));
    drawn
}

pub(super) fn role(study: &Study, name: &str) -> ArmRole {
    let arm = study.arms.iter().find(|arm| arm.name == name);
    arm.map_or(ArmRole::Change, |arm| arm.role)
}

pub(super) fn part(role: ArmRole) -> Part {
    match role {
        ArmRole::Baseline => Part::Baseline,
        ArmRole::SameAsBaseline => Part::Control,
        ArmRole::Change => Part::Plain,
    }
}

/// Returns tone and word of a verdict. An A/A arm is neither better nor worse: it [differs](words::DIFFERS).
pub(super) fn verdict(study: &Study, ratio: &Ratio) -> (Tone, &'static str) {
    match (role(study, &ratio.arm), ratio.verdict) {
        (ArmRole::SameAsBaseline, Verdict::Better | Verdict::Worse) => {
            (Tone::Differs, words::DIFFERS)
        }
        (_, verdict) => (tones::tone(verdict), verdict.word()),
    }
}

fn row(study: &Study, arm: &Capacity, ratio: Option<&Ratio>) -> Row {
    let carried = Cell::from(interval(arm)).small(if arm.claimed {
        number::rate(arm.answer.verified)
    } else {
        end(arm).to_owned()
    });
    let row_part = part(role(study, &arm.answer.arm));
    let Some(ratio) = ratio else {
        return Row::new(&*arm.answer.arm, [carried]).part(row_part);
    };
    let (tone, word) = verdict(study, ratio);
    let sign = words::verdict_sign(ratio.verdict);
    let shown = Cell::from(number::ratio(ratio.ratio));
    let cells = [
        carried,
        match ratio.verdict {
            Verdict::Invalid => shown,
            _ => shown.small(number::ratio_interval(ratio.ratio, ratio.interval)),
        },
        Cell::tone(tone, format!("{sign} {word}")),
        Cell::from(format!("against {}: {}", ratio.against, because(ratio))),
    ];
    Row::new(&*arm.answer.arm, cells).part(row_part)
}

fn effect(study: &Study, ratio: &Ratio) -> ForestRow {
    let (low, high) = ratio.interval;
    let (tone, word) = verdict(study, ratio);
    let shown = number::ratio(ratio.ratio);
    ForestRow {
        label: ratio.arm.clone(),
        part: part(role(study, &ratio.arm)),
        mark: tones::mark(ratio.verdict),
        tone,
        word,
        figures: format!("{shown} ({})", number::ratio_interval(ratio.ratio, ratio.interval)),
        ratio: shown,
        because: because(ratio),
        effect: Some(Effect { ratio: ratio.ratio, low, high }),
    }
}

/// Draws the p99 of all arms in one chart. `None` if no arm has one.
fn together(study: &Study, found: &CapacityFindings) -> Option<Block> {
    let roles: Vec<ArmRole> = study.arms.iter().map(|arm| arm.role).collect();
    let arms = study.arms.iter().zip(charts::series(&roles));
    let lines = arms.filter_map(|(arm, series)| {
        let capacity = found.arms.iter().find(|capacity| capacity.answer.arm == arm.name)?;
        Some(Line {
            name: arm.name.clone(),
            tooltip: format!("{}: {} requests/s", arm.name, interval(capacity)),
            class: charts::class(series, arm.role),
            series,
            front: arm.role != ArmRole::Change,
            points: curve::line(capacity, curve::P99),
        })
    });
    let lines: Vec<Line> = lines.collect();
    lines.iter().find(|line| !line.points.is_empty())?;
    let level = found.arms.iter().find_map(curve::find_level);
    let extent = Extent::of(&lines).with(level.iter().map(|(ns, _)| *ns));
    let chart = Lines {
        title: "p99 of the response time by rate".to_owned(),
        each: "arm",
        axis: Axis::Rate,
        lines,
        extent,
        marks: Some(Marks { level, ..Marks::default() }),
    };
    let caption = "p99 by requests per second to each arm, from the moment each request was due.";
    Some(figure(caption, Chart::Lines(chart)))
}

/// Formats the interval of a capacity: `4,310 to 4,520`, or `at least 4,310`.
pub(super) fn interval(found: &Capacity) -> String {
    let (low, high) = (number::rate(found.answer.low), number::rate(found.answer.high));
    match (found.claimed, found.answer.ceiling) {
        (true, None) => format!("{low} to {high}"),
        (true, Some(_)) => format!("at least {low}"),
        (false, _) => number::NONE.to_owned(),
    }
}

/// Describes in a few words why a search ended without a claim.
pub(super) fn end(found: &Capacity) -> &'static str {
    match found.end {
        None => "the search did not end",
        Some(CapacityEnd::Found | CapacityEnd::Settled | CapacityEnd::Budget) => {
            "no long trial held"
        }
        Some(CapacityEnd::TooShort(_)) => "too little time",
        Some(CapacityEnd::Never) => "at no rate",
        Some(CapacityEnd::Broken(_)) => "broke, and did not recover",
        Some(CapacityEnd::NotSent(_)) => "the generator was late",
        Some(CapacityEnd::Spoilt | CapacityEnd::Unsteady) => "the machine spoilt it",
    }
}
