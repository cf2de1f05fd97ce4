//! Times that a proxy's log cannot show: waits in the accept queue, and retransmitted segments. The sources are
//! programs at tracepoints, or else counters.

use std::collections::BTreeMap;

use weir_model::sample::Counters;

use super::{Span, TimedTrials};
use crate::findings::{AcceptFindings, Retransmitted, ToldBy};

/// Quantiles of the waiting time.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Minimum number of readings of the queue for its mean length.
const LEAST_QUEUES: usize = 10;

/// Maximum time between two readings, nanoseconds.
const READING: u64 = 1_200_000_000;

impl TimedTrials<'_> {
    pub(super) fn accept(&self, arm: &str, spans: &[Span]) -> Option<AcceptFindings> {
        let samples = self.samples(arm, spans);
        let connections = samples.risen("accept_waits", 0, Begun::AtZero);
        if !connections.is_empty() {
            let wait = samples.risen("accept_waits", 1, Begun::AtZero);
            let mut by_bound: Vec<(u64, u64)> = connections
                .iter()
                .filter_map(|(keys, count)| Some((keys.first()?.parse().ok()?, *count)))
                .collect();
            by_bound.sort_unstable();
            let connections: u64 = by_bound.iter().map(|(_, count)| count).sum();
            let wait: u64 = wait.values().sum();
            return (connections > 0).then(|| AcceptFindings {
                by: ToldBy::Ebpf,
                connections,
                mean_us: wait as f64 / connections as f64,
                below_us: Some(QUANTILES.map(|q| {
                    super::quantile_of(&by_bound, (q * connections as f64).ceil() as u64)
                })),
            });
        }
        let accepted = samples.network("passive_opens")?;
        let queues: Vec<u64> = samples.values("listeners", "queue").collect();
        if accepted == 0 || queues.len() < LEAST_QUEUES {
            return None;
        }
        let queue = queues.iter().sum::<u64>() as f64 / queues.len() as f64;
        Some(AcceptFindings {
            by: ToldBy::Samples,
            connections: accepted,
            mean_us: queue / (accepted as f64 / samples.seconds()) * 1e6,
            below_us: None,
        })
    }

    pub(super) fn retransmitted(&self, arm: &str, spans: &[Span]) -> Option<Retransmitted> {
        let samples = self.samples(arm, spans);
        let answered: u64 = self
            .trials
            .iter()
            .flat_map(|trial| &trial.slices)
            .map(|slice| slice.completed_whole)
            .sum();
        if answered == 0 {
            return None;
        }
        let sides = samples.risen("retransmits", 0, Begun::AtZero);
        let [inbound, outbound, clients] = ["inbound", "outbound", "clients"].map(|side| {
            let segments = sides.get(&[side.to_owned()][..])?;
            Some(per_thousand(*segments, answered))
        });
        Some(match inbound {
            Some(inbound) => Retransmitted { by: ToldBy::Ebpf, inbound, outbound, clients },
            None => Retransmitted {
                by: ToldBy::Samples,
                inbound: per_thousand(samples.network("retransmitted")?, answered),
                outbound: None,
                clients: None,
            },
        })
    }

    fn samples<'s>(&'s self, arm: &'s str, spans: &'s [Span]) -> ArmSamples<'s> {
        ArmSamples { trials: self, arm, spans }
    }
}

fn per_thousand(segments: u64, answered: u64) -> f64 {
    segments as f64 * 1000.0 / answered as f64
}

/// Samples of an arm in its slices.
struct ArmSamples<'s> {
    trials: &'s TimedTrials<'s>,
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

impl<'s> ArmSamples<'s> {
    /// Returns the growth of a counter in readings of the slices, by the keys of its rows. A counter that fell was
    /// restarted.
    fn risen(&self, table: &'s str, index: usize, begun: Begun) -> BTreeMap<&'s [String], u64> {
        let mut all: BTreeMap<&[String], (Option<u64>, u64)> = BTreeMap::new();
        for row in self.trials.rows(table, self.arm) {
            let Some(Some(now)) = row.values.get(index).copied() else {
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
        let risen = self.risen("network", column_index("network", counter)?, Begun::Before);
        risen.get(&["proxy".to_owned()][..]).copied()
    }

    /// Returns all values of the arm's own gauge while it has load.
    fn values(&self, table: &'s str, column: &str) -> impl Iterator<Item = u64> {
        let index = column_index(table, column).unwrap_or(usize::MAX);
        self.trials
            .rows(table, self.arm)
            .filter(|row| self.spans.iter().any(|span| (span.begin..span.to).contains(&row.at_ns)))
            .filter_map(move |row| *row.values.get(index)?)
    }

    fn seconds(&self) -> f64 {
        self.spans.iter().map(|span| span.to - span.begin).sum::<u64>() as f64 / 1e9
    }
}

/// Returns the index of a column among the values of its table.
fn column_index(table: &str, column: &str) -> Option<usize> {
    let table = Counters::builtin().table(table)?;
    table.values().position(|name| name == column)
}

#[cfg(test)]
mod tests {
    use weir_model::sample::SampleRow;
    use weir_record::Sample;

    use super::*;
    use crate::fixture;

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

    fn evaluate(times: Vec<Sample>) -> (Option<AcceptFindings>, Option<Retransmitted>) {
        let (_folder, mut run) =
            fixture::run(&fixture::build_header(fixture::three_arms()), Vec::new());
        run.samples.rows = times;
        let mut slice = fixture::slice(0, 1.0);
        slice.completed_whole = 1000;
        let trial = fixture::build_trial("open", "a", 0, vec![slice]);
        let timed = TimedTrials { run: &run, trials: vec![&trial], slice_ns: 0 };
        (timed.accept("a", &SPANS), timed.retransmitted("a", &SPANS))
    }

    fn network(at_s: u64, columns: &[(&str, u64)]) -> Sample {
        let table = Counters::builtin().table("network").unwrap();
        let values: Vec<Option<u64>> = table
            .values()
            .map(|name| columns.iter().find(|column| column.0 == name).map(|column| column.1))
            .collect();
        row("network", at_s, &["proxy"], &values)
    }

    fn waits(at_s: u64, below: &str, connections: u64, wait: u64) -> Sample {
        row("accept_waits", at_s, &[below], &[connections, wait].map(Some))
    }

    fn again(at_s: u64, side: &str, segments: u64) -> Sample {
        row("retransmits", at_s, &[side], &[Some(segments)])
    }

    #[test]
    fn programs_tell_of_the_slices_alone_and_may_begin_anew() {
        let (Some(accept), Some(sent)) = evaluate(vec![
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
        ]) else {
            panic!("both are known");
        };
        assert_eq!((accept.by, accept.connections), (ToldBy::Ebpf, 100));
        assert_eq!(accept.mean_us, 10.0);
        assert_eq!(accept.below_us, Some([8, 8, 64, 64]));
        let per_thousand = (sent.inbound, sent.outbound, sent.clients);
        assert_eq!(per_thousand, (0.0, None, Some(3.0)));
    }

    #[test]
    fn without_programs_the_queue_over_the_rate_tells_if_it_was_read_often() {
        let mut samples = [(10, 0), (11, 200)]
            .map(|(at_s, accepted)| {
                let columns = [("passive_opens", accepted), ("retransmitted", accepted / 100)];
                network(at_s, &columns)
            })
            .to_vec();
        samples.extend((0..10).map(|at| {
            let values = [Some(1), Some(1 + at % 2), None, None];
            let mut sample = row("listeners", 0, &["proxy", "80"], &values);
            sample.row.at_ns = 10_000_000_000 + at * 100_000_000;
            sample
        }));
        let (Some(accept), Some(sent)) = evaluate(samples.clone()) else {
            panic!("both are known");
        };
        // 1.5 in the mean, of 200 per second: 7.5 ms each.
        assert_eq!((accept.by, accept.connections), (ToldBy::Samples, 200));
        assert!((accept.mean_us - 7500.0).abs() < 1e-6, "{accept:?}");
        assert_eq!(accept.below_us, None);
        assert_eq!((sent.by, sent.inbound), (ToldBy::Samples, 2.0));
        samples.pop();
        assert_eq!(evaluate(samples).0, None, "nine readings");
        assert_eq!(evaluate(Vec::new()), (None, None));
    }
}
