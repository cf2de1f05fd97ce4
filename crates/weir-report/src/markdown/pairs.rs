//! Every arm against every other, and published gains, in Markdown.

use std::fmt::Write;

use weir_analysis::findings::Verdict;

use super::{escape, said};
use crate::view::{GainView, PairCell, PairsView, PublishedView, number, words};

pub(super) fn pairs(out: &mut String, pairs: &PairsView) {
    if !pairs.ranking.is_empty() {
        let _ = writeln!(out, "{}\n", escape(&pairs.ranking));
    }
    let note = match pairs.note.as_str() {
        "" => String::new(),
        note => format!("; {}", escape(note)),
    };
    let _ = writeln!(out, "Pairs: {}{note}.\n", pairs.reading);
    let heads: Vec<String> = pairs.arms.iter().map(|arm| escape(arm)).collect();
    let _ = writeln!(out, "| | {} |", heads.join(" | "));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(heads.len()));
    for row in &pairs.rows {
        let cells = row.cells.iter().map(|found| cell(found.as_ref()));
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(out, "| **{}** | {} |", escape(&row.arm), cells.join(" | "));
    }
    out.push('\n');
}

fn cell(cell: Option<&PairCell>) -> String {
    match cell {
        None => String::new(),
        Some(cell) if cell.verdict == Verdict::Invalid => {
            format!("{} {}", words::verdict_sign(cell.verdict), number::NONE)
        }
        Some(cell) => format!("{} ({})", cell.signed(), cell.interval),
    }
}

pub(super) fn gains(out: &mut String, published: &PublishedView) {
    let _ = writeln!(
        out,
        "Published: {}. {}\n",
        escape(&published.source),
        GainView::CAVEAT
    );
    let _ = writeln!(
        out,
        "| gained by | metric | load here | published mean | peak | mean here | peak | each arm | verdict |"
    );
    let _ = writeln!(out, "|---|---|---|--:|--:|--:|--:|---|---|");
    for gain in &published.gains {
        let arms: Vec<String> = gain.arms.iter().map(|arm| escape(&arm.words())).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            escape(&gain.of),
            gain.metric,
            escape(&gain.load),
            gain.mean,
            gain.peak,
            gain.mean_here,
            gain.peak_here,
            arms.join("; "),
            said(Some(gain.verdict), &gain.because)
        );
    }
    out.push('\n');
}
