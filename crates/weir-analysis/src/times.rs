//! Parts of the time of requests: requests that the proxy has logged are matched, by rank, with the times that the
//! generator measured.
//!
//! A request cannot be identified in the other log. Requests whose time in the proxy has a certain rank represent those
//! whose response time has that rank; the larger the part of the time that is spent in the proxy, the more exact this
//! is.

use weir_model::record::{PartRecord, Record, TrialRecord};
use weir_model::sample::SampleRow;
use weir_record::Run;

use crate::blocks::holds;
use crate::findings::{Findings, TimePart, TimeRow, WhereTimeGoes};

mod kernel;

/// Tables of samples that exist if these times were recorded.
const TABLES: [&str; 3] = ["requests", "accept_waits", "retransmits"];

/// Quantiles that have rows, besides the mean.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Distance to either side of a quantile within which requests are averaged, as a part of the share beyond it.
const AROUND: f64 = 0.2;

/// Minimum number of requests around a quantile for its parts to be given.
const LEAST: u64 = 5;

/// Minimum length of a quantile whose parts can be told apart, in units of the log's clock.
const UNITS: f64 = 3.0;

/// Parts that are columns of `requests`, in their order.
const PARTS: [TimePart; 5] =
    [TimePart::Client, TimePart::Queue, TimePart::Connect, TimePart::Origin, TimePart::Answer];

/// A request in the proxy's log; times are microseconds.
struct Request {
    total: u64,
    parts: [Option<u64>; 5],
    weight: u64,
}

/// A slice in nanoseconds since the run began: its beginning, that of its measured part, and its end.
#[derive(Clone, Copy)]
struct Span {
    begin: u64,
    from: u64,
    to: u64,
}

/// Returns the findings for each load and arm with any samples.
pub(crate) fn find(run: &Run, findings: &Findings) -> Vec<WhereTimeGoes> {
    let mut samples = run.samples.rows.iter();
    if !samples.any(|sample| TABLES.contains(&&*sample.row.table)) {
        return Vec::new();
    }
    let study = &run.header.study;
    let mut all = Vec::new();
    for load in &study.loads {
        let slice_ns = findings
            .loads
            .iter()
            .find(|found| found.load == load.name)
            .map_or(0, |found| found.slice_ns);
        for arm in &study.arms {
            let capacity = findings
                .capacity
                .as_ref()
                .and_then(|all| all.arms.iter().find(|capacity| capacity.answer.arm == arm.name));
            let trials = run.trials_of(&load.name, &arm.name);
            let (trials, rate) = match capacity {
                Some(capacity) => carried(trials, capacity.answer.low),
                None => (trials, None),
            };
            let timed = TimedTrials { run, trials, slice_ns };
            all.extend(timed.find().map(|found| WhereTimeGoes {
                load: load.name.clone(),
                arm: arm.name.clone(),
                rate,
                ..found
            }));
        }
    }
    all
}

/// Returns the trials of a search at the highest rate that is known to be carried, and that rate.
fn carried(trials: Vec<&TrialRecord>, most: f64) -> (Vec<&TrialRecord>, Option<f64>) {
    let rates = trials.iter().filter_map(|trial| trial.rate_intended);
    let Some(rate) = rates.filter(|rate| *rate <= most * 1.001).max_by(f64::total_cmp) else {
        return (Vec::new(), None);
    };
    (
        trials
            .into_iter()
            .filter(|trial| trial.rate_intended.is_some_and(|at| at > 0.99 * rate && at <= rate))
            .collect(),
        Some(rate),
    )
}

/// Trials of an arm under a load whose times are broken down.
struct TimedTrials<'r> {
    run: &'r Run,
    trials: Vec<&'r TrialRecord>,
    /// Length of slices that do not record their own, nanoseconds.
    slice_ns: u64,
}

impl TimedTrials<'_> {
    fn find(&self) -> Option<WhereTimeGoes> {
        let arm = &self.trials.first()?.arm;
        let spans: Vec<Span> = self.trials.iter().flat_map(|trial| self.spans(trial)).collect();
        let mut requests: Vec<Request> =
            self.rows("requests", arm).filter_map(|row| request(row, &spans)).collect();
        requests.sort_by_key(|request| request.total);
        let stand_for: u64 = requests.iter().map(|request| request.weight).sum();
        let in_milliseconds = requests.iter().all(|request| request.total % 1000 == 0);
        let findings = WhereTimeGoes {
            requests: (requests.len() as u64, stand_for / 1000),
            resolution_us: if in_milliseconds { 1000 } else { 1 },
            knows_origin: requests.iter().any(|request| request.parts[3].is_some()),
            accept: self.accept(arm, &spans),
            retransmitted: self.retransmitted(arm, &spans),
            ..WhereTimeGoes::default()
        };
        let rows = self.quantiles(&requests, &findings);
        (!rows.is_empty() || findings.accept.is_some())
            .then_some(WhereTimeGoes { rows, ..findings })
    }

    fn spans(&self, trial: &TrialRecord) -> Vec<Span> {
        let mut parts = self
            .run
            .records
            .iter()
            .filter_map(|record| match record {
                Record::Part(part) => Some(&**part),
                _ => None,
            })
            .filter(|part: &&PartRecord| {
                part.load == trial.load && part.phase == trial.phase && holds(part, trial)
            });
        let Some(at) = parts.next().and_then(|part| part.samples_at_ns) else {
            return Vec::new();
        };
        let spans = trial.slices.iter().map(|slice| {
            let length = match slice.whole_ns {
                0 => self.slice_ns.max(slice.measured_ns),
                whole_ns => whole_ns,
            };
            let end = slice.start_ns.saturating_add_signed(at) + length;
            Span { begin: end - length, from: end - slice.measured_ns.min(length), to: end }
        });
        spans.collect()
    }

    fn rows<'s>(&'s self, table: &'s str, arm: &'s str) -> impl Iterator<Item = &'s SampleRow> {
        self.run
            .samples
            .rows
            .iter()
            .map(|sample| &sample.row)
            .filter(move |row| row.table == table && row.arm == arm)
    }

    /// Returns the rows for the mean and the quantiles.
    fn quantiles(&self, requests: &[Request], found: &WhereTimeGoes) -> Vec<TimeRow> {
        if requests.is_empty() {
            return Vec::new();
        }
        let times = self.response_times();
        let answered: u64 = times.iter().map(|(_, count)| count).sum();
        if answered == 0 {
            return Vec::new();
        }
        let sum_ns: f64 = times.iter().map(|(ns, count)| *ns as f64 * *count as f64).sum();
        let mean = sum_ns / answered as f64 / 1000.0;
        let all = TimeRow {
            quantile: None,
            seen_us: mean,
            requests: requests.len() as u64,
            parts: parts(requests, mean, found.knows_origin),
        };
        let resolution = found.resolution_us as f64;
        let rows = QUANTILES.map(|q| {
            let seen_us = quantile_of(&times, (q * answered as f64).ceil() as u64) as f64 / 1000.0;
            let nearby = around(requests, q);
            let can_be_told = nearby.len() as u64 >= LEAST && seen_us >= UNITS * resolution;
            TimeRow {
                quantile: Some(q),
                seen_us,
                requests: nearby.len() as u64,
                parts: if can_be_told {
                    parts(nearby, seen_us, found.knows_origin)
                } else {
                    Vec::new()
                },
            }
        });
        std::iter::once(all).chain(rows).collect()
    }

    /// Returns the times that the generator measured: (nanoseconds, count), ascending.
    fn response_times(&self) -> Vec<(u64, u64)> {
        let is_open = self.trials.iter().any(|trial| trial.response_time.count > 0);
        let histograms = self.trials.iter().map(|trial| {
            if is_open {
                self.run.histogram(&trial.response_time)
            } else {
                self.run.histogram(&trial.service_time)
            }
        });
        let mut all: Vec<(u64, u64)> = histograms.flatten().copied().collect();
        all.sort_unstable();
        all
    }
}

/// Reads a row of `requests`; `None` unless the request began in the measured part of one of the spans.
fn request(row: &SampleRow, spans: &[Span]) -> Option<Request> {
    let [Some(total), client, queue, connect, origin, answer, Some(weight)] = row.values[..] else {
        return None;
    };
    let begun = row.at_ns.saturating_sub(total.saturating_mul(1000));
    let is_in = spans.iter().any(|span| (span.from..span.to).contains(&begun));
    is_in.then_some(Request { total, parts: [client, queue, connect, origin, answer], weight })
}

/// Returns the value at a rank, counted from 1.
fn quantile_of(ascending: &[(u64, u64)], rank: u64) -> u64 {
    let mut passed = 0;
    ascending
        .iter()
        .find(|(_, count)| {
            passed += count;
            passed >= rank
        })
        .or(ascending.last())
        .map_or(0, |(value, _)| *value)
}

/// Returns the requests around a quantile, and all others that took as long as one of them.
fn around(ascending: &[Request], q: f64) -> &[Request] {
    let all: u64 = ascending.iter().map(|request| request.weight).sum();
    let reach = (1.0 - q) * AROUND;
    let [low, high] = [q - reach, q + reach].map(|q| (q * all as f64) as u64);
    let mut passed = 0;
    let mut ends = (ascending.len(), 0);
    for (index, request) in ascending.iter().enumerate() {
        // It has the ranks from `passed` to `passed + weight`.
        if passed + request.weight > low && passed <= high {
            ends = (ends.0.min(index), index + 1);
        }
        passed += request.weight;
    }
    let (mut from, mut to) = ends;
    if from >= to {
        return &[];
    }
    while from > 0 && ascending[from - 1].total == ascending[from].total {
        from -= 1;
    }
    while to < ascending.len() && ascending[to].total == ascending[to - 1].total {
        to += 1;
    }
    &ascending[from..to]
}

/// Returns the mean of each part that any of the requests has, and of the time outside of the proxy and the rest in it.
fn parts(requests: &[Request], seen: f64, knows_origin: bool) -> Vec<(TimePart, f64)> {
    let total = mean(requests, |request| Some(request.total)).unwrap_or(0.0);
    let measured: Vec<(TimePart, f64)> = PARTS
        .iter()
        .enumerate()
        .filter_map(|(index, part)| Some((*part, mean(requests, |request| request.parts[index])?)))
        .collect();
    let proxy_part = if knows_origin { TimePart::Proxy } else { TimePart::ProxyAndOrigin };
    let remaining = total - measured.iter().map(|(_, us)| us).sum::<f64>();
    let outside = (TimePart::Outside, (seen - total).max(0.0));
    std::iter::once(outside)
        .chain(measured)
        // The proxy's clock is read for each of them, and rounded.
        .chain([(proxy_part, remaining.max(0.0))])
        .collect()
}

/// Returns the mean of a time by weight; a request that does not have it took no time. `None` if no request has it.
fn mean(requests: &[Request], time_us: impl Fn(&Request) -> Option<u64>) -> Option<f64> {
    let weight: u64 = requests.iter().map(|request| request.weight).sum();
    let sum: f64 = requests
        .iter()
        .filter_map(|request| Some(time_us(request)? as f64 * request.weight as f64))
        .reduce(|a, b| a + b)?;
    Some(sum / weight as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(total: u64, origin: u64, weight: u64) -> Request {
        Request { total, parts: [None, None, Some(0), Some(origin), None], weight }
    }

    #[test]
    fn requests_around_a_quantile_are_those_of_its_rank_with_all_that_took_as_long() {
        let all: Vec<Request> = (0..1000).map(|us| request(us, 0, 1000)).collect();
        for (q, first, last) in [(0.5, 400, 600), (0.9, 880, 920), (0.99, 988, 992)] {
            let nearby = around(&all, q);
            let ends = (nearby[0].total, nearby[nearby.len() - 1].total);
            assert!(ends.0.abs_diff(first) <= 1 && ends.1.abs_diff(last) <= 1, "{q}: {ends:?}");
        }
        // Requests that stand for others are as wide as they are many.
        let all = [request(1, 0, 998_000), request(5, 0, 1000), request(9, 0, 1000)];
        assert_eq!(around(&all, 0.5).len(), 1);
        assert_eq!(around(&all, 0.999)[0].total, 5);
        let ties: Vec<Request> = (0..1000).map(|_| request(1000, 0, 1000)).collect();
        assert_eq!(around(&ties, 0.99).len(), 1000);
        assert!(around(&[], 0.5).is_empty());
    }

    #[test]
    fn parts_are_means_by_weight_and_add_up_to_what_was_seen() {
        let requests = [request(100, 60, 3000), request(200, 160, 1000)];
        let means = parts(&requests, 150.0, true);
        let expected = [
            (TimePart::Outside, 25.0),
            (TimePart::Connect, 0.0),
            (TimePart::Origin, 85.0),
            (TimePart::Proxy, 40.0),
        ];
        assert_eq!(means, expected);
        let sum: f64 = means.iter().map(|(_, us)| us).sum();
        assert_eq!(sum, 150.0);
        // Rounded times may be more than the whole; no part is below zero.
        let rounded = parts(&[request(1000, 2000, 1000)], 900.0, true);
        assert!(rounded.iter().all(|(_, us)| *us >= 0.0), "{rounded:?}");
        let unknown = [Request { total: 7, parts: [None; 5], weight: 1000 }];
        assert_eq!(parts(&unknown, 9.0, false)[1], (TimePart::ProxyAndOrigin, 7.0));
    }
}
