//! Figures of arms for those who watch a run: what each arm measured, a few seconds after it did.
//!
//! Blocks are added up, so that an arm has at most one event a second however short its slices are. Nothing is measured
//! for it: the figures are those of the records.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use weir_load::SliceData;
use weir_load::figures::figures;
use weir_model::progress::LoadFigures;
use weir_model::record::{Phase, TrialRecord, Validity, ValidityReason};

use crate::assembly::ArmBlock;

/// Least time from one event of an arm to its next one.
const INTERVAL: Duration = Duration::from_secs(1);

/// Histograms of the requests in [`Measured`], nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredTimes {
    /// Response times.
    pub response: Histogram<u64>,
    /// Service times.
    pub service: Histogram<u64>,
    /// Dispatch lags.
    pub dispatch_lag: Histogram<u64>,
}

/// Figures of one arm since the previous event of the same load, arm and phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Name of the load; of `weir load`, the name of the flow.
    pub load: String,
    /// Name of the arm; empty in `weir load`.
    pub arm: String,
    /// Purpose of the blocks.
    pub phase: Phase,
    /// Number of blocks in the figures.
    pub blocks: u32,
    /// Rate of the open loop in the last block, requests per second; `None` in a closed loop.
    pub rate_intended: Option<f64>,
    /// Counts and quantiles.
    pub interval: LoadFigures,
    /// Validity of the worst block.
    pub validity: Validity,
    /// Reasons of the blocks that are not VALID, each rule once.
    pub reasons: Vec<ValidityReason>,
    /// Distributions of the same requests, without loss; not written as JSON.
    #[serde(skip)]
    pub times: MeasuredTimes,
}

impl Measured {
    /// Makes the figures of `seconds` of measured time from counts.
    pub fn of(load: String, arm: String, seconds: f64, data: &SliceData) -> Measured {
        let histograms = &data.histograms;
        Measured {
            load,
            arm,
            phase: Phase::Measurement,
            blocks: 0,
            rate_intended: None,
            interval: figures(data, seconds),
            validity: Validity::Valid,
            reasons: Vec::new(),
            times: MeasuredTimes {
                response: histograms.response.clone(),
                service: histograms.service.clone(),
                dispatch_lag: histograms.dispatch_lag.clone(),
            },
        }
    }
}

/// Returns the data of an arm that has measured nothing.
pub fn no_data() -> SliceData {
    SliceData::new()
}

/// Blocks of an arm that were not passed on yet.
struct Pending {
    data: SliceData,
    measured_ns: u64,
    blocks: u32,
    rate_intended: Option<f64>,
    reasons: Vec<ValidityReason>,
}

/// Blocks of all arms that were not passed on yet.
#[derive(Default)]
pub(crate) struct Feed {
    pending: BTreeMap<(String, String, Phase), Pending>,
    passed_on: Duration,
}

impl Feed {
    /// Adds an arm's part of a block.
    pub(crate) fn add(&mut self, trial: &TrialRecord, part: &ArmBlock) {
        let key = (trial.load.clone(), trial.arm.clone(), trial.phase);
        let pending = self.pending.entry(key).or_insert_with(|| Pending {
            data: SliceData::new(),
            measured_ns: 0,
            blocks: 0,
            rate_intended: None,
            reasons: Vec::new(),
        });
        pending.data.add(&part.data);
        pending.measured_ns += trial.slices.iter().map(|slice| slice.measured_ns).sum::<u64>();
        pending.blocks += 1;
        pending.rate_intended = trial.rate_intended;
        for reason in &trial.validity {
            if pending
                .reasons
                .iter()
                .all(|other| (other.rule(), &other.subject) != (reason.rule(), &reason.subject))
            {
                pending.reasons.push(reason.clone());
            }
        }
    }

    /// Takes what is to be passed on at the time `now`: nothing before [`INTERVAL`] has passed.
    pub(crate) fn due(&mut self, now: Duration) -> Vec<Measured> {
        if now.saturating_sub(self.passed_on) < INTERVAL {
            return Vec::new();
        }
        self.passed_on = now;
        self.rest()
    }

    /// Takes everything that was not passed on yet.
    pub(crate) fn rest(&mut self) -> Vec<Measured> {
        std::mem::take(&mut self.pending)
            .into_iter()
            .map(|((load, arm, phase), pending)| {
                let seconds = pending.measured_ns as f64 / 1e9;
                let worst = pending.reasons.iter().map(|reason| reason.validity).max();
                Measured {
                    phase,
                    blocks: pending.blocks,
                    rate_intended: pending.rate_intended,
                    validity: worst.unwrap_or(Validity::Valid),
                    reasons: pending.reasons,
                    ..Measured::of(load, arm, seconds, &pending.data)
                }
            })
            .collect()
    }
}
