//! Samples: counters of the kernel and the proxies, read every second during a trial.
//!
//! The tables and their columns are defined as data in `limits/counters.yaml`. A row belongs to one table and one
//! moment. All values are whole numbers; a value that could not be read is absent, never zero.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// One row of a table at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleRow {
    /// Name of the table.
    pub table: String,
    /// Time by CLOCK_MONOTONIC of the sampled host, nanoseconds.
    pub at_ns: u64,
    /// Name of the arm; empty if the row is about the host, or not about a single arm.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arm: String,
    /// Values of the table's key columns, in the table's order.
    pub keys: Vec<String>,
    /// Values of the table's other columns, in the table's order; `None` if a value could not be read.
    pub values: Vec<Option<u64>>,
}

/// A column that could not be read, and the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingCounter {
    /// Name of the table.
    pub table: String,
    /// Name of the column; in the table `proxy`, name of the counter. Empty for the whole table.
    pub column: String,
    /// Role whose column is missing; empty for the host.
    pub role: String,
    /// Reason in a form for people.
    pub why: String,
}

/// Kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Key that distinguishes rows of the same moment.
    Key,
    /// Counter that only grows; differences of its values are of interest.
    Counter,
    /// Gauge: a momentary value.
    Gauge,
}

/// A column of a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Name of the column; it ends in the unit unless the column is a count.
    pub name: String,
    /// Unit of the values; empty for a count.
    #[serde(default)]
    pub unit: String,
    /// Kind of the column.
    pub kind: ColumnKind,
    /// Meaning of the values, with their source.
    pub means: String,
}

/// A table of samples.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Name of the table.
    pub name: String,
    /// Meaning of a row.
    pub means: String,
    /// Columns, keys first.
    pub columns: Vec<Column>,
    /// True if rows may lack columns that do not apply to their subject. The absence then does not mean that they could
    /// not be read.
    #[serde(default)]
    pub partial: bool,
}

impl Table {
    /// Names of the key columns.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.named(true)
    }

    /// Names of the columns that are not keys.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.named(false)
    }

    fn named(&self, keys: bool) -> impl Iterator<Item = &str> {
        self.columns
            .iter()
            .filter(move |column| (column.kind == ColumnKind::Key) == keys)
            .map(|column| &*column.name)
    }
}

/// A proxy's own counter, which gives rows of the table `proxy`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyCounter {
    /// Name of the proxy; `any` for every proxy.
    pub proxy: String,
    /// The proxy's name for the counter.
    pub name: String,
    /// Text in the lines of the error log that are counted; `None` if the counter does not count log lines.
    #[serde(default)]
    pub line: Option<String>,
    /// True if such lines are below the level `error`, so that a log may leave them out.
    #[serde(default)]
    pub is_warning: bool,
    /// Kind of the counter: [`ColumnKind::Counter`] if it only grows, or [`ColumnKind::Gauge`].
    pub kind: ColumnKind,
    /// Meaning of the counter, with its source.
    pub means: String,
}

/// Definitions of everything that is sampled.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Tables of samples.
    pub tables: Vec<Table>,
    /// Counters that the table `proxy` has rows for.
    pub proxy_counters: Vec<ProxyCounter>,
}

impl Counters {
    /// Returns the definitions in `limits/counters.yaml`.
    pub fn builtin() -> &'static Counters {
        static BUILTIN: OnceLock<Counters> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let text = include_str!("../../../limits/counters.yaml");
            serde_saphyr::from_str(text).expect("data of this crate, which its tests read")
        })
    }

    /// Returns the table with this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use super::*;

    /// Units, and the suffix of names with each unit.
    const UNITS: [(&str, &str); 8] = [
        ("ns", "_ns"),
        ("us", "_us"),
        ("ms", "_ms"),
        ("bytes", "_bytes"),
        ("bytes/s", "_bytes_per_s"),
        ("pages", "_pages"),
        ("ticks", "_ticks"),
        ("hundredths", "_hundredths"),
    ];

    /// Renders the tables of docs/samples.md.
    fn page() -> String {
        let mut page = String::new();
        let counters = Counters::builtin();
        for table in &counters.tables {
            let (name, means) = (&table.name, &table.means);
            write!(page, "\n## {name}\n\n{means}.\n\n| column | kind | what |\n|---|---|---|\n")
                .unwrap();
            for column in &table.columns {
                let kind = write_kind(column.kind);
                writeln!(page, "| `{}` | {kind} | {} |", column.name, column.means).unwrap();
            }
        }
        page +=
            "\n## Counters of proxies\n\n| proxy | counter | kind | what |\n|---|---|---|---|\n";
        for counter in &counters.proxy_counters {
            let (proxy, name, kind) = (&counter.proxy, &counter.name, write_kind(counter.kind));
            writeln!(page, "| {proxy} | `{name}` | {kind} | {} |", counter.means).unwrap();
        }
        page
    }

    fn write_kind(kind: ColumnKind) -> &'static str {
        match kind {
            ColumnKind::Key => "key",
            ColumnKind::Counter => "counter",
            ColumnKind::Gauge => "gauge",
        }
    }

    /// Compares docs/samples.md with the data; `WEIR_WRITE_DOCS=1` writes its tables instead.
    #[test]
    fn the_page_says_what_the_data_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/samples.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, tables) = text.split_at(text.find("\n## cpus\n").unwrap_or(text.len()));
        if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
            return std::fs::write(path, before.to_owned() + &page()).unwrap();
        }
        assert!(tables == page(), "docs/samples.md: WEIR_WRITE_DOCS=1 cargo test -p weir-model");
    }

    #[test]
    fn columns_are_named_once_keys_first_with_their_unit_and_their_source() {
        let counters = Counters::builtin();
        let mut tables = BTreeSet::new();
        for table in &counters.tables {
            assert!(tables.insert(&table.name), "{} twice", table.name);
            let mut names = BTreeSet::new();
            let keys = table.keys().count();
            for (place, column) in table.columns.iter().enumerate() {
                let name = format!("{}.{}", table.name, column.name);
                assert!(names.insert(&column.name), "{name} twice");
                assert_eq!(column.kind == ColumnKind::Key, place < keys, "{name}");
                let suffix = UNITS.iter().find(|(unit, _)| *unit == column.unit);
                let ends = |(_, suffix): &(&str, &str)| column.name.ends_with(suffix);
                let is_named = match suffix {
                    Some(unit) => ends(unit),
                    None => column.unit.is_empty() && !UNITS.iter().any(ends),
                };
                assert!(is_named, "{name} in `{}`", column.unit);
                assert!(column.means.len() > 5, "{name} means nothing");
            }
        }
        let mut names = BTreeSet::new();
        for counter in &counters.proxy_counters {
            assert!(names.insert((&counter.proxy, &counter.name)), "{} twice", counter.name);
            assert_ne!(counter.kind, ColumnKind::Key, "{}", counter.name);
        }
    }
}
