//! A matrix of loads for a terminal: verdicts counted, and the row of the highest rate for each suite.
//! The tables of all loads are for the other formats.

use super::page::{Cells, Page, sgr};
use crate::view::{MatrixView, ReportView, SuiteView, TimesRow, words};

impl Page {
    pub(super) fn matrix(&mut self, matrix: &MatrixView) {
        self.out.push('\n');
        let name = match matrix.name.as_str() {
            "" => "matrix".to_owned(),
            name => format!("matrix {name}"),
        };
        let name = self.paint(&name, sgr::BOLD);
        self.out.push_str(&format!("{name}: "));
        self.badged(matrix.validity, &matrix.measured, "");
        self.text(&matrix.summary, sgr::DIM, 0);
        self.tallies(matrix);
        for suite in &matrix.suites {
            self.suite(suite);
        }
        self.out.push('\n');
        for reason in &matrix.reasons {
            let text = format!(
                "{} {}: {}; {}",
                words::validity(reason.validity),
                reason.rule,
                reason.how_often,
                reason.example
            );
            self.text(&text, "", 4);
        }
    }

    fn tallies(&mut self, matrix: &MatrixView) {
        let mut metrics: Vec<_> = matrix.tallies.iter().map(|tally| tally.metric).collect();
        metrics.dedup();
        for metric in metrics {
            self.out.push('\n');
            let name = words::capital(words::metric(metric));
            self.text(&format!("{name}: verdicts over all loads"), "", 0);
            let of_metric = matrix.tallies.iter().filter(|tally| tally.metric == metric);
            let tallies: Vec<_> = of_metric.collect();
            let head = ["better", "worse", "equal", "open", "invalid", "ratios"];
            let mut rows: Vec<Cells> = vec![head.map(|h| (h.to_owned(), sgr::DIM)).into()];
            rows.extend(tallies.iter().map(|tally| {
                let counts = tally.counts.iter().chain([&tally.ratios]);
                counts.map(|cell| (cell.clone(), "")).collect()
            }));
            let layout = self.layout(tallies.iter().map(|tally| &*tally.arm), &rows);
            self.plain_row("arm", sgr::DIM, &layout, &rows[0]);
            for (tally, cells) in tallies.iter().zip(&rows[1..]) {
                self.plain_row(&tally.arm, "", &layout, cells);
                if !tally.inert.is_empty() {
                    let text = format!("  {} {}: {}", words::INERT_SIGN, words::INERT, tally.inert);
                    self.text(&text, sgr::YELLOW, 4);
                }
            }
        }
        self.text(&matrix.caveat, sgr::DIM, 0);
    }

    fn suite(&mut self, suite: &SuiteView) {
        self.out.push('\n');
        let at = match suite.at.as_str() {
            "" => String::new(),
            at => format!(" at {at}"),
        };
        self.text(&format!("Suite {}{at}", suite.arm), sgr::BOLD, 0);
        if suite.lines.is_empty() {
            self.text("no load of it can be used", "", 0);
            return;
        }
        let head = ["p50", "p90", "p99", "p99.9", "max"];
        let mut rows: Vec<Cells> = vec![head.map(|h| (h.to_owned(), sgr::DIM)).into()];
        let lines = suite.lines.iter();
        rows.extend(lines.map(|line| {
            line.response
                .iter()
                .map(|time| (time.clone(), ""))
                .collect()
        }));
        let layout = self.layout(suite.lines.iter().map(|line| &*line.name), &rows);
        self.plain_row("", sgr::DIM, &layout, &rows[0]);
        for (line, cells) in suite.lines.iter().zip(&rows[1..]) {
            self.plain_row(&line.name, "", &layout, cells);
        }
    }

    /// Levels that were asked for and are not in force.
    pub(super) fn inert(&mut self, view: &ReportView) {
        if view.inert.is_empty() {
            return;
        }
        self.out.push('\n');
        self.text("Levels that are not in force", sgr::BOLD, 0);
        for level in &view.inert {
            let text = format!(
                "{}: {} = {} was asked for, in force is {}: {}",
                level.arm, level.id, level.requested, level.effective, level.why
            );
            self.text(&text, "", 4);
        }
    }

    /// Published quantiles beside ours. The table's columns are figures; what they say has a line of its
    /// own below each arm.
    pub(super) fn published_times(&mut self, times: &[TimesRow]) {
        let head = ["quantile", "published", "ratio", "here", "ratio here"];
        let mut rows: Vec<Cells> = vec![head.map(|h| (h.to_owned(), sgr::DIM)).into()];
        rows.extend(times.iter().map(|row| {
            [
                &row.quantile,
                &row.figure,
                &row.ratio,
                &row.measured,
                &row.measured_ratio,
            ]
            .map(|cell| (cell.clone(), ""))
            .into()
        }));
        let layout = self.layout(times.iter().map(|row| &*row.arm), &rows);
        self.plain_row("arm", sgr::DIM, &layout, &rows[0]);
        let mut said = String::new();
        for (row, cells) in times.iter().zip(&rows[1..]) {
            self.plain_row(&row.arm, "", &layout, cells);
            let mut parts = vec![row.published_for.clone(), format!("here {}", row.load)];
            parts.extend(
                row.verdict
                    .map(|verdict| words::published(verdict).to_owned()),
            );
            parts.push(row.because.clone());
            parts.retain(|part| !part.is_empty());
            let text = format!("  {}: {}", row.quantile, parts.join("; "));
            if text != said {
                self.text(&text, sgr::DIM, 4);
            }
            said = text;
        }
    }
}
