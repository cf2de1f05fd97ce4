//! Response times against the rate, drawn.

use weir_model::study::ArmRole;

use super::{Key, series_of};
use crate::svg::{self, Width};
use crate::view::{ByRateTable, ByRateView};

/// A group of loads, drawn.
pub(super) struct Section {
    pub(super) view: ByRateView,
    /// Anchor in the page.
    pub(super) id: String,
    pub(super) charts: Vec<Chart>,
}

/// One quantile. Charts are finished SVG, escaped by their module.
pub(super) struct Chart {
    pub(super) quantile: &'static str,
    /// For both widths.
    pub(super) svg: [String; 2],
    pub(super) log_axis: bool,
    pub(super) legend: Vec<Key>,
}

pub(super) fn section(index: usize, view: &ByRateView) -> Section {
    let id = format!("by-rate-{}", index + 1);
    let charts = view.tables.iter().map(|table| chart(&id, table));
    Section {
        charts: charts.collect(),
        view: view.clone(),
        id,
    }
}

fn chart(id: &str, table: &ByRateTable) -> Chart {
    let roles: Vec<ArmRole> = table.rows.iter().map(|row| row.role).collect();
    let rows = table.rows.iter().zip(series_of(&roles));
    let lines: Vec<svg::Line<'_>> = rows
        .map(|(row, series)| svg::Line {
            name: &row.arm,
            tooltip: row.arm.clone(),
            class: svg::series_class(series, row.role),
            series,
            front: row.role != ArmRole::Change,
            points: &row.curve,
        })
        .collect();
    let draw = |width, tag: &str| {
        let id = format!("{id}-{}-{tag}", table.quantile);
        svg::by_rate(&id, table.quantile, &lines, width)
    };
    Chart {
        quantile: table.quantile,
        svg: [draw(Width::Wide, "w"), draw(Width::Narrow, "n")],
        log_axis: svg::uses_log_axis(&lines),
        legend: lines.iter().map(Key::of).collect(),
    }
}
