//! The figures of a past run, with its own time stamps.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use weir_lab::Measured;
use weir_model::load_report::StatusCount;
use weir_model::record::{PartRecord, Record, SliceRecord, TrialRecord, Validity};
use weir_model::sample::SampleRow;
use weir_record::Run;

use crate::families::index_of;
use crate::feed::{appear, put_measured};
use crate::openmetrics::{self, TextFormat};
use crate::samples;
use crate::store::{Labels, Store, Value};
use crate::write_messages::Change;

const NS_PER_MS: i64 = 1_000_000;

/// Series that changed at one moment of a run.
pub struct Moment {
    /// Milliseconds since 1970.
    pub(crate) at_ms: i64,
    pub(crate) changes: Vec<Change>,
}

/// Data of a run folder about a moment.
enum Entry<'r> {
    Trial(&'r TrialRecord),
    Samples(&'r str, Vec<SampleRow>),
}

/// Returns what a run measured and sampled, in order of time; `None` if the folder does not say when the run began.
/// `name` is the name of its folder.
pub fn moments(run: &Run, name: &str) -> Option<Vec<Moment>> {
    let begun: Timestamp = run.header.started_at.parse().ok()?;
    let begun_ms = begun.as_millisecond();
    let mut entries = trials(run);
    entries.extend(sampled(run));
    entries.sort_by_key(|(at_ms, _)| *at_ms);
    let mut store = Store::new();
    store.set_common(&[("run", name), ("study", &run.header.study.name)]);
    store.set("weir_run", &[("version", &run.header.weir_version)], 1.0);
    let keys: BTreeSet<_> =
        run.trials_in(|_| true).map(|trial| (&*trial.load, &*trial.arm, trial.phase)).collect();
    for (load, arm, phase) in keys {
        appear(&mut store, load, arm, phase);
    }
    let mut moments = vec![Moment { at_ms: begun_ms, changes: store.changes(false) }];
    for entries in entries.chunk_by(|(a, _), (b, _)| a == b) {
        for (_, entry) in entries {
            match entry {
                Entry::Trial(trial) => put_measured(&mut store, &measured(run, trial)),
                Entry::Samples(host, rows) => samples::put(&mut store, host, rows),
            }
        }
        // Nothing is older than the zeros with which counters begin.
        let at_ms = begun_ms + entries[0].0.max(1);
        moments.push(Moment { at_ms, changes: store.changes(false) });
    }
    Some(moments)
}

/// Returns the trials with their ends, milliseconds since the run began.
fn trials(run: &Run) -> Vec<(i64, Entry<'_>)> {
    let parts: Vec<&PartRecord> = run
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Part(part) => Some(&**part),
            _ => None,
        })
        .collect();
    // Without samples, trials of different loads are told one after the other.
    let (mut offsets, mut latest) = (BTreeMap::new(), 0);
    run.trials_in(|_| true)
        .map(|trial| {
            let part = parts.iter().find(|part| {
                let blocks = part.first_block..part.first_block.saturating_add(part.blocks);
                (part.session, part.phase, &part.load) == (trial.session, trial.phase, &trial.load)
                    && blocks.contains(&trial.block)
            });
            let offset = part.and_then(|part| part.samples_at_ns);
            let guessed = *offsets.entry((trial.session, &trial.load)).or_insert(latest);
            let end = trial.slices.last().map_or(0, |slice| slice.start_ns + slice.measured_ns);
            let at_ns = (end as i64).saturating_add(offset.unwrap_or(guessed));
            latest = latest.max(at_ns);
            (at_ns / NS_PER_MS, Entry::Trial(trial))
        })
        .collect()
}

/// Returns the samples of each moment and host.
fn sampled(run: &Run) -> Vec<(i64, Entry<'_>)> {
    let mut rows: BTreeMap<(i64, &str), Vec<SampleRow>> = BTreeMap::new();
    for sample in &run.samples.rows {
        let at_ms = sample.row.at_ns as i64 / NS_PER_MS;
        rows.entry((at_ms, &sample.host)).or_default().push(sample.row.clone());
    }
    rows.into_iter().map(|((at_ms, host), rows)| (at_ms, Entry::Samples(host, rows))).collect()
}

fn sum(trial: &TrialRecord, count: fn(&SliceRecord) -> u64) -> u64 {
    trial.slices.iter().map(count).sum()
}

/// Makes figures from the record of a trial and its histograms.
fn measured(run: &Run, trial: &TrialRecord) -> Measured {
    let mut data = weir_lab::no_data();
    let histograms = &mut data.histograms;
    // In a closed loop the service time is the response time, and not kept.
    let service =
        if trial.service_time.tag.is_empty() { &trial.response_time } else { &trial.service_time };
    for (times, summary) in [
        (&mut histograms.response, &trial.response_time),
        (&mut histograms.service, service),
        (&mut histograms.dispatch_lag, &trial.dispatch_lag),
    ] {
        for (value, count) in run.histogram(summary) {
            times.saturating_record_n(*value, *count);
        }
    }
    let seconds = sum(trial, |slice| slice.measured_ns) as f64 / 1e9;
    let mut measured = Measured::of(trial.load.clone(), trial.arm.clone(), seconds, &data);
    let interval = &mut measured.interval;
    interval.due = sum(trial, |slice| slice.due);
    interval.offered = sum(trial, |slice| slice.offered);
    interval.completed = sum(trial, |slice| slice.completed);
    interval.queued = sum(trial, |slice| slice.queued);
    interval.dropped = sum(trial, |slice| slice.dropped);
    interval.received_bytes = sum(trial, |slice| slice.received_bytes);
    interval.never_ended = trial.censored.in_flight + trial.censored.queued;
    interval.errors.clone_from(&trial.errors);
    interval.statuses = (0..)
        .zip(trial.status_classes)
        .map(|(class, count)| StatusCount { status: class * 100, count })
        .collect();
    let worst = trial.validity.iter().map(|reason| reason.validity).max();
    Measured {
        phase: trial.phase,
        blocks: 1,
        rate_intended: trial.rate_intended,
        validity: worst.unwrap_or(Validity::Valid),
        ..measured
    }
}

/// Writes moments as OpenMetrics text with time stamps, family by family.
pub fn text(moments: &[Moment]) -> String {
    type Points<'m> = Vec<(i64, &'m Value)>;
    let mut families: BTreeMap<usize, BTreeMap<&Labels, Points<'_>>> = BTreeMap::new();
    for moment in moments {
        for (family, labels, value) in &moment.changes {
            let series = index_of(&family.name).map(|index| families.entry(index).or_default());
            if let Some(series) = series {
                series.entry(labels).or_default().push((moment.at_ms, value));
            }
        }
    }
    let mut text = String::new();
    for (index, series) in families {
        let family = &crate::families::all()[index];
        openmetrics::head(&mut text, family, TextFormat::OpenMetrics);
        for (labels, points) in series {
            for (at_ms, value) in points {
                openmetrics::sample(&mut text, family, labels, value, Some(at_ms));
            }
        }
    }
    text + "# EOF\n"
}
