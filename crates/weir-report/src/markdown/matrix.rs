//! A matrix of loads, and response times that others published.

use std::fmt::Write;

use super::{escape, said};
use crate::view::{HeatView, MatrixView, PublishedView, words};

/// Quantiles that get a table: the other outputs have all.
const SHOWN: [&str; 2] = ["p50", "p99"];

pub(super) fn matrix(out: &mut String, matrix: &MatrixView) {
    let name = match matrix.name.as_str() {
        "" => String::new(),
        name => format!(": {}", escape(name)),
    };
    let validity = words::validity(matrix.validity);
    let _ = writeln!(out, "## Matrix{name}\n");
    let _ = writeln!(
        out,
        "{}. **{validity}**: {}.\n",
        escape(&words::capital(&matrix.summary)),
        matrix.measured
    );
    for reason in &matrix.reasons {
        let _ = writeln!(
            out,
            "- {} `{}`: {}; {}",
            words::validity(reason.validity),
            reason.rule,
            reason.how_often,
            escape(&reason.example)
        );
    }
    let _ = writeln!(out, "\n### Verdicts over all loads, {validity}\n");
    let _ = writeln!(
        out,
        "| metric | arm | changes | better | worse | equivalent | inconclusive | invalid | ratios |"
    );
    let _ = writeln!(out, "|---|---|---|--:|--:|--:|--:|--:|--:|");
    for tally in &matrix.tallies {
        let inert = match tally.inert.as_str() {
            "" => String::new(),
            why => format!("; {} {}: {}", words::INERT_SIGN, words::INERT, escape(why)),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {}{inert} | {} | {} |",
            words::metric_head(tally.metric),
            escape(&tally.arm),
            escape(&tally.changes),
            tally.counts.join(" | "),
            tally.ratios
        );
    }
    let _ = writeln!(out, "\n{}.\n", words::capital(&matrix.caveat));
    for suite in &matrix.suites {
        let _ = writeln!(out, "### Suite {}, {validity}\n", escape(&suite.arm));
        let shown = suite
            .heats
            .iter()
            .filter(|heat| SHOWN.contains(&heat.quantile));
        shown.for_each(|table| heat(out, table));
    }
}

fn heat(out: &mut String, heat: &HeatView) {
    let _ = writeln!(
        out,
        "{} in ms by connections and requests/s (× INVALID, ? SUSPECT):\n",
        heat.quantile
    );
    let _ = writeln!(out, "| connections | {} |", heat.rates.join(" | "));
    let _ = writeln!(out, "|--:|{}", "--:|".repeat(heat.rates.len()));
    for row in &heat.rows {
        let cells: Vec<&str> = row.cells.iter().map(|cell| &*cell.text).collect();
        let _ = writeln!(out, "| {} | {} |", row.connections, cells.join(" | "));
    }
    out.push('\n');
}

pub(super) fn published_times(out: &mut String, published: &PublishedView) {
    let _ = writeln!(
        out,
        "Published response times: {} ({}).\n",
        escape(&published.source),
        escape(&published.metric)
    );
    let _ = writeln!(
        out,
        "| arm | published for | quantile | published | here | published ratio | ratio here | load here | verdict |"
    );
    let _ = writeln!(out, "|---|---|--:|--:|--:|--:|--:|---|---|");
    for row in &published.times {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            escape(&row.arm),
            escape(&row.published_for),
            row.quantile,
            row.figure,
            row.measured,
            row.ratio,
            row.measured_ratio,
            escape(&row.load),
            said(row.verdict, &row.because)
        );
    }
    out.push('\n');
}
