//! Results of the kills.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use weir_testkit::program::Ended;

use super::Victim;

/// Result of one kill.
#[derive(Debug, Default)]
pub(crate) struct Row {
    at: Duration,
    code: Option<i32>,
    messages: String,
    /// True if an object of weir's, or one changed by it, was there before anybody had restored it.
    pub(crate) left: bool,
    /// Description of these objects.
    objects: String,
    slowest_restore: Duration,
    faults: Vec<String>,
}

impl Row {
    pub(crate) fn fault(&mut self, words: String) {
        self.faults.push(words);
    }

    /// Sets the time of the kill after the start of weir.
    pub(crate) fn at(&mut self, at: Duration) {
        self.at = at;
    }

    pub(crate) fn add_end(&mut self, ended: &Ended) {
        self.code = ended.code;
        let messages = ended.stderr.lines().filter(|line| line.starts_with("weir: "));
        self.messages = messages.collect::<Vec<_>>().join(" / ");
    }

    pub(crate) fn add_objects(&mut self, objects: &str) {
        self.objects = objects.lines().collect::<Vec<_>>().join(" / ");
    }

    pub(crate) fn add_restore(&mut self, took: Duration) {
        self.slowest_restore = self.slowest_restore.max(took);
    }
}

impl fmt::Display for Row {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, restored) = (self.at.as_secs_f64(), self.slowest_restore.as_secs_f64());
        write!(to, "after {at:.2} s, exit code {:?}, `{}`", self.code, self.messages)?;
        if self.left {
            write!(to, "; left: {}; restored in {restored:.1} s", self.objects)?;
        }
        for fault in &self.faults {
            write!(to, "\n  FAULT {fault}")?;
        }
        Ok(())
    }
}

/// Results by victim.
#[derive(Default)]
pub(crate) struct Table(BTreeMap<Victim, Vec<Row>>);

impl Table {
    pub(crate) fn add(&mut self, victim: Victim, row: Row) {
        self.0.entry(victim).or_default().push(row);
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        let rows = self.0.iter();
        rows.flat_map(|(victim, rows)| rows.iter().map(move |row| (victim, row)))
            .filter(|(_, row)| !row.faults.is_empty())
            .map(|(victim, row)| format!("{victim:?}: {row}"))
            .collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            to,
            "| struck | times | needed restore | left after restore, or other faults | longest restore, s |"
        )?;
        writeln!(to, "|---|---|---|---|---|")?;
        for (victim, rows) in &self.0 {
            let traced = rows.iter().filter(|row| row.left).count();
            let faulty = rows.iter().filter(|row| !row.faults.is_empty()).count();
            let longest = rows.iter().map(|row| row.slowest_restore).max().unwrap_or_default();
            let (times, longest) = (rows.len(), longest.as_secs_f64());
            writeln!(to, "| {victim:?} | {times} | {traced} | {faulty} | {longest:.1} |")?;
        }
        Ok(())
    }
}
