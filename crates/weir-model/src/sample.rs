//! Samples: what the kernel and the proxies count, read every second while a trial goes on.
//!
//! What is read is data, `limits/counters.yaml`: tables, and the columns of each. A row is of one table and one
//! moment; all values are whole numbers, and one that could not be read is absent, never zero.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A row of a table, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleRow {
    /// Name of the table.
    pub table: String,
    /// When, by CLOCK_MONOTONIC of the host that was read, nanoseconds.
    pub at_ns: u64,
    /// The arm that it is of; empty: the host's, or that of no single arm.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arm: String,
    /// Of the table's keys, in its order.
    pub keys: Vec<String>,
    /// Of its other columns, in its order; `None`: it could not be read.
    pub values: Vec<Option<u64>>,
}

/// A column that could not be read, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingCounter {
    /// Name of the table.
    pub table: String,
    /// Name of the column; of the table `proxy` that of the counter. Empty: the whole table.
    pub column: String,
    /// Of the role; empty: the host's.
    pub role: String,
    /// The reason, for people.
    pub why: String,
}

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Tells rows of the same moment apart.
    Key,
    /// Only grows: differences are what is of use.
    Counter,
    /// A value of the moment.
    Gauge,
}

/// A column of a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name, which ends in its unit unless it counts things.
    pub name: String,
    /// Its unit; empty: it counts things.
    #[serde(default)]
    pub unit: String,
    /// What it is for.
    pub kind: ColumnKind,
    /// What it says, with its source.
    pub means: String,
}

/// A table of samples.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// What a row of it is.
    pub means: String,
    /// Keys first.
    pub columns: Vec<Column>,
    /// Rows may lack columns because what they are about does not have them, and not because they could not be read.
    #[serde(default)]
    pub partial: bool,
}

impl Table {
    /// Names of its keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.named(true)
    }

    /// Names of what is read.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.named(false)
    }

    fn named(&self, keys: bool) -> impl Iterator<Item = &str> {
        let columns = self.columns.iter();
        columns
            .filter(move |column| (column.kind == ColumnKind::Key) == keys)
            .map(|column| &*column.name)
    }
}

/// A counter of a proxy's own: a row of the table `proxy`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyCounter {
    /// Whose; `any`: of every proxy.
    pub proxy: String,
    /// Its name, the proxy's own.
    pub name: String,
    /// What lines of the error log have that are counted, where it is those.
    #[serde(default)]
    pub line: Option<String>,
    /// Whether such lines are below the level `error`, so that a log may leave them out.
    #[serde(default)]
    pub is_warning: bool,
    /// Whether it only grows.
    pub kind: ColumnKind,
    /// What it says, with its source.
    pub means: String,
}

/// All that is sampled.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// The tables.
    pub tables: Vec<Table>,
    /// What the table `proxy` has rows of.
    pub proxy_counters: Vec<ProxyCounter>,
}

impl Counters {
    /// Those of `limits/counters.yaml`.
    pub fn builtin() -> &'static Counters {
        static BUILTIN: OnceLock<Counters> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let text = include_str!("../../../limits/counters.yaml");
            serde_saphyr::from_str(text).expect("data of this crate, which its tests read")
        })
    }

    /// A table by its name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use super::*;

    /// Units, and how names end that have them.
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

    /// The tables of docs/samples.md.
    fn page() -> String {
        let mut page = String::new();
        let kind = |kind| match kind {
            ColumnKind::Key => "key",
            ColumnKind::Counter => "counter",
            ColumnKind::Gauge => "gauge",
        };
        let counters = Counters::builtin();
        for table in &counters.tables {
            let (name, means) = (&table.name, &table.means);
            write!(
                page,
                "\n## {name}\n\n{means}.\n\n| column | kind | what |\n|---|---|---|\n"
            )
            .unwrap();
            for column in &table.columns {
                let kind = kind(column.kind);
                writeln!(page, "| `{}` | {kind} | {} |", column.name, column.means).unwrap();
            }
        }
        page +=
            "\n## Counters of proxies\n\n| proxy | counter | kind | what |\n|---|---|---|---|\n";
        for one in &counters.proxy_counters {
            let (proxy, name, kind) = (&one.proxy, &one.name, kind(one.kind));
            writeln!(page, "| {proxy} | `{name}` | {kind} | {} |", one.means).unwrap();
        }
        page
    }

    /// `WEIR_WRITE_DOCS=1` writes the tables anew.
    #[test]
    fn the_page_says_what_the_data_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/samples.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, tables) = text.split_at(text.find("\n## cpus\n").unwrap_or(text.len()));
        if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
            return std::fs::write(path, before.to_owned() + &page()).unwrap();
        }
        assert!(
            tables == page(),
            "docs/samples.md: WEIR_WRITE_DOCS=1 cargo test -p weir-model"
        );
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
            assert!(
                names.insert((&counter.proxy, &counter.name)),
                "{} twice",
                counter.name
            );
            assert_ne!(counter.kind, ColumnKind::Key, "{}", counter.name);
        }
    }
}
