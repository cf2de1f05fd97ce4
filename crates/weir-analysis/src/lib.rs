//! Validity, contrasts and verdicts: pure functions of records.
//!
//! The order of the work is the guard against wishful thinking. These files lead from a block to a verdict:
//!
//! 1. `blocks` puts the trials into blocks, with the evidence about each.
//! 2. [`mod@validity`] judges every trial by what happened around it (stolen CPU time, a generator
//!    that lagged), never by its outcome, which `outcomes` sums up. From here on INVALID trials are out.
//!    The same rules apply to `weir load`, whose results `load` turns into the same evidence.
//! 3. `replicates` turns blocks into log ratios and determines the instance of each; `compare` gets
//!    estimate, interval, p and verdict from `weir-stats`, and `equal` withdraws effects that two equal
//!    arms show as well.
//!
//! `idle` withdraws equivalence that is due to nobody being busy. `inert` and `effects` find arms whose settings were
//! not in force, by the settings read back and by counters. `alone` checks if the winner's ratio holds when arms run
//! one at a time, if requested. `looks` determines what is decided before the end, if a study is measured until
//! everything is decided, and combines the decisions of its looks. `matrix` corrects p over the loads of a matrix and
//! pools each arm over them. `ranking` puts arms in order by their pairs, if the study compares all pairs. `limits`
//! judges each arm by an absolute limit, if there is one. `figures` computes the figures of each arm. `times` breaks down the
//! time of requests, from samples; no verdict rests on it. `scaling` fits curves to arms that differ in one number.
//! `headline` states the basis of the answer and what it leaves out, and `published` compares published effects. The
//! sentences about all of this are made by weir-sentences.
//!
//! [`mod@surroundings`] finds, before the first trial, properties of the network and the hosts that would spoil it.
//!
//! A study that asks for capacities uses none of this except the rules of `validity`: its trials are those of a search,
//! and [`mod@capacity`] evaluates it.

pub mod alone;
mod blocks;
pub mod capacity;
mod compare;
mod connections;
mod counters;
mod effects;
mod equal;
mod evidence;
mod figures;
pub mod findings;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod frontier;
mod headline;
mod hold_ups;
mod idle;
mod inert;
pub mod limiter;
mod limits;
mod load;
mod looks;
mod matrix;
mod names;
mod outcomes;
mod overall;
mod phases;
mod published;
mod ranking;
mod replicates;
mod rests;
pub mod scaling;
pub mod size;
pub mod surroundings;
mod times;
pub mod validity;
mod values;

use weir_model::record::{Outcome, Record, RunHeader, TrialRecord, ValidityReason};
use weir_model::study::Study;
use weir_record::Run;
use weir_stats::SignedRank;

use crate::blocks::LoadData;
use crate::capacity::CapacityFindings;
use crate::compare::Comparer;
use crate::findings::{Findings, LoadFindings};
use crate::idle::Idle;

pub use crate::blocks::is_generator_late;
pub use crate::counters::is_telling;
pub use crate::load::load_validity;
pub use crate::looks::decide;
pub use crate::matrix::cells;
pub use crate::names::{are_different_proxies, are_steps};
pub use crate::overall::deciding_metrics;
pub use crate::ranking::rankings;
pub use crate::replicates::{samples_needed, samples_wanted};
pub use crate::values::bad_shares;

/// Returns every reason not to use `trial`, or to use it with care; empty if it is VALID. The end of the continuous
/// trial that it is part of may add more.
pub fn validity(trial: &TrialRecord, header: &RunHeader) -> Vec<ValidityReason> {
    blocks::of_trial(trial, header).into_iter().map(|found| found.reason).collect()
}

/// Analyses a run. A run that was cut short gives fewer findings, one without trials none; neither is an error.
pub fn analyze(run: &Run) -> Findings {
    let mut findings = match capacity::find(run) {
        Some(capacity) => searched(run, capacity),
        None => compared(run),
    };
    findings.where_time_goes = times::find(run, &findings);
    findings
}

/// Returns the findings of a run that searched for capacities.
fn searched(run: &Run, mut capacity: CapacityFindings) -> Findings {
    let limiters = limiter::find(run, &capacity.arms);
    capacity::doubt_crowded(&mut capacity, &limiters, &run.header.study);
    let mut findings = Findings {
        complete: run.outcome() == Some(Outcome::Complete),
        inert: inert::inert(run, &[]).0,
        scaling: scaling::of_capacities(&run.header, &capacity.arms, &limiters),
        limiters,
        growth: limiter::grown(run),
        frontiers: frontier::of_capacities(run, &capacity).into_iter().collect(),
        capacity: Some(capacity),
        ..Findings::default()
    };
    conclude(&run.header.study, &run.records, &mut findings);
    findings
}

/// Returns the findings of a run that compared arms.
fn compared(run: &Run) -> Findings {
    let mut tests = SignedRank::new();
    let study = &run.header.study;
    let (mut samples, mut responses) = (Vec::new(), Vec::new());
    let mut loads: Vec<LoadFindings> = study
        .loads
        .iter()
        .map(|load| {
            let data = LoadData::gather(run, load);
            let (validity, reasons) = headline::load(&data);
            let mut comparer = Comparer::new(run, (&data, load), &mut tests);
            let idle = Idle::of(&data, load);
            let compared = looks::compared(run, load, &mut comparer)
                .unwrap_or_else(|| looks::held(&mut comparer, idle.as_ref()));
            let (metrics, pairs) = (data.metrics(), &compared.pairs);
            let rankings = ranking::rankings(study, &metrics, pairs);
            let arms = figures::arms(run, &comparer);
            samples.extend(matrix::samples(run, load, &comparer, &compared.comparisons));
            responses.push(scaling::responses(load, &comparer));
            LoadFindings {
                load: load.name.clone(),
                rate_intended: data.rate_intended,
                slice_ns: data.slice_ns,
                blocks: data.blocks.len() as u32,
                blocks_used: data.blocks_used(),
                rests: rests::find(run, &data, &arms),
                ineffective: effects::ineffective(run, load, &arms),
                arms,
                comparisons: compared.comparisons,
                pairs: compared.pairs,
                rankings,
                looks: run.looks(&load.name).into_iter().cloned().collect(),
                metrics,
                limits: limits::limits(&comparer),
                phases: phases::changes(run, &mut comparer),
                fresh: phases::fresh(&data),
                hold_ups: comparer.values.hold_ups,
                idle: idle.and_then(Idle::into_load),
                validity,
                reasons,
                left_out: headline::left_out(&data),
            }
        })
        .collect();
    matrix::control(study, &mut loads);
    overall::control(study, &mut loads);
    let pooled = matrix::pool(study, &samples);
    let (inert, misread) = inert::inert(run, &loads);
    let alone = alone::check(run, &loads, &mut tests);
    let complete = run.outcome() == Some(Outcome::Complete);
    let limiters = limiter::find(run, &[]);
    let mut findings = Findings {
        alone,
        scaling: scaling::find(&run.header, &responses, &limiters),
        limiters,
        growth: limiter::grown(run),
        frontiers: frontier::find(run, &loads),
        loads,
        complete,
        inert,
        misread,
        pooled,
        ..Findings::default()
    };
    conclude(study, &run.records, &mut findings);
    findings
}

/// Fills in everything that follows from the findings under each load: matrices, headline and verdicts on published
/// figures.
pub fn conclude(study: &Study, records: &[Record], findings: &mut Findings) {
    findings.matrices = headline::matrices(study, &findings.loads);
    findings.headline = headline::headline(study, records, findings);
    findings.overall = overall::find(study, &findings.loads);
    findings.published = published::published(study, findings);
}

#[cfg(test)]
mod tests;
