//! Rows of one reading, with values by column name.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_model::sample::{Counters, SampleRow, Table};

use super::Whose;

/// Reason why something could not be read; empty if there is nothing to read and no problem.
pub(super) type Why = Arc<str>;

/// A value, or the reason why there is none.
pub(super) type Counter = Result<u64, Why>;

/// Returns a value that does not exist at present and need not be reported as missing.
pub(super) fn absent() -> Counter {
    Err(Why::from(""))
}

/// Rows of one point in time.
pub(super) struct Rows<'a> {
    pub(super) at_ns: u64,
    rows: Vec<SampleRow>,
    missing: &'a mut BTreeMap<(String, String, String), String>,
}

impl Rows<'_> {
    pub(super) fn new(
        at_ns: u64,
        missing: &mut BTreeMap<(String, String, String), String>,
    ) -> Rows<'_> {
        Rows { at_ns, rows: Vec::new(), missing }
    }

    pub(super) fn take(self) -> Vec<SampleRow> {
        self.rows
    }

    /// Adds a row that belongs to the host.
    pub(super) fn of_host(&mut self, table: &str, keys: Vec<String>, values: &[(&str, Counter)]) {
        self.row(table, ("", ""), keys, values);
    }

    /// Adds a row that belongs to a role, which becomes the first key.
    pub(super) fn of(
        &mut self,
        whose: &Whose,
        table: &str,
        keys: Vec<String>,
        values: &[(&str, Counter)],
    ) {
        let keys = std::iter::once(whose.role.to_owned()).chain(keys).collect();
        self.row(table, (whose.role, &whose.arm), keys, values);
    }

    fn row(
        &mut self,
        table: &str,
        (role, arm): (&str, &str),
        keys: Vec<String>,
        values: &[(&str, Counter)],
    ) {
        let Some(table) = Counters::builtin().table(table) else {
            debug_assert!(false, "a table without columns: {table}");
            return;
        };
        debug_assert!(is_whole(table, &keys, values), "{}", table.name);
        let values = table
            .values()
            .map(|name| {
                let value = values.iter().find(|(column, _)| *column == name);
                value
                    .map_or_else(absent, |(_, value)| value.clone())
                    .inspect_err(|why| self.miss(&table.name, name, role, why))
                    .ok()
            })
            .collect();
        self.rows.push(SampleRow {
            table: table.name.clone(),
            at_ns: self.at_ns,
            arm: arm.to_owned(),
            keys,
            values,
        });
    }

    /// Records that nothing of a table can be read.
    pub(super) fn miss_table(&mut self, table: &str, role: &str, why: &str) {
        self.miss(table, "", role, why);
    }

    fn miss(&mut self, table: &str, column: &str, role: &str, why: &str) {
        if why.is_empty() {
            return;
        }
        let key = (table.to_owned(), column.to_owned(), role.to_owned());
        self.missing.entry(key).or_insert_with(|| why.to_owned());
    }
}

/// Returns true if a row has exactly the columns of its table.
fn is_whole(table: &Table, keys: &[String], values: &[(&str, Counter)]) -> bool {
    keys.len() == table.keys().count()
        && values.len() == table.values().count()
        && table.values().all(|name| values.iter().any(|(own, _)| *own == name))
}
