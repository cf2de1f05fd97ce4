//! What a proxy's log cannot tell: waits in the accept queue, and segments that were sent again. Told by programs at
//! tracepoints, or else by counters.

use std::collections::BTreeMap;

use weir_model::sample::{Counters, SampleRow};

use super::{Of, Span};
use crate::findings::{AcceptFindings, Retransmitted, ToldBy};

/// Quantiles of a wait.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

impl Of<'_> {
    pub(super) fn accept(&self, arm: &str, spans: &[Span]) -> Option<AcceptFindings> {
        let told = self.told(arm, spans)?;
        let mut by_bound: Vec<(u64, u64)> = Vec::new();
        let (mut connections, mut wait) = (0, 0);
        for (keys, [first, last]) in told.between("accept_waits") {
            let own = rise(first, last, 0)?;
            by_bound.push((keys.first()?.parse().ok()?, own));
            connections += own;
            wait += rise(first, last, 1)?;
        }
        if !by_bound.is_empty() {
            by_bound.sort_unstable();
            let rank = |q: f64| (q * connections as f64).ceil() as u64;
            return (connections > 0).then(|| AcceptFindings {
                by: ToldBy::Ebpf,
                connections,
                mean_us: wait as f64 / connections as f64,
                below_us: Some(QUANTILES.map(|q| super::quantile_of(&by_bound, rank(q)))),
            });
        }
        let accepted = told.network("passive_opens")?;
        let queues: Vec<u64> = told.values("listeners", "queue").collect();
        let seconds = told.seconds();
        if accepted == 0 || queues.is_empty() || seconds <= 0.0 {
            return None;
        }
        let queue = queues.iter().sum::<u64>() as f64 / queues.len() as f64;
        Some(AcceptFindings {
            by: ToldBy::Samples,
            connections: accepted,
            mean_us: queue / (accepted as f64 / seconds) * 1e6,
            below_us: None,
        })
    }

    pub(super) fn retransmitted(&self, arm: &str, spans: &[Span]) -> Option<Retransmitted> {
        let told = self.told(arm, spans)?;
        let slices = self.trials.iter().flat_map(|trial| &trial.slices);
        let answered: u64 = slices.map(|slice| slice.completed_whole).sum();
        if answered == 0 {
            return None;
        }
        let per_thousand = |segments: u64| segments as f64 * 1000.0 / answered as f64;
        let mut sides = BTreeMap::new();
        for (keys, [first, last]) in told.between("retransmits") {
            sides.insert(keys.first()?.clone(), rise(first, last, 0)?);
        }
        if let (Some(inbound), Some(outbound)) = (sides.get("inbound"), sides.get("outbound")) {
            return Some(Retransmitted {
                by: ToldBy::Ebpf,
                inbound: per_thousand(*inbound),
                outbound: Some(per_thousand(*outbound)),
            });
        }
        Some(Retransmitted {
            by: ToldBy::Samples,
            inbound: per_thousand(told.network("retransmitted")?),
            outbound: None,
        })
    }

    /// Counters from before the first of the spans to behind the last one; `None` without spans.
    fn told<'s>(&'s self, arm: &'s str, spans: &[Span]) -> Option<Told<'s>> {
        let from = spans.iter().map(|span| span.0).min()?;
        let to = spans.iter().map(|span| span.1).max()?;
        Some(Told {
            of: self,
            arm,
            span: (from, to),
        })
    }
}

/// Rows of an arm in a stretch of time. The arm has load in its own slices alone, so what is counted in between is its
/// own too.
struct Told<'s> {
    of: &'s Of<'s>,
    arm: &'s str,
    span: Span,
}

/// The first and the last row of some keys.
type Ends<'s> = [&'s SampleRow; 2];

impl<'s> Told<'s> {
    fn between(&self, table: &'s str) -> Vec<(&'s [String], Ends<'s>)> {
        let mut ends: BTreeMap<&[String], Ends<'_>> = BTreeMap::new();
        for row in self.of.rows(table, self.arm) {
            // The first row is the last one before the load, where there is one.
            let entry = ends.entry(&row.keys).or_insert([row, row]);
            if row.at_ns <= self.span.0 {
                entry[0] = row;
            }
            if row.at_ns <= self.span.1 + 1_500_000_000 {
                entry[1] = row;
            }
        }
        ends.into_iter().collect()
    }

    /// How much a counter of the arm's own network namespace has grown.
    fn network(&self, counter: &str) -> Option<u64> {
        let place = place("network", counter)?;
        let own = self.between("network");
        let own = own.iter().find(|(keys, _)| keys[..] == ["proxy"])?;
        rise(own.1[0], own.1[1], place)
    }

    /// All values of a gauge of the arm's own while it has load.
    fn values(&self, table: &'s str, column: &str) -> impl Iterator<Item = u64> {
        let place = place(table, column).unwrap_or(usize::MAX);
        let (from, to) = self.span;
        let rows = self.of.rows(table, self.arm);
        let rows = rows.filter(move |row| (from..=to).contains(&row.at_ns));
        rows.filter_map(move |row| *row.values.get(place)?)
    }

    fn seconds(&self) -> f64 {
        (self.span.1 - self.span.0) as f64 / 1e9
    }
}

/// Where a column is among the values of its table.
fn place(table: &str, column: &str) -> Option<usize> {
    let table = Counters::builtin().table(table)?;
    table.values().position(|name| name == column)
}

/// By how much a counter is larger; `None` where it began anew.
fn rise(first: &SampleRow, last: &SampleRow, place: usize) -> Option<u64> {
    let value = |row: &SampleRow| *row.values.get(place)?;
    value(last)?.checked_sub(value(first)?)
}
