//! Results of all kills.

use std::collections::BTreeMap;
use std::fmt;

use super::records::Recovered;
use super::scene::{Network, Victim};

/// Result of one kill.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Description of the killed process; empty if every run had ended before.
    struck: String,
    /// Word for the report that weir made of the kill.
    pub(crate) noticed: &'static str,
    pub(crate) left_before: bool,
    pub(crate) left: String,
    pub(crate) left_after: bool,
    records: Recovered,
    faults: Vec<String>,
}

impl Row {
    pub(crate) fn new(struck: String) -> Row {
        Row { struck, noticed: "killed", ..Row::default() }
    }

    /// Returns the row for runs that ended before their victim existed.
    pub(crate) fn missed() -> Row {
        Row {
            faults: vec!["every run had ended before its victim was there".to_owned()],
            ..Row::default()
        }
    }

    pub(crate) fn fault(&mut self, words: String) {
        self.faults.push(words);
    }

    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }

    pub(crate) fn recovered(&mut self, mut records: Recovered) {
        self.faults.append(&mut records.faults);
        self.records = records;
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; noticed: {}", self.struck, self.noticed)?;
        let resumed = match self.records.resumed {
            Some(true) => "resumed",
            Some(false) => "NOT resumed",
            None => "nothing to resume",
        };
        write!(f, "; {resumed}")?;
        if self.left_before {
            write!(f, "; left before restore:{}", self.left)?;
        }
        for fault in &self.faults {
            write!(f, "\n  FAULT {fault}")?;
        }
        Ok(())
    }
}

/// Results by network and victim.
#[derive(Default)]
pub(crate) struct Table(BTreeMap<(Network, Victim), Vec<Row>>);

impl Table {
    pub(crate) fn add(&mut self, network: Network, victim: Victim, row: Row) {
        self.0.entry((network, victim)).or_default().push(row);
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        self.0
            .iter()
            .flat_map(|(of, rows)| rows.iter().map(move |row| (of, row)))
            .filter(|(_, row)| !row.faults.is_empty())
            .map(|((network, victim), row)| format!("{network:?} {victim:?}: {row}"))
            .collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| network | victim | kills | left before restore | left after restore | records lost | \
             resumed | nothing to resume | faults |\n|---|---|---|---|---|---|---|---|---|"
        )?;
        let mut sums = [0; 7];
        for ((network, victim), rows) in &self.0 {
            let figures = sum_up(rows);
            let cells = figures.map(|figure| figure.to_string()).join(" | ");
            writeln!(f, "| {network:?} | {victim:?} | {cells} |")?;
            (0..7).for_each(|column| sums[column] += figures[column]);
        }
        let cells = sums.map(|sum| sum.to_string()).join(" | ");
        writeln!(f, "| all | | {cells} |")
    }
}

fn sum_up(rows: &[Row]) -> [usize; 7] {
    let mut sums = [0; 7];
    for row in rows {
        sums[0] += usize::from(!row.struck.is_empty());
        sums[1] += usize::from(row.left_before);
        sums[2] += usize::from(row.left_after);
        sums[3] += row.records.lost;
        sums[4] += usize::from(row.records.resumed == Some(true));
        sums[5] += usize::from(row.records.resumed.is_none());
        sums[6] += usize::from(!row.faults.is_empty());
    }
    sums
}
