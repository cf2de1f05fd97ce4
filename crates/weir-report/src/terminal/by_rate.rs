//! Response times against the rate for a terminal: a row for each arm, a column for each rate.

use super::page::{Cells, Page, sgr};
use super::verdict_style;
use crate::view::ByRateView;

impl Page {
    pub(super) fn by_rate(&mut self, view: &ByRateView) {
        self.out.push('\n');
        self.text("Response times by rate", sgr::BOLD, 0);
        let what = format!("loads {}: {}", view.loads, view.summary);
        self.badged(view.validity, &what, sgr::DIM);
        for table in &view.tables {
            self.out.push('\n');
            let head = view
                .rates
                .iter()
                .map(|rate| (format!("{rate}/s"), sgr::DIM));
            let mut rows: Vec<Cells> = vec![head.collect()];
            rows.extend(table.rows.iter().map(|row| {
                let cells = row.cells.iter();
                cells
                    .map(|cell| (cell.signed(), cell.verdict.map_or("", verdict_style)))
                    .collect()
            }));
            let layout = self.layout(table.rows.iter().map(|row| &*row.arm), &rows);
            self.plain_row(table.quantile, sgr::DIM, &layout, &rows[0]);
            for (row, cells) in table.rows.iter().zip(&rows[1..]) {
                self.plain_row(&row.arm, "", &layout, cells);
            }
        }
    }
}
