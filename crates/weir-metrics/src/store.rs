//! The latest value of every series, in bounded memory.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::families::{Family, all, index_of};
use crate::histogram::Distribution;

/// Maximum number of series of a family. Names of arms, loads and hosts are the user's; a study with more of them has
/// its first series exported, and [`Store::left_out`] counts the others.
const MOST_SERIES: usize = 2_000;

/// Longest value of a label, bytes: some come from other hosts.
const LONGEST_LABEL: usize = 200;

/// Labels of a series: names and values, in the order of names.
pub type Labels = Vec<(&'static str, String)>;

/// Value of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A counter or a gauge.
    Number(f64),
    /// A histogram.
    Distribution(Box<Distribution>),
}

/// A series: its value, and whether that has changed since the last [`Store::changes`].
#[derive(Debug, Clone)]
struct Series {
    value: Value,
    has_changed: bool,
}

/// The latest values of all series.
#[derive(Debug)]
pub struct Store {
    families: Vec<BTreeMap<Labels, Series>>,
    /// Labels that every series has.
    common: Labels,
    left_out: u64,
}

impl Default for Store {
    fn default() -> Store {
        Store { families: vec![BTreeMap::new(); all().len()], common: Vec::new(), left_out: 0 }
    }
}

impl Store {
    /// Creates an empty store.
    pub fn new() -> Store {
        Store::default()
    }

    /// Sets labels that every series has from now on, and forgets the series with others.
    pub fn set_common(&mut self, labels: &[(&'static str, &str)]) {
        let labels = owned(labels);
        if labels != self.common {
            self.families.iter_mut().for_each(BTreeMap::clear);
            self.common = labels;
        }
    }

    /// Adds to a counter; 0 lets it appear, so that its first increase is not missed.
    pub fn add(&mut self, name: &str, labels: &[(&'static str, &str)], count: f64) {
        if let Some(series) = self.series(name, labels, Value::Number(0.0))
            && let Value::Number(sum) = &mut series.value
        {
            *sum += count;
            series.has_changed |= count > 0.0;
        }
    }

    /// Sets a gauge, or a counter that is counted elsewhere.
    pub fn set(&mut self, name: &str, labels: &[(&'static str, &str)], value: f64) {
        if let Some(series) = self.series(name, labels, Value::Number(value)) {
            series.has_changed = true;
            series.value = Value::Number(value);
        }
    }

    /// Adds a histogram of nanoseconds to a distribution.
    pub fn observe(&mut self, name: &str, labels: &[(&'static str, &str)], times: &Histogram<u64>) {
        let empty = Value::Distribution(Box::default());
        if let Some(series) = self.series(name, labels, empty)
            && let Value::Distribution(distribution) = &mut series.value
        {
            distribution.add(times);
            series.has_changed |= !times.is_empty();
        }
    }

    /// Sets every series of a gauge to 0 that has these labels, whatever its others.
    pub fn clear(&mut self, name: &str, labels: &[(&'static str, &str)]) {
        let Some(index) = index_of(name) else { return };
        for (known, series) in &mut self.families[index] {
            let has_all = labels
                .iter()
                .all(|(name, value)| known.iter().any(|(other, is)| other == name && is == value));
            if has_all && series.value != Value::Number(0.0) {
                series.value = Value::Number(0.0);
                series.has_changed = true;
            }
        }
    }

    fn series(
        &mut self,
        name: &str,
        labels: &[(&'static str, &str)],
        new: Value,
    ) -> Option<&mut Series> {
        let Some(index) = index_of(name) else {
            debug_assert!(false, "{name} is no family");
            return None;
        };
        let mut key = owned(labels);
        key.extend(self.common.iter().cloned());
        key.sort_unstable();
        let family = &self.families[index];
        if family.len() >= MOST_SERIES && !family.contains_key(&key) {
            self.left_out += 1;
            let count = self.left_out as f64;
            self.set("weir_series_left_out", &[], count);
            return None;
        }
        Some(self.families[index].entry(key).or_insert(Series { value: new, has_changed: true }))
    }

    /// Returns each family that has series, with its series in the order of their labels.
    pub fn read(
        &self,
    ) -> impl Iterator<Item = (&'static Family, impl Iterator<Item = (&Labels, &Value)>)> {
        all().iter().zip(&self.families).filter(|(_, series)| !series.is_empty()).map(
            |(family, series)| {
                (family, series.iter().map(|(labels, series)| (labels, &series.value)))
            },
        )
    }

    /// Takes copies of the series that have changed since the last call, or with `all` of every one.
    pub fn changes(&mut self, all_series: bool) -> Vec<(&'static Family, Labels, Value)> {
        let mut changes = Vec::new();
        for (family, series) in all().iter().zip(&mut self.families) {
            for (labels, series) in series {
                if std::mem::take(&mut series.has_changed) || all_series {
                    changes.push((family, labels.clone(), series.value.clone()));
                }
            }
        }
        changes
    }

    /// Returns the number of attempts to export a series that found no room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the number of series.
    pub fn len(&self) -> usize {
        self.families.iter().map(BTreeMap::len).sum()
    }

    /// Returns true if there are no series.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn shortened(text: &str) -> String {
    let mut ends = (0..=text.len().min(LONGEST_LABEL)).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_owned()
}

fn owned(labels: &[(&'static str, &str)]) -> Labels {
    labels
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (*name, shortened(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_lab::Measured;
    use weir_model::load_report::StatusCount;

    use super::*;
    use crate::feed::{Feed, SharedStore, locked};
    use crate::openmetrics::{TextFormat, text};

    #[test]
    fn a_day_of_a_load_takes_no_more_room_than_a_minute() {
        let store = SharedStore::default();
        let mut feed = Feed::new(Arc::clone(&store), "1.0.0");
        feed.begin("a run", "a study");
        let empty = weir_lab::no_data();
        let mut second = Measured::of("load".to_owned(), "arm".to_owned(), 100.0, &empty);
        second.interval.completed = 3;
        second.interval.statuses = vec![StatusCount { status: 200, count: 3 }];
        let mut sizes = Vec::new();
        // Each event stands for a hundred seconds: 100,000 of them.
        for at in 0..1_000_u64 {
            second.times.response.clear();
            for value in 0..300 {
                let spread = (at * 7919 + value * 104_729) % 50_000_000;
                second.times.response.saturating_record(100_000 + spread);
            }
            feed.measured(&second);
            if at == 36 || at == 999 {
                let store = locked(&store);
                sizes.push((store.len(), text(&store, TextFormat::OpenMetrics).len()));
            }
        }
        let [(series, hour), (series_later, day)] = sizes[..] else { panic!("{sizes:?}") };
        assert_eq!(series, series_later);
        assert!(day < hour + hour / 20, "{hour} {day}: only digits are more");
    }

    #[test]
    fn names_without_end_are_left_out_and_counted() {
        let mut store = Store::new();
        for number in 0..3 * MOST_SERIES {
            store.add("weir_blocks", &[("arm", &format!("arm {number}"))], 1.0);
        }
        assert_eq!((store.len(), store.left_out()), (MOST_SERIES + 1, 2 * MOST_SERIES as u64));
        let long = "ö".repeat(LONGEST_LABEL);
        store.add("weir_errors", &[("kind", &long)], 1.0);
        let written = text(&store, TextFormat::OpenMetrics);
        assert!(written.contains(&format!("\"{}\"", &long[..LONGEST_LABEL])));
    }

    #[test]
    fn foreign_text_cannot_leave_its_label() {
        let mut store = Store::new();
        store.add("weir_errors", &[("kind", "a\"} 1\nweir_forged 9\\")], 1.0);
        let written = text(&store, TextFormat::OpenMetrics);
        assert!(written.contains(r#"{kind="a\"} 1\nweir_forged 9\\"} 1.0"#), "{written}");
    }
}
