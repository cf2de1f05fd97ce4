//! Synthetic runs. The real writer writes them into a folder and the real reader reads them, so that the analysis gets
//! exactly what a measured run would give it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use tempfile::TempDir;
use weir_limits::{Absent, Answer, Evidence, Judgement, Unknown};
use weir_model::fixture;
use weir_model::load_report::LoadReport;
use weir_model::record::*;
use weir_model::study::*;
use weir_record::{HistogramKind, Run, RunWriter, empty_histogram, summarize, tag};
use weir_stats::{SplitMix64, block_order};

use crate::findings::{LimiterFindings, Stretch};

/// Length of a slice, nanoseconds; `MEASURED_NS` is its measured part.
pub const SLICE_NS: u64 = 100_000_000;
pub const MEASURED_NS: u64 = 80_000_000;

pub fn arm(name: &str, role: ArmRole, against: usize) -> Arm {
    Arm { against, ..fixture::arm(name, role, &[]) }
}

/// A header with a closed load `closed` and an open one `open` at 10,000 per second.
pub fn build_header(arms: Vec<Arm>) -> RunHeader {
    fixture::header(Study {
        loads: vec![
            fixture::load("closed", StudyArrivals::Closed),
            fixture::load("open", StudyArrivals::Constant(10_000.0)),
        ],
        ..fixture::study(arms)
    })
}

/// Baseline, baseline again, one change.
pub fn three_arms() -> Vec<Arm> {
    vec![
        arm("stock", ArmRole::Baseline, 0),
        arm("stock-again", ArmRole::SameAsBaseline, 0),
        arm("keepalive", ArmRole::Change, 0),
    ]
}

/// A slice in which the proxy was busy all the time and answered `rate` per second.
pub fn slice(index: u64, rate: f64) -> SliceRecord {
    let completed = (rate * MEASURED_NS as f64 / 1e9).round() as u64;
    let completed_whole = (rate * SLICE_NS as f64 / 1e9).round() as u64;
    SliceRecord {
        index,
        start_ns: index * SLICE_NS,
        measured_ns: MEASURED_NS,
        offered: completed,
        completed,
        completed_whole,
        proxy_cpu_ns: SLICE_NS,
        generator_cpu_ns: SLICE_NS / 2,
        origin_cpu_ns: SLICE_NS / 4,
        origin_requests: completed_whole,
        origin_connects: completed_whole,
        ..SliceRecord::default()
    }
}

pub fn build_trial(load: &str, arm: &str, block: u32, slices: Vec<SliceRecord>) -> TrialRecord {
    let completed = slices.iter().map(|slice| slice.completed_whole).sum();
    TrialRecord {
        slices,
        status_classes: [0, 0, completed, 0, 0, 0],
        response_time: QuantileSummary { p50: 200_000, p99: 400_000, ..QuantileSummary::default() },
        service_time: QuantileSummary { p50: 200_000, ..QuantileSummary::default() },
        first_byte: QuantileSummary::default(),
        dispatch_lag: QuantileSummary { p99: 5_000, ..QuantileSummary::default() },
        ..fixture::trial(load, arm, block)
    }
}

/// Returns a random number that is roughly standard normal: the sum of twelve uniform numbers less six.
pub fn normal(rng: &mut SplitMix64) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// Arguments of a model of the world, which returns the rate of `arm` in a slice.
pub struct Moment<'a> {
    pub arm: usize,
    pub block: u32,
    /// Index of the slice in the trial.
    pub index: u64,
    pub rng: &'a mut SplitMix64,
}

/// Makes the trials of `blocks` blocks under `load`, in the lab's order of slices.
pub fn build_trials(
    header: &RunHeader,
    load: &str,
    blocks: u32,
    mut rate_of: impl FnMut(Moment<'_>) -> f64,
) -> Vec<TrialRecord> {
    let mut rng = SplitMix64::new(11);
    let arms = &header.study.arms;
    let mut index = 0;
    let mut all = Vec::new();
    for block in 0..blocks {
        let mut slices = vec![Vec::new(); arms.len()];
        for arm in block_order(arms.len(), &mut rng) {
            let rng = &mut rng;
            slices[arm].push(slice(index, rate_of(Moment { arm, block, index, rng })));
            index += 1;
        }
        let measured = arms.iter().zip(slices);
        all.extend(measured.map(|(arm, slices)| build_trial(load, &arm.name, block, slices)));
    }
    all
}

/// Writes a run folder with these trials, ended as planned.
pub fn run(header: &RunHeader, trials: Vec<TrialRecord>) -> (TempDir, Run) {
    run_with_times(header, trials, |_, _| Vec::new())
}

/// Writes a run folder with these trials, each with response times of its own (nanoseconds) in the histogram log.
pub fn run_with_times(
    header: &RunHeader,
    trials: Vec<TrialRecord>,
    times: impl FnMut(&TrialRecord, &mut SplitMix64) -> Vec<u64>,
) -> (TempDir, Run) {
    run_with_records(header, trials, times, &[])
}

/// Divides the blocks of each load among as many instances of the proxies as a study has by default.
fn parts(trials: &[TrialRecord]) -> Vec<Record> {
    let mut blocks: BTreeMap<&str, u32> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.phase == Phase::default()) {
        let count = blocks.entry(&trial.load).or_default();
        *count = (*count).max(trial.block + 1);
    }
    let instances = BlockSpec::default().instances;
    let parts = blocks.into_iter().flat_map(|(load, blocks)| {
        (0..instances).map(move |instance| {
            let [begin, end] = [instance, instance + 1].map(|edge| edge * blocks / instances);
            part(load, begin..end)
        })
    });
    parts.collect()
}

pub fn part(load: &str, blocks: Range<u32>) -> Record {
    Record::Part(Box::new(PartRecord {
        load: load.to_owned(),
        first_block: blocks.start,
        blocks: blocks.end - blocks.start,
        ..PartRecord::default()
    }))
}

/// Writes a run folder with records of other kinds behind the trials. Unless a continuous trial is among them, the
/// default number is added.
pub fn run_with_records(
    header: &RunHeader,
    trials: Vec<TrialRecord>,
    mut times_of: impl FnMut(&TrialRecord, &mut SplitMix64) -> Vec<u64>,
    others: &[Record],
) -> (TempDir, Run) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut is_part = others.iter().map(|record| matches!(record, Record::Part(_)));
    let parts = if is_part.any(|is_part| is_part) { Vec::new() } else { parts(&trials) };
    let mut writer = RunWriter::create(folder.path(), header, "").expect("a run folder");
    let mut rng = SplitMix64::new(12);
    for mut trial in trials {
        let times = times_of(&trial, &mut rng);
        if !times.is_empty() {
            let mut histogram = empty_histogram();
            times.into_iter().for_each(|ns| histogram.saturating_record(ns));
            let label = tag(&trial.load, &trial.arm, trial.block, HistogramKind::ResponseTime);
            let (start, length) = (Duration::ZERO, Duration::from_millis(200));
            writer.append_histogram(&label, start, length, &histogram).expect("a histogram log");
            trial.response_time = summarize(&label, &histogram, 0);
        }
        writer.append(&Record::Trial(Box::new(trial))).expect("a record is written");
    }
    for record in parts.iter().chain(others) {
        writer.append(record).expect("a record is written");
    }
    let end = EndRecord::new("", Outcome::Complete);
    writer.append(&Record::End(end)).expect("a record is written");
    let run = Run::read(folder.path()).expect("a run");
    (folder, run)
}

/// A load test without reasons for doubt: 10,000/s on 100 connections for 10 s by one thread.
pub fn load_report() -> LoadReport {
    serde_json::from_str(include_str!("fixture/load_report.json")).expect("a report")
}

/// An arm with a load of 4,200/s that it did not carry, for a reason that is not known.
pub fn limiter(arm: &str) -> LimiterFindings {
    LimiterFindings {
        load: "open".to_owned(),
        arm: arm.to_owned(),
        pods: None,
        stretch: Stretch {
            from_s: 0.0,
            until_s: 5.0,
            rate: Some(4_200.0),
            saturated: true,
            stage: None,
        },
        low: None,
        judged: (1, 1),
        confirmations: Vec::new(),
        judgement: Judgement {
            answer: Answer::DoNotKnow,
            findings: Vec::new(),
            ruled_out: Vec::new(),
            unknown: Vec::new(),
            seen: Vec::new(),
        },
        evidence: Evidence::default(),
        series: Vec::new(),
        workers: Vec::new(),
    }
}

/// The arm `shop` with limiters that could not be judged, each because it lacks a quantity: (limiter, quantity, reason
/// of the sampler).
pub fn unjudged(lacking: &[(&str, &str, Option<&str>)]) -> LimiterFindings {
    let mut findings = limiter("shop");
    for (limiter, quantity, why) in lacking {
        let (limiter, quantity) = ((*limiter).to_owned(), (*quantity).to_owned());
        findings.judgement.unknown.push(Unknown { limiter, missing: vec![quantity.clone()] });
        let absent = match why {
            Some(why) => Absent::Missing { column: "processes".to_owned(), why: (*why).to_owned() },
            None => Absent::NotSampled("proxy".to_owned()),
        };
        findings.evidence.absent.insert(quantity, absent);
    }
    findings
}
