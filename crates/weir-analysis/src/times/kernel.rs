//! What a proxy's log cannot tell: waits in the accept queue, and segments that were sent again. Told by programs at
//! tracepoints, or else by counters.

use std::collections::BTreeMap;

use weir_model::sample::Counters;

use super::{Of, Span};
use crate::findings::{AcceptFindings, Retransmitted, ToldBy};

/// Quantiles of a wait.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// With fewer readings of the queue nothing is known of its mean length.
const LEAST_QUEUES: usize = 10;

/// Longer than from one reading to the next, nanoseconds.
const READING: u64 = 1_200_000_000;

impl Of<'_> {
    pub(super) fn accept(&self, arm: &str, spans: &[Span]) -> Option<AcceptFindings> {
        let told = self.told(arm, spans);
        let connections = told.risen("accept_waits", 0, Begun::AtZero);
        if !connections.is_empty() {
            let wait = told.risen("accept_waits", 1, Begun::AtZero);
            let bounds = connections.iter();
            let bounds = bounds.filter_map(|(keys, own)| Some((keys.first()?.parse().ok()?, *own)));
            let mut by_bound: Vec<(u64, u64)> = bounds.collect();
            by_bound.sort_unstable();
            let connections: u64 = by_bound.iter().map(|(_, own)| own).sum();
            let wait: u64 = wait.values().sum();
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
        if accepted == 0 || queues.len() < LEAST_QUEUES {
            return None;
        }
        let queue = queues.iter().sum::<u64>() as f64 / queues.len() as f64;
        Some(AcceptFindings {
            by: ToldBy::Samples,
            connections: accepted,
            mean_us: queue / (accepted as f64 / told.seconds()) * 1e6,
            below_us: None,
        })
    }

    pub(super) fn retransmitted(&self, arm: &str, spans: &[Span]) -> Option<Retransmitted> {
        let told = self.told(arm, spans);
        let slices = self.trials.iter().flat_map(|trial| &trial.slices);
        let answered: u64 = slices.map(|slice| slice.completed_whole).sum();
        if answered == 0 {
            return None;
        }
        let per_thousand = |segments: u64| segments as f64 * 1000.0 / answered as f64;
        let sides = told.risen("retransmits", 0, Begun::AtZero);
        let of = |side: &str| sides.get(&[side.to_owned()][..]).copied();
        Some(match of("inbound") {
            Some(inbound) => Retransmitted {
                by: ToldBy::Ebpf,
                inbound: per_thousand(inbound),
                outbound: of("outbound").map(per_thousand),
            },
            None => Retransmitted {
                by: ToldBy::Samples,
                inbound: per_thousand(told.network("retransmitted")?),
                outbound: None,
            },
        })
    }

    fn told<'s>(&'s self, arm: &'s str, spans: &'s [Span]) -> Told<'s> {
        Told {
            of: self,
            arm,
            spans,
        }
    }
}

/// What is sampled of an arm in its slices.
struct Told<'s> {
    of: &'s Of<'s>,
    arm: &'s str,
    spans: &'s [Span],
}

/// Where a counter stands when it is first read.
#[derive(Clone, Copy, PartialEq)]
enum Begun {
    /// Anywhere.
    Before,
    /// It began then.
    AtZero,
}

impl<'s> Told<'s> {
    /// How much a counter has grown in readings of the slices, by the keys of its rows. A counter that fell began anew.
    fn risen(&self, table: &'s str, place: usize, begun: Begun) -> BTreeMap<&'s [String], u64> {
        let mut all: BTreeMap<&[String], (Option<u64>, u64)> = BTreeMap::new();
        for row in self.of.rows(table, self.arm) {
            let Some(Some(now)) = row.values.get(place).copied() else {
                continue;
            };
            let (before, sum) = all.entry(&row.keys).or_default();
            let more = match *before {
                Some(before) => now.checked_sub(before).unwrap_or(now),
                None if begun == Begun::AtZero => now,
                None => 0,
            };
            *before = Some(now);
            if self.holds(row.at_ns) {
                *sum += more;
            }
        }
        all.into_iter()
            .map(|(keys, (_, sum))| (keys, sum))
            .collect()
    }

    /// Whether a reading tells of one of the slices. The arm has load in these alone, so what the next reading behind one
    /// has more is still of it.
    fn holds(&self, at_ns: u64) -> bool {
        let of = |span: &Span| span.begin < at_ns && at_ns <= span.to + READING;
        self.spans.iter().any(of)
    }

    /// How much a counter of the arm's own network namespace has grown.
    fn network(&self, counter: &str) -> Option<u64> {
        let risen = self.risen("network", place("network", counter)?, Begun::Before);
        risen.get(&["proxy".to_owned()][..]).copied()
    }

    /// All values of a gauge of the arm's own while it has load.
    fn values(&self, table: &'s str, column: &str) -> impl Iterator<Item = u64> {
        let place = place(table, column).unwrap_or(usize::MAX);
        let rows = self.of.rows(table, self.arm);
        let is_in = |at: u64| {
            let mut spans = self.spans.iter();
            spans.any(|span| (span.begin..span.to).contains(&at))
        };
        let rows = rows.filter(move |row| is_in(row.at_ns));
        rows.filter_map(move |row| *row.values.get(place)?)
    }

    fn seconds(&self) -> f64 {
        let each = self.spans.iter().map(|span| span.to - span.begin);
        each.sum::<u64>() as f64 / 1e9
    }
}

/// Where a column is among the values of its table.
fn place(table: &str, column: &str) -> Option<usize> {
    let table = Counters::builtin().table(table)?;
    table.values().position(|name| name == column)
}
