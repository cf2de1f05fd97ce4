//! The trials of one load in blocks, each judged before its outcome is looked at.

use std::collections::BTreeMap;

use weir_model::record::{PartRecord, TrialRecord, Validity};
use weir_model::study::{Arm, LoadSpec, Metric, Study};
use weir_record::Run;

use crate::bypass;
use crate::findings::CountedReason;
use crate::part::{self, Seen};
use crate::validity::{Reason, judge};

/// A load is SUSPECT as a whole when more than this share of any arm's trials are, or of all blocks
/// were INVALID. One stolen tick among a thousand slices says nothing about their median; every
/// reason is listed with its count all the same.
const SUSPECT_SHARE: f64 = 0.05;
const INVALID_SHARE: f64 = 0.5;

/// A trial and what speaks against it.
pub(crate) struct Judged<'a> {
    pub(crate) trial: &'a TrialRecord,
    pub(crate) reasons: Vec<Reason>,
}

impl Judged<'_> {
    /// The worst of the reasons.
    pub(crate) fn validity(&self) -> Validity {
        let worst = self.reasons.iter().map(|reason| reason.reason.validity);
        worst.max().unwrap_or(Validity::Valid)
    }

    pub(crate) fn usable(&self) -> bool {
        self.validity() != Validity::Invalid
    }
}

/// One block: a trial for each arm of the study, by the arm's index; `None` when a kill or an error
/// cut the block short.
pub(crate) type Block<'a> = Vec<Option<Judged<'a>>>;

/// Everything measured under one load.
pub(crate) struct LoadData<'a> {
    pub(crate) study: &'a Study,
    /// Name of the load.
    pub(crate) load: &'a str,
    pub(crate) open: bool,
    pub(crate) rate_intended: Option<f64>,
    pub(crate) slice_ns: u64,
    /// In order of time.
    pub(crate) blocks: Vec<Block<'a>>,
}

impl<'a> LoadData<'a> {
    pub(crate) fn gather(run: &'a Run, load: &'a LoadSpec) -> LoadData<'a> {
        let study = &run.header.study;
        let pilot = run.pilot(&load.name);
        let rate_intended = match load.is_open() {
            false => None,
            true => load.rate().or_else(|| pilot.and_then(|pilot| pilot.rate)),
        };
        let chosen = pilot.map(|pilot| pilot.slice_ns);
        let fixed = study.blocks.slice.map(|slice| slice.as_nanos() as u64);
        let parts = Parts::of(run, load);
        let blocks = run.blocks(&load.name).into_values().map(|trials| {
            let mut block: Block<'a> = study.arms.iter().map(|_| None).collect();
            for trial in trials {
                if let Some(arm) = study.arms.iter().position(|arm| arm.name == trial.arm) {
                    let mut reasons = all_reasons(trial, run, rate_intended);
                    reasons.extend(parts.reasons(trial));
                    reasons.extend(bypass::reasons(run, trial));
                    block[arm] = Some(Judged { trial, reasons });
                }
            }
            block
        });
        LoadData {
            study,
            load: &load.name,
            open: load.is_open(),
            rate_intended,
            slice_ns: chosen.or(fixed).unwrap_or(0),
            blocks: blocks.collect(),
        }
    }

    /// What this load can give, the objective's metric first.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let mut metrics = match self.open {
            // Where all content has one size, both are the same but for their unit.
            false => match self.study.objective.metric {
                Metric::ReceivedBytes => vec![Metric::ReceivedBytes, Metric::CpuPerRequest],
                _ => vec![Metric::Rate, Metric::CpuPerRequest],
            },
            true => vec![
                Metric::ResponseP50,
                Metric::ResponseP99,
                Metric::CpuPerRequest,
            ],
        };
        metrics.sort_by_key(|metric| *metric != self.study.objective.metric);
        metrics
    }

    /// The trial of `arm` in `block`, if it is there and usable.
    pub(crate) fn usable(&self, block: usize, arm: usize) -> Option<&'a TrialRecord> {
        let judged = self.blocks.get(block)?.get(arm)?.as_ref()?;
        judged.usable().then_some(judged.trial)
    }

    /// Whether an arm's proxy is a process of weir's, of which it knows CPU time and memory.
    pub(crate) fn sees_process(&self, arm: &Arm) -> bool {
        self.study.proxy_of(arm).kind.is_started()
    }

    /// Usable trials of an arm, in order of time.
    pub(crate) fn usable_of(&self, arm: usize) -> impl Iterator<Item = &'a TrialRecord> {
        (0..self.blocks.len()).filter_map(move |block| self.usable(block, arm))
    }

    /// Blocks in which both arms are usable.
    pub(crate) fn usable_pairs(&self, arm: usize, against: usize) -> Vec<usize> {
        let both = |block: &usize| {
            self.usable(*block, arm).is_some() && self.usable(*block, against).is_some()
        };
        (0..self.blocks.len()).filter(both).collect()
    }

    /// Blocks in which every arm is usable.
    pub(crate) fn blocks_used(&self) -> u32 {
        let whole =
            |block: &&Block<'_>| block.iter().all(|t| t.as_ref().is_some_and(Judged::usable));
        self.blocks.iter().filter(whole).count() as u32
    }

    /// The load's validity and every reason once, INVALID before SUSPECT, frequent before rare.
    pub(crate) fn validity(&self) -> (Validity, Vec<CountedReason>) {
        let used = self.blocks_used();
        let lost = self.blocks.len() as f64 - f64::from(used);
        let validity = match () {
            () if !self.comparable() => Validity::Invalid,
            () if lost > INVALID_SHARE * self.blocks.len() as f64 => Validity::Suspect,
            () if (0..self.study.arms.len()).any(|arm| self.mostly_suspect(arm)) => {
                Validity::Suspect
            }
            () => Validity::Valid,
        };
        (validity, self.reasons())
    }

    /// Whether at least one arm has a block in common with the one that it is compared with; an arm
    /// that is alone has nobody to be compared with.
    fn comparable(&self) -> bool {
        if self.study.arms.len() == 1 {
            return self.usable_of(0).next().is_some();
        }
        let arms = self.study.arms.iter().enumerate().skip(1);
        let mut pairs = arms.map(|(index, arm)| self.usable_pairs(index, arm.against));
        pairs.any(|blocks| !blocks.is_empty())
    }

    fn mostly_suspect(&self, arm: usize) -> bool {
        let trials = self.blocks.iter().filter_map(|block| block[arm].as_ref());
        let usable: Vec<_> = trials.filter(|judged| judged.usable()).collect();
        let suspect = usable.iter().filter(|j| j.validity() == Validity::Suspect);
        suspect.count() as f64 > SUSPECT_SHARE * usable.len() as f64
    }

    fn reasons(&self) -> Vec<CountedReason> {
        let mut found: BTreeMap<(Validity, &str), (f64, CountedReason)> = BTreeMap::new();
        let trials = || self.blocks.iter().flatten().flatten();
        let of = trials().count() as u32;
        for judged in trials() {
            for Reason { reason, size } in &judged.reasons {
                let key = (reason.validity, &reason.rule[..]);
                let (worst, counted) = found.entry(key).or_insert_with(|| {
                    let reason = reason.clone();
                    let (arms, trials) = (Vec::new(), 0);
                    (
                        *size,
                        CountedReason {
                            reason,
                            arms,
                            trials,
                            of,
                        },
                    )
                });
                if size > worst {
                    *worst = *size;
                    counted.reason = reason.clone();
                }
                counted.trials += 1;
                if !counted.arms.contains(&judged.trial.arm) {
                    counted.arms.push(judged.trial.arm.clone());
                }
            }
        }
        let mut reasons: Vec<_> = found.into_values().map(|(_, counted)| counted).collect();
        reasons.sort_by_key(|r| std::cmp::Reverse((r.reason.validity, r.trials)));
        reasons
    }
}

/// The continuous trials of a load.
struct Parts<'a> {
    load: &'a LoadSpec,
    /// Each with what its blocks saw.
    parts: Vec<(&'a PartRecord, Seen)>,
}

impl<'a> Parts<'a> {
    fn of(run: &'a Run, load: &'a LoadSpec) -> Parts<'a> {
        let with_blocks = |part: &'a PartRecord| {
            let own = run.trials().filter(|trial| {
                trial.load == load.name && part::holds(part, trial.session, trial.block)
            });
            let slices = own.flat_map(|trial| &trial.slices);
            (part, slices.fold(Seen::default(), Seen::and))
        };
        Parts {
            load,
            parts: run.parts(&load.name).map(with_blocks).collect(),
        }
    }

    /// What the end of the continuous trial that `trial` was part of says about it.
    fn reasons(&self, trial: &TrialRecord) -> Vec<Reason> {
        let holds =
            |(part, _): &&(&PartRecord, Seen)| part::holds(part, trial.session, trial.block);
        let found = self.parts.iter().find(holds);
        found.map_or_else(Vec::new, |(part, seen)| {
            part::reasons(part, &trial.arm, self.load, *seen)
        })
    }
}

/// What the rules of today say, and what the lab of then knew beyond them.
fn all_reasons(trial: &TrialRecord, run: &Run, rate: Option<f64>) -> Vec<Reason> {
    let mut reasons = judge(trial, &run.header, rate);
    for recorded in &trial.validity {
        if !crate::validity::RULES.contains(&&recorded.rule[..]) {
            reasons.push(Reason {
                reason: recorded.clone(),
                size: 0.0,
            });
        }
    }
    reasons
}
