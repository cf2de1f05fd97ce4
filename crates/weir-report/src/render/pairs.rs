//! A table with named rows and columns for a terminal. A cell has two lines, the figure and its remark. If the table is
//! wider than the terminal, the remaining columns continue below.

use std::ops::Range;

use super::page::{Page, clean, pad_left, pad_right, sgr, width_of, wrap};
use super::terminal::{LEAST_NAME, NAME};
use crate::tree::{Cell, Row, Table};

/// Spaces between columns.
const GAP: usize = 2;
/// Minimum width of wrapped row names, as long as columns can continue below instead.
const SHORTEST: usize = 10;

/// Column widths of a table.
struct Grid {
    name: usize,
    column: usize,
    gap: usize,
}

pub(super) fn pairs(page: &mut Page, table: &Table) {
    let grid = fit_grid(page.width, table);
    let room = page.width.saturating_sub(grid.name);
    let at_once = (room / (grid.column + grid.gap)).max(1);
    for first in (0..table.columns.len()).step_by(at_once) {
        let shown = first..(first + at_once).min(table.columns.len());
        let names = table.columns[shown.clone()].iter();
        heads(page, &names.map(|column| clean(&column.head)).collect::<Vec<_>>(), &grid);
        for row in &table.rows {
            one_row(page, row, shown.clone(), &grid);
        }
    }
}

fn fit_grid(width: usize, table: &Table) -> Grid {
    let column = table
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .map(|cell| width_of(&cell.text.words()).max(width_of(&cell.small)))
        .max()
        .unwrap_or(0)
        .max(LEAST_NAME);
    let longest = table
        .rows
        .iter()
        .map(|row| width_of(&clean(&row.name)))
        .max()
        .unwrap_or(0)
        .clamp(LEAST_NAME, NAME);
    // Where all columns fit beside names that are wrapped, they do.
    let (gap, room) = [GAP, 1]
        .into_iter()
        .map(|gap| (gap, width.saturating_sub(table.columns.len() * (column + gap))))
        .find(|(_, room)| *room >= longest.min(SHORTEST))
        .unwrap_or((GAP, longest));
    Grid { name: longest.min(room), column, gap }
}

/// Writes the names of columns. The last line of each is just above the figures.
fn heads(page: &mut Page, names: &[String], grid: &Grid) {
    let heads: Vec<Vec<String>> = names.iter().map(|name| wrap(name, grid.column, 0)).collect();
    let lines = heads.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..lines {
        let mut text = pad_right("", grid.name);
        for head in &heads {
            let above = lines - head.len();
            let part = line.checked_sub(above).and_then(|line| head.get(line));
            text.push_str(&" ".repeat(grid.gap));
            text.push_str(&pad_left(part.map_or("", |part| part), grid.column));
        }
        page.line(&text, sgr::DIM);
    }
}

fn one_row(page: &mut Page, row: &Row, columns: Range<usize>, grid: &Grid) {
    let names = wrap(&clean(&row.name), grid.name, 1);
    for line in 0..names.len().max(2) {
        let name = names.get(line).map_or("", |name| name);
        let mut text = page.paint(&pad_right(name, grid.name), "");
        for cell in &row.cells[columns.clone()] {
            text.push_str(&" ".repeat(grid.gap));
            text.push_str(&part_of(page, cell, line, grid.column));
        }
        page.put(&text);
    }
}

/// Returns the part of a cell for a line of its row, right-aligned.
fn part_of(page: &Page, cell: &Cell, line: usize, width: usize) -> String {
    match line {
        0 => {
            let blank = width.saturating_sub(width_of(&cell.text.words()));
            format!("{}{}", " ".repeat(blank), page.painted(&cell.text, ""))
        }
        1 => page.paint(&pad_left(&cell.small, width), sgr::DIM),
        _ => String::new(),
    }
}
