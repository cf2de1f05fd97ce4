//! What earlier sessions of a run have measured, so that a later one goes on where they ended.

use std::collections::BTreeMap;

use weir_model::record::{PilotRecord, Record, TrialRecord};
use weir_record::Run;

/// What earlier sessions have measured.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) sessions: u32,
    pub(crate) pilots: BTreeMap<String, PilotRecord>,
    /// For each load, blocks that are whole, and the number of the next one.
    pub(crate) blocks: BTreeMap<String, (u32, u32)>,
    /// For each load and arm, responses and nanoseconds measured.
    pub(crate) totals: BTreeMap<(String, String), (u64, u64)>,
}

impl Done {
    pub(crate) fn of(run: &Run) -> Done {
        let mut done = Done::default();
        for record in &run.records {
            match record {
                Record::Session(session) => done.sessions = session.session + 1,
                Record::Pilot(pilot) => {
                    done.pilots.insert(pilot.load.clone(), pilot.clone());
                }
                _ => {}
            }
        }
        let arms = run.header.study.arms.len();
        for load in &run.header.study.loads {
            let blocks = run.blocks(&load.name);
            let whole = blocks.values().filter(|trials| trials.len() == arms);
            let next = blocks.keys().map(|(block, _)| block + 1).max().unwrap_or(0);
            done.blocks
                .insert(load.name.clone(), (whole.clone().count() as u32, next));
            whole.flatten().for_each(|trial| done.add(trial));
        }
        done
    }

    pub(crate) fn add(&mut self, trial: &TrialRecord) {
        let total = self
            .totals
            .entry((trial.load.clone(), trial.arm.clone()))
            .or_default();
        total.0 += trial
            .slices
            .iter()
            .map(|slice| slice.completed)
            .sum::<u64>();
        total.1 += trial
            .slices
            .iter()
            .map(|slice| slice.measured_ns)
            .sum::<u64>();
    }

    /// Requests per second that the slowest arm completed under a load.
    pub(crate) fn slowest(&self, load: &str) -> Option<f64> {
        let of_load = self.totals.iter().filter(|((name, _), _)| name == load);
        of_load
            .map(|(_, &(completed, ns))| completed as f64 / (ns.max(1) as f64 / 1e9))
            .min_by(f64::total_cmp)
    }
}
