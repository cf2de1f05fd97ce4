//! Capacity of each arm within the study's objective, from the search's records and its trials.
//!
//! The search's own records give the intervals ([`CapacityRecord`]). Everything else is read from the trials: the
//! response times against the rate (`curve`), what grew with the load (`growth`), and how the arms compare (`ratios`).

use weir_model::record::{
    BracketRecord, CapacityAnswer, CapacityEnd, CapacityRecord, ObservedRecord, Record,
};
use weir_model::study::Study;
use weir_record::Run;

use crate::blocks::LoadData;
use crate::evidence::Evidence;
use crate::findings::{CountedReason, LimiterFindings};
use crate::headline;
use crate::validity::{Use, judge};

pub(crate) mod curve;
mod growth;
mod ratios;

pub use crate::findings::{
    BracketPoint, Capacity, CapacityFindings, Counted, CurvePoint, Growth, RanOut, Ratio,
    RatioReason, UNIT,
};

pub use curve::allowed;

/// Finds the capacities of a run; `None` if its study does not ask for them.
pub(crate) fn find(run: &Run) -> Option<CapacityFindings> {
    let study = &run.header.study;
    if study.capacity.is_empty() {
        return None;
    }
    let spec = study.loads.first()?;
    let data = LoadData::gather(run, spec);
    let arms: Vec<Capacity> = (0..study.arms.len()).map(|arm| of_arm(run, &data, arm)).collect();
    let ratios = ratios::of(study, &arms);
    let (validity, reasons) = headline::search(&data);
    Some(CapacityFindings { arms, ratios, validity, reasons, left_out: headline::left_out(&data) })
}

/// Adds reasons for doubt if others used the CPUs of servers that weir did not start. Only samples show that, not the
/// counters of slices.
pub(crate) fn doubt_crowded(
    found: &mut CapacityFindings,
    limiters: &[LimiterFindings],
    study: &Study,
) {
    for arm in study.arms.iter().filter(|arm| !study.proxy_of(arm).is_started()) {
        let Some(limiter) = limiters.iter().find(|limiter| limiter.arm == arm.name) else {
            continue;
        };
        let evidence =
            Evidence { crowd: limiter.evidence.value("cpu_others"), ..Evidence::default() };
        let (of, trials) = limiter.judged;
        for judged in judge(Use::Study, &evidence) {
            found.validity = found.validity.max(judged.reason.validity);
            found.reasons.push(CountedReason {
                reason: judged.reason,
                arms: vec![arm.name.clone()],
                trials,
                of,
            });
        }
    }
}

fn of_arm(run: &Run, data: &LoadData<'_>, arm: usize) -> Capacity {
    let study = data.study;
    let name = &study.arms[arm].name;
    // A resumed run may write a second one; the last one counts.
    let record = run.records.iter().rev().find_map(|record| match record {
        Record::Capacity(found) if found.answer.arm == *name && found.answer.load == data.load => {
            Some(found)
        }
        _ => None,
    });
    let steps: Vec<&BracketRecord> = run
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Bracket(step) if step.arm == *name && step.load == data.load => Some(step),
            _ => None,
        })
        .collect();
    let mut capacity = match record {
        Some(record) => ended(record),
        None => {
            let objective = CapacityAnswer {
                arm: name.clone(),
                load: data.load.to_owned(),
                limits: study.capacity.clone(),
                confidence: study.objective.confidence,
                ..CapacityAnswer::default()
            };
            so_far(objective, &steps)
        }
    };
    let bracket = steps.iter().map(|step| BracketPoint {
        stage: step.stage,
        seconds: step.seconds,
        between: step.between,
    });
    capacity.bracket = bracket.collect();
    let trials = curve::Trials::of((run, data, arm), &steps, &capacity);
    capacity.curve = trials.curve();
    capacity.holds = trials.holds();
    capacity.trials = trials.singly();
    if record.is_none() {
        let dwells = trials.dwells();
        capacity.answer.broke = lowest_broken(&capacity, &dwells);
        capacity.answer.carried = highest_carried(capacity.answer.broke, &dwells);
    }
    capacity.knee = curve::knee(&capacity.curve);
    if capacity.answer.held_s == 0.0 {
        capacity.answer.held_s = curve::held(&capacity);
    }
    capacity.grows = growth::of(data, arm, &trials, &capacity);
    capacity.ran_out = growth::ran_out(&capacity);
    capacity
}

/// Returns the lowest rate above the highest one that a hold held, at which a trial of any length broke.
fn lowest_broken(found: &Capacity, dwells: &[CurvePoint]) -> Option<ObservedRecord> {
    dwells
        .iter()
        .chain(&found.holds)
        .filter(|trial| !trial.holds && trial.rate > found.answer.verified)
        .min_by(|a, b| a.rate.total_cmp(&b.rate))
        .map(observed)
}

/// Returns the highest rate that a short trial carried, below all rates that broke.
fn highest_carried(broke: Option<ObservedRecord>, dwells: &[CurvePoint]) -> Option<ObservedRecord> {
    let broken_rate = broke.map_or(f64::INFINITY, |broke| broke.rate);
    dwells
        .iter()
        .filter(|trial| trial.holds && trial.rate < broken_rate)
        .max_by(|a, b| a.rate.total_cmp(&b.rate))
        .map(observed)
}

fn observed(trial: &CurvePoint) -> ObservedRecord {
    ObservedRecord { rate: trial.rate, seconds: trial.seconds }
}

/// Makes findings of the search's last record, without those of its trials.
pub fn ended(record: &CapacityRecord) -> Capacity {
    let answer = record.answer.clone();
    let decides = answer.decides.min(answer.limits.len().saturating_sub(1));
    Capacity {
        claimed: answer.verified > 0.0 && is_narrow(answer.low, answer.high),
        ..without_trials(CapacityAnswer { decides, ..answer }, Some(record.end))
    }
}

/// Returns true if an interval is narrow enough to be an answer: at most a factor of ten.
fn is_narrow(low: f64, high: f64) -> bool {
    high >= low && high <= 10.0 * low
}

/// Makes findings of a search that has not ended; `objective` has arm, load, limits and confidence.
fn so_far(objective: CapacityAnswer, steps: &[&BracketRecord]) -> Capacity {
    let between = steps.iter().rev().find_map(|step| step.between);
    let (low, high) = between.unwrap_or_default();
    let seconds = steps.last().map_or(0.0, |step| step.seconds);
    let held = steps.iter().rev().find_map(|step| step.held);
    let answer = CapacityAnswer {
        low,
        high,
        verified: held.map_or(0.0, |held| held.rate),
        held_s: held.map_or(0.0, |held| held.seconds),
        seconds: (seconds, seconds),
        ..objective
    };
    without_trials(answer, None)
}

/// Makes findings that claim nothing, without those of the trials.
fn without_trials(answer: CapacityAnswer, end: Option<CapacityEnd>) -> Capacity {
    Capacity {
        claimed: false,
        unit: UNIT.to_owned(),
        answer,
        end,
        curve: Vec::new(),
        holds: Vec::new(),
        trials: Vec::new(),
        knee: None,
        grows: Vec::new(),
        ran_out: None,
        bracket: Vec::new(),
    }
}
