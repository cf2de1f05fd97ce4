//! For a terminal: what the arms are, every arm against every other, and what proxies counted of
//! themselves.
//!
//! A cell of the table takes two lines, ratio and interval; a table wider than the terminal goes on below
//! with the next columns.

use weir_analysis::findings::Verdict;

use super::page::{Page, clean, pad_left, pad_right, sgr, width_of, wrap};
use super::{LEAST_NAME, NAME, verdict_style};
use crate::view::{ArmAbout, CountedView, GainView, PairCell, PairRow, PairsView, number, words};

/// Between columns.
const GAP: usize = 2;
/// Names of rows are not wrapped into less than this while columns could go below instead.
const SHORTEST: usize = 10;
/// Stands where an arm meets itself.
const ITSELF: &str = "·";

/// Widths of one table.
struct Grid {
    name: usize,
    column: usize,
    gap: usize,
}

impl Page {
    pub(super) fn about(&mut self, about: &[ArmAbout]) {
        if about.is_empty() {
            return;
        }
        self.out.push('\n');
        for arm in about {
            let clauses = std::iter::once(&arm.proxy).chain(&arm.clauses);
            let clauses: Vec<&str> = clauses.map(String::as_str).collect();
            let text = format!("{}: {}", arm.arm, clauses.join("; "));
            self.text(&text, sgr::DIM, 2);
        }
    }

    pub(super) fn pairs(&mut self, pairs: &PairsView) {
        self.out.push('\n');
        if !pairs.ranking.is_empty() {
            self.text(&pairs.ranking, sgr::BOLD, 0);
        }
        self.text(&format!("Pairs: {}", pairs.reading), sgr::DIM, 0);
        let grid = self.grid(pairs);
        let room = self.width.saturating_sub(grid.name);
        let at_once = (room / (grid.column + grid.gap)).max(1);
        for first in (0..pairs.arms.len()).step_by(at_once) {
            let last = (first + at_once).min(pairs.arms.len());
            self.heads(&pairs.arms[first..last], &grid);
            for row in &pairs.rows {
                self.pairs_row(row, first..last, &grid);
            }
        }
        if !pairs.note.is_empty() {
            self.text(&pairs.note, sgr::DIM, 0);
        }
    }

    fn grid(&self, pairs: &PairsView) -> Grid {
        let cells = pairs.rows.iter().flat_map(|row| &row.cells).flatten();
        let widths = cells.map(|cell| width_of(&cell.signed()).max(width_of(&cell.interval)));
        let column = widths.max().unwrap_or(0).max(LEAST_NAME);
        let names = pairs.arms.iter().map(|arm| width_of(&clean(arm)));
        let longest = names.max().unwrap_or(0).clamp(LEAST_NAME, NAME);
        // Where all columns fit beside names that are wrapped, they do.
        let beside = |gap: usize| {
            let columns = pairs.arms.len() * (column + gap);
            let left = self.width.saturating_sub(columns);
            (left >= longest.min(SHORTEST)).then_some(left)
        };
        let (gap, left) = [GAP, 1]
            .into_iter()
            .find_map(|gap| Some((gap, beside(gap)?)))
            .unwrap_or((GAP, longest));
        Grid {
            name: longest.min(left),
            column,
            gap,
        }
    }

    /// Names over their columns, the last line of each just above its figures.
    fn heads(&mut self, arms: &[String], grid: &Grid) {
        let heads: Vec<Vec<String>> = arms
            .iter()
            .map(|arm| wrap(&clean(arm), grid.column, 0))
            .collect();
        let lines = heads.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..lines {
            let mut text = pad_right("", grid.name);
            for head in &heads {
                let above = lines - head.len();
                let part = line.checked_sub(above).and_then(|line| head.get(line));
                text.push_str(&" ".repeat(grid.gap));
                text.push_str(&pad_left(part.map_or("", |part| part), grid.column));
            }
            self.line(&text, sgr::DIM);
        }
    }

    fn pairs_row(&mut self, row: &PairRow, columns: std::ops::Range<usize>, grid: &Grid) {
        let names = wrap(&clean(&row.arm), grid.name, 1);
        let cells = &row.cells[columns];
        for line in 0..names.len().max(2) {
            let name = names.get(line).map_or("", |name| name);
            let mut text = self.paint(&pad_right(name, grid.name), "");
            for cell in cells {
                let (part, style) = part_of(cell.as_ref(), line);
                text.push_str(&" ".repeat(grid.gap));
                text.push_str(&self.paint(&pad_left(&part, grid.column), style));
            }
            self.out.push_str(text.trim_end());
            self.out.push('\n');
        }
    }

    /// What proxies counted of themselves, where it tells of something that they did not do.
    pub(super) fn counted(&mut self, counted: Option<&CountedView>) {
        for sentence in counted.map_or(&[][..], |counted| &counted.telling) {
            self.text(&format!("note: {sentence}"), sgr::YELLOW, 6);
        }
    }

    pub(super) fn gains(&mut self, gains: &[GainView]) {
        if gains.is_empty() {
            return;
        }
        self.text(GainView::CAVEAT, sgr::DIM, 0);
        for gain in gains {
            let mut text = format!("{}: {}", gain.head(), words::published(gain.verdict));
            if !gain.because.is_empty() {
                text += &format!(", {}", gain.because);
            }
            self.text(&text, "", 2);
            for arm in &gain.arms {
                let text = format!("  {}", arm.words());
                self.text(&text, sgr::DIM, 4);
            }
        }
    }
}

/// What of a cell stands in a line of its row: the ratio in the first, the interval in the second.
fn part_of(cell: Option<&PairCell>, line: usize) -> (String, &'static str) {
    match (cell, line) {
        (None, 0) => (ITSELF.to_owned(), sgr::DIM),
        (Some(cell), 0) if cell.verdict == Verdict::Invalid => (
            format!("{} {}", words::verdict_sign(cell.verdict), number::NONE),
            verdict_style(cell.verdict),
        ),
        (Some(cell), 0) => (cell.signed(), verdict_style(cell.verdict)),
        (Some(cell), 1) if cell.verdict != Verdict::Invalid => (cell.interval.clone(), sgr::DIM),
        _ => (String::new(), ""),
    }
}
