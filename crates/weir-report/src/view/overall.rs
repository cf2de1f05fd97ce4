//! A change beside the baseline by all figures: a row for each.

use weir_analysis::findings::{ArmFindings, LoadFindings};
use weir_model::study::{Metric, ProxySpec};

use super::compare::compared;
use super::load;
use crate::input::ReportInput;
use crate::number;
use crate::tree::{Block, Cell, Column, Heading, Kind, Row, Table};

/// Returns the table with its heading. Empty unless the study asks for a verdict on all figures.
pub(super) fn section(input: &ReportInput<'_>) -> Vec<Block> {
    let heading = Block::Heading(Heading::section("all-figures", "All figures"));
    table(input).map_or(Vec::new(), |table| vec![heading, table])
}

/// Returns the table; `None` unless the study asks for a verdict on all figures.
pub(super) fn table(input: &ReportInput<'_>) -> Option<Block> {
    let study = &input.header.study;
    let arms = study.overall_pair()?;
    let rows: Vec<Row> = load::single(input)
        .filter(|load| load.is_usable())
        .flat_map(|load| rows_of_load(input, load))
        .collect();
    let level = number::level(study.objective.confidence);
    let columns = vec![
        Column::new(&*arms[0].name),
        Column::new(&*arms[1].name),
        Column::new(format!("ratio ({level})")),
        Column::left("verdict"),
    ];
    let caption: Vec<String> = arms
        .iter()
        .map(|arm| format!("{}: {}", arm.name, describe_proxy(study.proxy_of(arm))))
        .collect();
    let table = Table {
        caption: caption.join("; "),
        ..Table::new(Kind::Compare, "Comparison by all figures", "figure")
    };
    (!rows.is_empty()).then(|| Block::Table(table.columns(columns).rows(rows)))
}

/// Names a proxy by its address, or by its program and configuration.
fn describe_proxy(proxy: &ProxySpec) -> String {
    if let Some(external) = &proxy.external {
        return external.to_string();
    }
    let program = match &proxy.executable {
        Some(path) => path.display().to_string(),
        None => proxy.kind.name().to_owned(),
    };
    match &proxy.configuration {
        Some(own) => format!("{program} with {}", own.file.display()),
        None => program,
    }
}

/// Returns the rows of one load: the rate of a closed loop, or response times at a rate, and the shares of requests
/// that failed, and that had no answer when their slice or the timeout ended.
fn rows_of_load(input: &ReportInput<'_>, load: &LoadFindings) -> Vec<Row> {
    let [old, new] = &load.arms[..] else {
        return Vec::new();
    };
    let at = match load.rate_intended {
        Some(rate) => format!(" at {}/s", number::rate(rate)),
        None => ", closed loop".to_owned(),
    };
    let mut rows = match load.rate_intended {
        None => vec![compared_row(input, load, Metric::Rate, format!("requests/s{at}"))],
        Some(_) => {
            let p90 = [old, new].map(|arm| quantile(arm, 1)).map(Cell::from);
            vec![
                compared_row(input, load, Metric::ResponseP50, format!("p50{at}")),
                Row::new(format!("p90{at}"), p90),
                compared_row(input, load, Metric::ResponseP99, format!("p99{at}")),
            ]
        }
    };
    let failed = [old, new].map(ArmFindings::failed_share);
    let censored = [old, new].map(ArmFindings::censored_share);
    for (name, shares) in [("failed", failed), ("cut off unanswered", censored)] {
        if shares.iter().any(|share| *share > 0.0) {
            let cells = shares.map(|share| Cell::from(number::percent(share)));
            rows.push(Row::new(format!("{name}{at}"), cells));
        }
    }
    rows
}

/// Returns a row with both figures, their ratio and the verdict.
fn compared_row(input: &ReportInput<'_>, load: &LoadFindings, metric: Metric, name: String) -> Row {
    let arms = compared(input, load, metric);
    let mut cells: Vec<Cell> = Vec::new();
    if let [old, new] = &arms[..] {
        let [figure, ..] = old.short();
        cells.push(figure);
        cells.extend(new.short());
    }
    Row::new(name, cells)
}

/// Returns a quantile of an arm's response time, by its place among those of [`ArmFindings::response_ns`].
fn quantile(arm: &ArmFindings, place: usize) -> String {
    number::quantiles(&arm.response_ns, arm.samples)[place].clone()
}
