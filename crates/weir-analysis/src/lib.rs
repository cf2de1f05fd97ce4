//! Validity, contrasts and verdicts: pure functions of records.
//!
//! The order of the work is the guard against wishful thinking:
//!
//! 1. [`mod@validity`] judges every trial by what happened around it (stolen CPU time, a generator
//!    that lagged, errors), never by its outcome.
//! 2. `gather` puts the trials into blocks; what is INVALID is out from here on.
//! 3. `replicates` turns blocks into independent log ratios, merging neighbours where blocks follow
//!    from one another.
//! 4. `compare` asks `weir-stats` for estimate, interval, p and verdict; `ranking` puts arms in order
//!    by their pairs, where the study compares all; `limits` says whether each arm stays within an
//!    absolute limit, where there is one.
//! 5. `figures` and `answer` put the rest into numbers and one sentence; `headline` says what the
//!    sentence rests on and leaves out, `published` what it does to published effects.

mod answer;
mod bypass;
mod compare;
mod counters;
mod figures;
pub mod findings;
mod gather;
mod headline;
mod inert;
mod limits;
mod load;
mod names;
mod part;
mod published;
mod ranking;
mod replicates;
pub mod validity;

use weir_model::record::{Outcome, Record};
use weir_model::study::Study;
use weir_record::Run;

use crate::findings::{Findings, LoadFindings};
use crate::gather::LoadData;

pub use crate::counters::is_telling;
pub use crate::load::load_validity;
pub use crate::names::{are_different_proxies, are_steps};
pub use crate::validity::validity;

/// Everything that `run` says. A run that was cut short says less, one without trials nothing;
/// neither is an error.
pub fn analyze(run: &Run) -> Findings {
    let mut comparer = compare::Comparer::new(run);
    let study = &run.header.study;
    let loads: Vec<LoadFindings> = study
        .loads
        .iter()
        .map(|load| {
            let data = LoadData::gather(run, load);
            let (validity, reasons) = data.validity();
            let compared = comparer.compare(&data);
            let rankings = ranking::rankings(study, &data.metrics(), &compared.pairs);
            LoadFindings {
                load: load.name.clone(),
                rate_intended: data.rate_intended,
                slice_ns: data.slice_ns,
                blocks: data.blocks.len() as u32,
                blocks_used: data.blocks_used(),
                arms: figures::arms(run, &data),
                comparisons: compared.comparisons,
                pairs: compared.pairs,
                rankings,
                metrics: data.metrics(),
                limits: compared.limits,
                validity,
                reasons,
            }
        })
        .collect();
    let complete = run.outcome() == Some(Outcome::Complete);
    let inert = inert::inert(run);
    let mut findings = Findings {
        answer: answer::answer(study, &loads, &inert, complete),
        loads,
        complete,
        inert,
        ..Findings::default()
    };
    conclude(study, &run.records, &mut findings);
    findings
}

/// Fills in what follows from the findings under each load, but for the answer: matrices, headline and
/// verdicts on what was published.
pub fn conclude(study: &Study, records: &[Record], findings: &mut Findings) {
    findings.matrices = headline::matrices(study, &findings.loads);
    findings.headline = headline::headline(study, records, findings);
    findings.published = published::published(study, findings);
}

#[cfg(test)]
mod tests;
