//! Response times against the rate: a row for each arm, a column for each rate.

use std::fmt::Write;

use super::escape;
use crate::view::{ByRateCell, ByRateView, words};

pub(super) fn by_rate(out: &mut String, view: &ByRateView) {
    let _ = writeln!(out, "## Response times by rate\n");
    let _ = writeln!(
        out,
        "Loads {}: {}. **{}**. Signs are the verdicts of each load; × INVALID, ? SUSPECT.\n",
        escape(&view.loads),
        escape(&view.summary),
        words::validity(view.validity)
    );
    for table in &view.tables {
        let heads: Vec<String> = view.rates.iter().map(|rate| format!("{rate}/s")).collect();
        let _ = writeln!(out, "| {} | {} |", table.quantile, heads.join(" | "));
        let _ = writeln!(out, "|---|{}", "--:|".repeat(heads.len()));
        for row in &table.rows {
            let cells: Vec<String> = row.cells.iter().map(ByRateCell::signed).collect();
            let _ = writeln!(out, "| {} | {} |", escape(&row.arm), cells.join(" | "));
        }
        out.push('\n');
    }
}
