//! Blocks made from a run's records: every trial, and what the rules of `validity` say about it before its outcome is
//! looked at.

use weir_model::load::Lifetime;
use weir_model::record::{
    GeneratorShare, GeneratorStart, PartRecord, Phase, QuantileSummary, RunHeader, TrialRecord,
    Validity,
};
use weir_model::study::{Arm, LoadSpec, Metric, Study};
use weir_record::Run;

use crate::evidence::{Evidence, Overflows, evidence, of_generators};
use crate::outcomes::{Answers, UNANSWERED, sum};
use crate::validity::{LAG, Reason, Use, judge};
use crate::{connections::is_with, counters};

/// Approximate bytes that one receive brings: as many as loopback's segments carry.
pub(crate) const RECEIVE: u64 = 64 * 1024;

/// Returns the reasons against a trial by itself, and against each of several generators in it.
pub(crate) fn of_trial(trial: &TrialRecord, header: &RunHeader) -> Vec<Reason> {
    let of_trial = evidence(trial, header);
    let generators = of_generators(trial, &of_trial, header);
    std::iter::once(&of_trial)
        .chain(&generators)
        .flat_map(|evidence| judge(Use::Study, evidence))
        .collect()
}

/// A continuous trial, with sums over all of its blocks.
pub(crate) struct Part<'a> {
    pub(crate) part: &'a PartRecord,
    pub(crate) load: &'a LoadSpec,
    pub(crate) responses: u64,
    pub(crate) received_bytes: u64,
    pub(crate) origin_connects: u64,
    /// Lag as in [`Evidence::lag`], of all arms together: what speaks against one arm speaks against all.
    pub(crate) lag: Lag,
    /// Lag of each of several generators, with its host.
    pub(crate) generators: Vec<(&'a str, Lag)>,
}

/// Quantiles (0..1), each with dispatch lag and response time in nanoseconds.
pub(crate) type Lag = Vec<(f64, u64, u64)>;

impl<'a> Part<'a> {
    fn of(run: &'a Run, part: &'a PartRecord, load: &'a LoadSpec) -> Part<'a> {
        let trials: Vec<&TrialRecord> = run
            .trials_in(|_| true)
            .filter(|trial| trial.load == load.name && trial.phase == part.phase)
            .filter(|trial| holds(part, trial))
            .collect();
        let all: Vec<&TrialRecord> = trials
            .iter()
            .copied()
            .chain(run.trials().filter(|trial| is_with(part, trial)))
            .collect();
        let hosts = trials.first().map_or(&[][..], |trial| &trial.generators[..]);
        let generators = hosts
            .iter()
            .filter(|_| load.is_open())
            .map(|share| (&*share.host, lag_of_host(&trials, &share.host)));
        Part {
            generators: generators.collect(),
            part,
            load,
            responses: sum(all.iter().copied(), |slice| slice.completed_whole) as u64,
            received_bytes: sum(all.iter().copied(), |slice| slice.received_bytes) as u64,
            origin_connects: sum(all.iter().copied(), |slice| slice.origin_connects) as u64,
            lag: if load.is_open() && !trials.is_empty() {
                vec![
                    typical_lag(0.5, &trials, |times| times.p50),
                    typical_lag(0.99, &trials, |times| times.p99),
                ]
            } else {
                Vec::new()
            },
        }
    }

    /// Returns the evidence about the trials of `arm` from the end of the continuous trial: missing connections, and
    /// the generator's own troubles. A part that was cut short has none.
    pub(crate) fn evidence(&self, arm: &str) -> Evidence<'static> {
        let part = self.part;
        let receives = self.responses.max(self.received_bytes / RECEIVE);
        let connections = part.arms.iter().find(|connections| connections.arm == arm);
        let asks = self.load.lifetime != Lifetime::Request;
        Evidence {
            lag: self.lag.clone(),
            starved: Some((part.starved, receives)),
            overflows: Some(self.overflows()),
            asking: connections
                .map(|connections| connections.asking)
                .filter(|asking| asks && asking.wanted > 0),
            held: connections.map(|connections| connections.held).filter(|held| held.wanted > 0),
            start_spread: GeneratorStart::spread_ns(&part.starts),
            lost_nodes: part.lost_nodes.clone(),
            ..Evidence::default()
        }
    }

    /// Returns the evidence about each of several generators.
    fn of_generators(&self) -> impl Iterator<Item = Evidence<'a>> {
        self.generators.iter().map(|(host, lag)| Evidence {
            name: Some(host),
            lag: lag.clone(),
            ..Evidence::default()
        })
    }

    /// Counts overflows of listen queues outside of the arms' own network namespaces. Those of an arm's namespace are
    /// the arm's doing and no reason to doubt; they are shown among its connections. Connections that were opened
    /// before the trial are not counted as opened.
    fn overflows(&self) -> Overflows {
        let arms = &self.part.arms;
        let by_client = arms
            .iter()
            .flat_map(|arm| [&arm.asking, &arm.held])
            .map(|counts| counts.opened.saturating_sub(counts.open_at_start));
        let of_arms = arms.iter().filter_map(|arm| arm.listen_overflows).sum();
        Overflows {
            seen: self.part.listen_overflows.saturating_sub(of_arms),
            opened: by_client.sum::<u64>() + self.origin_connects,
            responses: self.responses,
        }
    }
}

/// Returns true if the generator was so late in `trials` that their response times are doubtful (rule `dispatch-lag`).
pub fn is_generator_late(trials: &[&TrialRecord]) -> bool {
    [typical_lag(0.5, trials, |times| times.p50), typical_lag(0.99, trials, |times| times.p99)]
        .iter()
        .any(|&(_, lag_ns, response_ns)| lag_ns as f64 > LAG * response_ns as f64)
}

/// Returns a quantile with its typical dispatch lag and response time.
fn typical_lag(
    quantile: f64,
    trials: &[&TrialRecord],
    value: fn(&QuantileSummary) -> u64,
) -> (f64, u64, u64) {
    let lag = median(trials.iter().map(|trial| value(&trial.dispatch_lag)));
    let response = median(trials.iter().map(|trial| value(&trial.response_time)));
    (quantile, lag, response)
}

/// Returns the typical lag of the generator on `host`.
fn lag_of_host(trials: &[&TrialRecord], host: &str) -> Lag {
    let shares: Vec<&GeneratorShare> = trials
        .iter()
        .flat_map(|trial| &trial.generators)
        .filter(|share| share.host == host)
        .collect();
    [0.5, 0.99]
        .into_iter()
        .enumerate()
        .map(|(index, quantile)| {
            let lag = median(shares.iter().map(|share| share.dispatch_lag[index]));
            let response = median(shares.iter().map(|share| share.response_time[index]));
            (quantile, lag, response)
        })
        .collect()
}

/// Returns the median, the higher one of two middle values; 0 if there are no values.
pub(crate) fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// Returns true if a continuous trial contains the block of a trial.
pub(crate) fn holds(part: &PartRecord, trial: &TrialRecord) -> bool {
    let blocks = part.first_block..part.first_block.saturating_add(part.blocks);
    // Of arms that are measured one after the other each has a part of its own.
    let has_arm = || part.arms.is_empty() || part.arms.iter().any(|arm| arm.arm == trial.arm);
    part.session == trial.session && blocks.contains(&trial.block) && has_arm()
}

/// A trial and the reasons against it.
pub(crate) struct Judged<'a> {
    pub(crate) trial: &'a TrialRecord,
    pub(crate) reasons: Vec<Reason>,
}

impl Judged<'_> {
    /// Returns the worst validity among the reasons.
    pub(crate) fn validity(&self) -> Validity {
        self.reasons.iter().map(|reason| reason.reason.validity).max().unwrap_or(Validity::Valid)
    }

    pub(crate) fn usable(&self) -> bool {
        self.validity() != Validity::Invalid
    }
}

/// One block: a trial for each arm of the study, by the arm's index; `None` if a kill or an error cut the block short.
pub(crate) type Block<'a> = Vec<Option<Judged<'a>>>;

/// Everything that was measured under one load.
pub(crate) struct LoadData<'a> {
    pub(crate) header: &'a RunHeader,
    pub(crate) study: &'a Study,
    /// Name of the load.
    pub(crate) load: &'a str,
    pub(crate) open: bool,
    pub(crate) rate_intended: Option<f64>,
    pub(crate) slice_ns: u64,
    /// Blocks in order of time.
    pub(crate) blocks: Vec<Block<'a>>,
    /// Index, by block, of the continuous trial that the block is part of. Each continuous trial has new instances of
    /// the proxies.
    pub(crate) instances: Vec<usize>,
    /// Flags by block and arm: true if the arm was to be measured in the block. Arms that are decided leave.
    wanted: Vec<Vec<bool>>,
}

impl<'a> LoadData<'a> {
    pub(crate) fn gather(run: &'a Run, load: &'a LoadSpec) -> LoadData<'a> {
        LoadData::of_phases(run, load, Phase::counts)
    }

    /// Collects the blocks with smaller numbers than `next_block`.
    pub(crate) fn up_to(run: &'a Run, load: &'a LoadSpec, next_block: u32) -> LoadData<'a> {
        LoadData::of_blocks(run, load, Phase::counts, next_block)
    }

    /// Collects the blocks of the phases that `wanted` selects.
    pub(crate) fn of_phases(
        run: &'a Run,
        load: &'a LoadSpec,
        wanted: fn(Phase) -> bool,
    ) -> LoadData<'a> {
        LoadData::of_blocks(run, load, wanted, u32::MAX)
    }

    fn of_blocks(
        run: &'a Run,
        load: &'a LoadSpec,
        wanted: fn(Phase) -> bool,
        next_block: u32,
    ) -> LoadData<'a> {
        let study = &run.header.study;
        let pilot = run.pilot(&load.name);
        let rate_intended = if load.is_open() {
            load.rate().or_else(|| pilot.and_then(|pilot| pilot.rate))
        } else {
            None
        };
        let chosen = pilot.map(|pilot| pilot.slice_ns);
        let fixed = study.blocks.slice.map(|slice| slice.as_nanos() as u64);
        let parts: Vec<Part<'_>> =
            run.parts_in(&load.name, wanted).map(|p| Part::of(run, p, load)).collect();
        let (mut instances, mut goes_on) = (Vec::new(), Vec::new());
        let looks = run.looks(&load.name);
        let blocks = run
            .blocks_in(&load.name, wanted)
            .into_iter()
            .take_while(|((number, _), _)| *number < next_block)
            .map(|((number, _), trials)| {
                let before = looks.iter().rev().find(|look| look.next_block <= number);
                goes_on.push(
                    study
                        .arms
                        .iter()
                        .map(|arm| before.is_none_or(|look| look.open.contains(&arm.name)))
                        .collect(),
                );
                let part_index = trials
                    .first()
                    .and_then(|trial| parts.iter().position(|part| holds(part.part, trial)));
                // One that a kill has cut short has no record, and is the last of its session.
                instances.push(part_index.unwrap_or(parts.len()));
                let mut block: Block<'a> = study.arms.iter().map(|_| None).collect();
                for trial in trials {
                    if let Some(arm) = study.arms.iter().position(|arm| arm.name == trial.arm) {
                        let mut reasons = of_trial(trial, &run.header);
                        if let Some(part) = parts.iter().find(|part| holds(part.part, trial)) {
                            reasons.extend(judge(Use::Study, &part.evidence(&trial.arm)));
                            let generators = part.of_generators();
                            reasons.extend(generators.flat_map(|own| judge(Use::Study, &own)));
                            let hops = counters::hops(run, part.part, &trial.arm);
                            reasons.extend(hops.flat_map(|hop| judge(Use::Study, &hop.into())));
                        }
                        block[arm] = Some(Judged { trial, reasons });
                    }
                }
                block
            })
            .collect();
        LoadData {
            header: &run.header,
            study,
            load: &load.name,
            open: load.is_open(),
            rate_intended,
            slice_ns: chosen.or(fixed).unwrap_or(0),
            blocks,
            instances,
            wanted: goes_on,
        }
    }

    /// Returns the median duration of a block, its unmeasured parts included, nanoseconds.
    pub(crate) fn block_ns(&self) -> u64 {
        median(self.blocks.iter().map(|block| {
            let slices: Vec<_> =
                block.iter().flatten().flat_map(|judged| &judged.trial.slices).collect();
            let begin = slices.iter().map(|slice| slice.start_ns).min().unwrap_or(0);
            let end = slices.iter().map(|slice| slice.start_ns + slice.measured_ns).max();
            end.unwrap_or(0) - begin
        }))
    }

    /// Returns the metrics that this load can give, the objective's metric first.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let mut metrics = if self.open {
            let times = [Metric::ResponseP50, Metric::ResponseP99];
            // Where everything was answered, the rate is the one that was asked for.
            let rate = self.is_overloaded().then_some(Metric::Rate);
            times.into_iter().chain(rate).chain([Metric::CpuPerRequest]).collect()
        } else {
            // Where all content has one size, both are the same but for their unit.

            match self.study.objective.metric {
                Metric::ReceivedBytes => vec![Metric::ReceivedBytes, Metric::CpuPerRequest],
                _ => vec![Metric::Rate, Metric::CpuPerRequest],
            }
        };
        metrics.sort_by_key(|metric| *metric != self.study.objective.metric);
        metrics
    }

    /// Returns true if an arm left more than [`UNANSWERED`] of an open loop's requests without a right answer.
    fn is_overloaded(&self) -> bool {
        let arms = 0..self.study.arms.len();
        let mut bad = arms.map(|arm| Answers::of(self.usable_of(arm), self.study).bad_share());
        bad.any(|bad| bad > UNANSWERED)
    }

    /// Returns the trial of `arm` in `block` if it exists and is usable.
    pub(crate) fn usable(&self, block: usize, arm: usize) -> Option<&'a TrialRecord> {
        let judged = self.blocks.get(block)?.get(arm)?.as_ref()?;
        judged.usable().then_some(judged.trial)
    }

    /// Returns true if weir started the arm's proxy, so that its CPU time and memory are known.
    pub(crate) fn sees_process(&self, arm: &Arm) -> bool {
        self.study.proxy_of(arm).is_started()
    }

    /// Returns the usable trials of an arm, in order of time.
    pub(crate) fn usable_of(&self, arm: usize) -> impl Iterator<Item = &'a TrialRecord> {
        (0..self.blocks.len()).filter_map(move |block| self.usable(block, arm))
    }

    /// Returns the blocks in which both arms are usable.
    pub(crate) fn usable_pairs(&self, arm: usize, against: usize) -> Vec<usize> {
        (0..self.blocks.len())
            .filter(|block| {
                self.usable(*block, arm).is_some() && self.usable(*block, against).is_some()
            })
            .collect()
    }

    /// Counts the blocks in which every arm that was to be measured is usable.
    pub(crate) fn blocks_used(&self) -> u32 {
        self.blocks
            .iter()
            .zip(&self.wanted)
            .filter(|(block, wanted)| {
                let mut arms = block.iter().zip(*wanted);
                arms.all(|(trial, wanted)| !wanted || trial.as_ref().is_some_and(Judged::usable))
            })
            .count() as u32
    }
}
