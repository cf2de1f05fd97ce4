//! Times that a proxy's log cannot show: waits in the accept queue, and retransmitted segments. The sources are
//! programs at tracepoints, or else counters.

use std::collections::BTreeMap;

use weir_model::sample::Counters;

use super::{Of, Span};
use crate::findings::{AcceptFindings, Retransmitted, ToldBy};

/// Quantiles of the waiting time.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Minimum number of readings of the queue for its mean length.
const LEAST_QUEUES: usize = 10;

/// Maximum time between two readings, nanoseconds.
const READING: u64 = 1_200_000_000;

impl Of<'_> {
    pub(super) fn accept(&self, arm: &str, spans: &[Span]) -> Option<AcceptFindings> {
        let told = self.told(arm, spans);
        let connections = told.risen("accept_waits", 0, Begun::AtZero);
        if !connections.is_empty() {
            let wait = told.risen("accept_waits", 1, Begun::AtZero);
            let mut by_bound: Vec<(u64, u64)> = connections
                .iter()
                .filter_map(|(keys, own)| Some((keys.first()?.parse().ok()?, *own)))
                .collect();
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
        let answered: u64 = self
            .trials
            .iter()
            .flat_map(|trial| &trial.slices)
            .map(|slice| slice.completed_whole)
            .sum();
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
                clients: of("clients").map(per_thousand),
            },
            None => Retransmitted {
                by: ToldBy::Samples,
                inbound: per_thousand(told.network("retransmitted")?),
                outbound: None,
                clients: None,
            },
        })
    }

    fn told<'s>(&'s self, arm: &'s str, spans: &'s [Span]) -> Told<'s> {
        Told { of: self, arm, spans }
    }
}

/// Samples of an arm in its slices.
struct Told<'s> {
    of: &'s Of<'s>,
    arm: &'s str,
    spans: &'s [Span],
}

/// Value of a counter at its first reading.
#[derive(Clone, Copy, PartialEq)]
enum Begun {
    /// Unknown: the counter began earlier.
    Before,
    /// Zero: the counter began just then.
    AtZero,
}

impl<'s> Told<'s> {
    /// Returns the growth of a counter in readings of the slices, by the keys of its rows. A counter that fell was
    /// restarted.
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
        all.into_iter().map(|(keys, (_, sum))| (keys, sum)).collect()
    }

    /// Returns true if a reading covers one of the slices. The arm has load only in these, so the increase up to the
    /// first reading after a slice still belongs to it.
    fn holds(&self, at_ns: u64) -> bool {
        self.spans.iter().any(|span| span.begin < at_ns && at_ns <= span.to + READING)
    }

    /// Returns the growth of a counter of the arm's own network namespace.
    fn network(&self, counter: &str) -> Option<u64> {
        let risen = self.risen("network", place("network", counter)?, Begun::Before);
        risen.get(&["proxy".to_owned()][..]).copied()
    }

    /// Returns all values of the arm's own gauge while it has load.
    fn values(&self, table: &'s str, column: &str) -> impl Iterator<Item = u64> {
        let place = place(table, column).unwrap_or(usize::MAX);
        let rows = self.of.rows(table, self.arm);
        let is_in = |at: u64| {
            let mut spans = self.spans.iter();
            spans.any(|span| (span.begin..span.to).contains(&at))
        };
        rows.filter(move |row| is_in(row.at_ns)).filter_map(move |row| *row.values.get(place)?)
    }

    fn seconds(&self) -> f64 {
        self.spans.iter().map(|span| span.to - span.begin).sum::<u64>() as f64 / 1e9
    }
}

/// Returns the index of a column among the values of its table.
fn place(table: &str, column: &str) -> Option<usize> {
    let table = Counters::builtin().table(table)?;
    table.values().position(|name| name == column)
}

#[cfg(test)]
mod tests {
    use weir_model::sample::SampleRow;
    use weir_record::Sample;

    use super::*;
    use crate::tests::fixture;

    /// One second with load, from the tenth second on, in which a thousand requests were answered.
    const SPANS: [Span; 1] =
        [Span { begin: 10_000_000_000, from: 10_200_000_000, to: 11_000_000_000 }];

    fn row(table: &str, at_s: u64, keys: &[&str], values: &[Option<u64>]) -> Sample {
        let row = SampleRow {
            table: table.to_owned(),
            at_ns: at_s * 1_000_000_000,
            arm: "a".to_owned(),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            values: values.to_vec(),
        };
        let host = "here".to_owned();
        Sample { host, row }
    }

    fn found(times: Vec<Sample>) -> (Option<AcceptFindings>, Option<Retransmitted>) {
        let (_folder, mut run) = fixture::run(&fixture::header(fixture::three_arms()), Vec::new());
        run.samples.rows = times;
        let mut slice = fixture::slice(0, 1.0);
        slice.completed_whole = 1000;
        let trial = fixture::trial("open", "a", 0, vec![slice]);
        let of = Of { run: &run, trials: vec![&trial], slice_ns: 0 };
        (of.accept("a", &SPANS), of.retransmitted("a", &SPANS))
    }

    fn network(at_s: u64, columns: &[(&str, u64)]) -> Sample {
        let value = |name: &str| {
            let mut columns = columns.iter();
            columns.find(|column| column.0 == name).map(|column| column.1)
        };
        let table = Counters::builtin().table("network").unwrap();
        let values: Vec<Option<u64>> = table.values().map(value).collect();
        row("network", at_s, &["proxy"], &values)
    }

    #[test]
    fn programs_tell_of_the_slices_alone_and_may_begin_anew() {
        let waits = |at_s, below: &str, connections, wait| {
            let values = [connections, wait].map(Some);
            row("accept_waits", at_s, &[below], &values)
        };
        let again =
            |at_s, side: &str, segments| row("retransmits", at_s, &[side], &[Some(segments)]);
        let (accept, sent) = found(vec![
            // Of an earlier load.
            waits(2, "8", 500, 4000),
            waits(2, "64", 0, 0),
            again(2, "inbound", 7),
            // Loaded again for this one.
            waits(10, "8", 0, 0),
            again(10, "inbound", 0),
            again(10, "clients", 0),
            waits(11, "8", 90, 450),
            waits(11, "64", 10, 550),
            again(11, "clients", 3),
            // And what came later.
            waits(20, "64", 1000, 1_000_000),
        ]);
        let accept = accept.unwrap();
        assert_eq!((accept.by, accept.connections), (ToldBy::Ebpf, 100));
        assert_eq!(accept.mean_us, 10.0);
        assert_eq!(accept.below_us, Some([8, 8, 64, 64]));
        let sent = sent.unwrap();
        let per_thousand = (sent.inbound, sent.outbound, sent.clients);
        assert_eq!(per_thousand, (0.0, None, Some(3.0)));
    }

    #[test]
    fn without_programs_the_queue_over_the_rate_tells_if_it_was_read_often() {
        let queue = |ms: u64, queue| {
            let values = [Some(1), Some(queue), None, None];
            let mut sample = row("listeners", 0, &["proxy", "80"], &values);
            sample.row.at_ns = 10_000_000_000 + ms * 1_000_000;
            sample
        };
        let ends = |at_s, accepted| {
            let sent = accepted / 100;
            network(at_s, &[("passive_opens", accepted), ("retransmitted", sent)])
        };
        let mut samples = vec![ends(10, 0), ends(11, 200)];
        samples.extend((0..10).map(|at| queue(at * 100, 1 + at % 2)));
        let (accept, sent) = found(samples.clone());
        let accept = accept.unwrap();
        // 1.5 in the mean, of 200 per second: 7.5 ms each.
        assert_eq!((accept.by, accept.connections), (ToldBy::Samples, 200));
        assert!((accept.mean_us - 7500.0).abs() < 1e-6, "{accept:?}");
        assert_eq!(accept.below_us, None);
        let sent = sent.unwrap();
        assert_eq!((sent.by, sent.inbound), (ToldBy::Samples, 2.0));
        samples.pop();
        assert_eq!(found(samples).0, None, "nine readings");
        assert_eq!(found(Vec::new()), (None, None));
    }
}
