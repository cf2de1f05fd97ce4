//! Times in which one arm alone had the load at one rate, long enough for samples.

use weir_model::record::{
    BracketRecord, PartRecord, Phase, Record, SearchStage, SliceRecord, TrialRecord,
};
use weir_model::study::{LoadSpec, Study};
use weir_record::Run;

use super::LAST_NS;
use crate::blocks::holds;
use crate::capacity::curve;
use crate::findings::Stretch;
use crate::outcomes::{Answers, rate, sum};

/// Minimum length of a time: two samples a second apart are certain to lie within it.
const LEAST_NS: u64 = 2_200_000_000;
/// Relative difference below which rates are the same.
const SAME_RATE: f64 = 0.01;
/// Share of the due requests below which a load counts as not carried.
pub(super) const CARRIED: f64 = 0.99;

/// A time in which one arm alone had the load, on the clock of the samples.
pub(super) struct Span<'r> {
    pub(super) load: &'r str,
    pub(super) part: &'r PartRecord,
    /// Trials in order of time.
    pub(super) trials: Vec<&'r TrialRecord>,
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    /// Intended requests per second; `None` in a closed loop.
    pub(super) rate: Option<f64>,
    /// Requests per second that were answered as expected.
    pub(super) completed: Option<f64>,
    pub(super) stage: Option<SearchStage>,
    pub(super) saturated: bool,
}

impl Span<'_> {
    pub(super) fn length_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TrialRecord> + Clone {
        self.trials.iter().copied()
    }

    pub(super) fn to_stretch(&self) -> Stretch {
        Stretch {
            from_s: self.from_ns as f64 / 1e9,
            until_s: self.until_ns as f64 / 1e9,
            rate: self.rate,
            saturated: self.saturated,
            stage: self.stage,
        }
    }
}

/// Finds the times of an arm under a load, in order of time.
pub(super) fn of<'r>(run: &'r Run, load: &'r LoadSpec, arm: &str) -> Vec<Span<'r>> {
    let steps = run.records.iter().filter_map(|record| match record {
        Record::Bracket(step) if step.arm == arm && step.load == load.name => Some(step),
        _ => None,
    });
    let steps: Vec<&BracketRecord> = steps.collect();
    let mut spans = Vec::new();
    for part in run.parts_in(&load.name, |_| true) {
        let Some(at_ns) = part.samples_at_ns else {
            continue;
        };
        let trials = run.trials_in(|_| true).filter(|trial| {
            trial.load == load.name
                && trial.arm == arm
                && trial.phase == part.phase
                && holds(part, trial)
        });
        let mut pieces: Vec<Piece<'r>> =
            trials.filter_map(|trial| Piece::of(trial, &steps)).collect();
        pieces.sort_by_key(|piece| piece.first);
        let same = pieces.chunk_by(|before, after| before.goes_on_in(after));
        spans.extend(same.map(|pieces| span(run, load, (part, at_ns), pieces)));
    }
    spans.retain(|span| span.length_ns() >= LEAST_NS);
    spans
}

/// Returns true if an open load was answered as expected.
pub(super) fn is_carried(trials: &[&TrialRecord], study: &Study) -> bool {
    let trials = trials.iter().copied();
    let due = sum(trials.clone(), |slice| slice.due);
    let done = sum(trials.clone(), |slice| slice.completed);
    done >= CARRIED * due && Answers::of(trials, study).bad_share() <= 1.0 - CARRIED
}

/// Combines blocks of an arm that takes turns with others into one time, to which no samples belong; `None` without
/// blocks.
pub(super) fn turns<'r>(
    run: &'r Run,
    load: &'r LoadSpec,
    trials: &[&'r TrialRecord],
) -> Option<Span<'r>> {
    let first = *trials.first()?;
    let study = &run.header.study;
    Some(Span {
        load: &load.name,
        part: run.parts_in(&load.name, Phase::counts).find(|part| holds(part, first))?,
        trials: trials.to_vec(),
        from_ns: 0,
        until_ns: 0,
        rate: curve::rate(first),
        completed: Some(rate(trials.iter().copied(), study)),
        stage: None,
        saturated: !is_carried(trials, study),
    })
}

/// A trial whose slices follow each other directly.
struct Piece<'r> {
    trial: &'r TrialRecord,
    /// Index of its first slice among the slices of all arms; `last` is that of its last one.
    first: u64,
    last: u64,
    rate: Option<f64>,
    stage: Option<SearchStage>,
    step: Option<usize>,
}

impl<'r> Piece<'r> {
    fn of(trial: &'r TrialRecord, steps: &[&BracketRecord]) -> Option<Piece<'r>> {
        let (first, last) = (trial.slices.first()?.index, trial.slices.last()?.index);
        if last - first + 1 != trial.slices.len() as u64 {
            return None;
        }
        let step = steps.iter().position(|step| {
            (step.first_block..step.first_block.saturating_add(step.blocks)).contains(&trial.block)
        });
        let is_open = sum([trial], |slice| slice.due) > 0.0;
        Some(Piece {
            trial,
            first,
            last,
            rate: curve::rate(trial).filter(|_| is_open),
            stage: step.map(|step| steps[step].stage),
            step,
        })
    }

    fn goes_on_in(&self, next: &Piece<'_>) -> bool {
        let same_rate = match (self.rate, next.rate) {
            (Some(one), Some(other)) => (one / other - 1.0).abs() < SAME_RATE,
            (one, other) => one == other,
        };
        same_rate && self.last + 1 == next.first && self.step == next.step
    }
}

fn span<'r>(
    run: &'r Run,
    load: &'r LoadSpec,
    (part, at_ns): (&'r PartRecord, i64),
    pieces: &[Piece<'r>],
) -> Span<'r> {
    let study = &run.header.study;
    let first = &pieces[0];
    let mut trials: Vec<&TrialRecord> = pieces.iter().map(|piece| piece.trial).collect();
    let saturated = match first.rate {
        None => true,
        Some(_) if !study.capacity.is_empty() => curve::breaks(&trials, &study.capacity),
        Some(_) => !is_carried(&trials, study),
    };
    let slices: Vec<&SliceRecord> = pieces.iter().flat_map(|piece| &piece.trial.slices).collect();
    let mut from_ns = slices.first().map_or(0, |slice| begin_ns(slice, at_ns));
    let until_ns = slices
        .last()
        .map_or(0, |slice| begin_ns(slice, at_ns) + slice.measured_ns.max(slice.whole_ns));
    // A limit that comes with time shows at the end.
    if saturated && until_ns.saturating_sub(from_ns) > LAST_NS && trials.len() > 1 {
        from_ns = until_ns - LAST_NS;
        trials.retain(|trial| trial.slices.iter().any(|slice| begin_ns(slice, at_ns) >= from_ns));
        from_ns = trials
            .first()
            .and_then(|trial| trial.slices.first())
            .map_or(from_ns, |slice| begin_ns(slice, at_ns));
    }
    Span {
        load: &load.name,
        part,
        completed: Some(rate(trials.iter().copied(), study)).filter(|rate| rate.is_finite()),
        trials,
        from_ns,
        until_ns,
        rate: first.rate,
        stage: first.stage,
        saturated,
    }
}

/// Returns the start of a slice on the clock of the samples.
fn begin_ns(slice: &SliceRecord, at_ns: i64) -> u64 {
    (slice.start_ns as i64).saturating_add(at_ns).max(0) as u64
}
