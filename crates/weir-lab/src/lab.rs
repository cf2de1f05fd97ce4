//! [`Lab::measure`]: the one call with which all measurements of a run are made.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_agent::message::LoadJob;
use weir_agent::{AgentError, FailureKind};
use weir_hosts::Hosts;
use weir_hosts::pod_samples::ArmPods;
use weir_hosts::preflight::{self, LoadShare};
use weir_model::deal::OtherThreads;
use weir_model::quantity::CpuSet;
use weir_model::record::{
    ArmRecord, CountersRecord, NetworkUsed, Phase, Record, RunHeader, TrialRecord,
};
use weir_model::study::Arm;
use weir_proposers::{ArmId, Block, Cell, CellEnd, History, Outcome, Renewal, Timeline};
use weir_record::RunWriter;

use crate::arms::Arms;
use crate::assembly::{ArmBlock, LoadOffset};
use crate::feed::Feed;
use crate::flows::Flows;
use crate::record::{self, Recorder};
use crate::sampling::{SampleMessage, Sampled};
use crate::trial::{Trial, TrialEnd, TrialEvent, Watched};
use crate::{Event, LabError};

/// Hosts, arms and records of a run, ready to measure.
pub(crate) struct Lab<'a> {
    pub(crate) header: &'a RunHeader,
    pub(crate) session: u32,
    pub(crate) hosts: &'a Hosts,
    pub(crate) arms: Arms<'a>,
    pub(crate) writer: &'a mut RunWriter,
    pub(crate) history: &'a mut History,
    pub(crate) events: &'a mut dyn FnMut(Event),
    /// Start of this session, by the clock of the hosts.
    pub(crate) begun: Duration,
    /// Interval and start time of samples; `None`: no counters are sampled.
    pub(crate) sampled: Option<Sampled>,
    /// Pods of the proxy, if the user named them.
    pub(crate) proxy_pods: Option<ArmPods>,
    /// True if each arm has the load alone once the plan is done.
    pub(crate) is_observed: bool,
    /// Set when the user wants to end the run.
    pub(crate) interrupted: &'a AtomicBool,
    /// Slices and time of each load's earlier trials in this session, after which records continue their numbering.
    pub(crate) before: BTreeMap<String, LoadOffset>,
    /// Figures of arms for those who watch the run.
    pub(crate) feed: Feed,
}

/// Blocks of a trial so far, and the reason why it ended early.
#[derive(Default)]
struct TrialProgress {
    blocks: Vec<Block>,
    decided: bool,
    broken: Option<LabError>,
}

impl Lab<'_> {
    /// Appends a record and adds it to the history, so that later decisions use it.
    pub(crate) fn record(&mut self, record: &Record) -> Result<(), LabError> {
        self.writer.append(record)?;
        self.history.add(record);
        Ok(())
    }

    /// Starts and stops arms until exactly these run.
    pub(crate) fn only(&mut self, arms: &[ArmId]) -> Result<(), LabError> {
        self.arms.only(arms, self.writer, self.events)
    }

    /// Adds an arm; it is started when it is needed.
    pub(crate) fn add(&mut self, arm: Arm, cpus: Option<CpuSet>) -> Result<(), LabError> {
        let arm = Arm { cpus: cpus.or(arm.cpus), ..arm };
        self.arms.add(arm.clone());
        let session = self.session;
        self.record(&Record::Arm(Box::new(ArmRecord { session, arm })))
    }

    /// Measures a cell. `go_on` gets each block and returns whether to go on.
    ///
    /// # Errors
    /// A host is lost, records cannot be written, or a load cannot be sent. A broken arm is not an error but an
    /// outcome, as is the user's wish to stop.
    pub(crate) fn measure(
        &mut self,
        cell: &Cell,
        go_on: &mut dyn FnMut(&Block) -> bool,
    ) -> Result<Outcome, LabError> {
        let before = match self.ready(cell) {
            Ok(before) => before,
            Err(error) => return broken(error, Vec::new()),
        };
        let timeline = Timeline::of(cell);
        let specs = self.arms.all();
        let arms: Vec<Arm> = cell.arms.iter().map(|&arm| specs[arm].clone()).collect();
        let recorder = Recorder { header: self.header, cell, arms: &arms, session: self.session };
        let mut progress = TrialProgress::default();
        let result = self.trial(recorder, &timeline, &mut progress, go_on)?;
        for measured in self.feed.rest() {
            (self.events)(Event::Measured(Box::new(measured)));
        }
        if progress.broken.is_none() {
            // A proxy that ended between blocks shows as refused connections: name the cause.
            progress.broken = self.arms.alive().err();
        }
        if is_kept(cell) {
            self.count_on(cell, &timeline);
        }
        if let Some(error) = progress.broken.take() {
            return broken(error, progress.blocks);
        }
        let ended = match self.ended(cell, result) {
            Err(error) if error.is_unreachable() => {
                return Ok(Outcome {
                    blocks: progress.blocks,
                    end: CellEnd::Unreachable(Box::new(error)),
                });
            }
            ended => ended?,
        };
        let Some(end) = ended else {
            return Ok(Outcome { blocks: progress.blocks, end: CellEnd::Interrupted });
        };
        if is_kept(cell) {
            let after = match self.arms.counters(&cell.arms) {
                Ok(after) => after,
                Err(error) => return broken(error, progress.blocks),
            };
            self.keep_counters(recorder, before.iter().zip(&after))?;
            // The last of all: where they stand, a proxy without counters has counted nothing.
            for part in recorder.parts(progress.blocks.len(), end) {
                self.record(&Record::Part(Box::new(part)))?;
            }
        }
        let end = match () {
            () if progress.decided => CellEnd::Decided,
            () if self.interrupted.load(Ordering::Relaxed) => CellEnd::Interrupted,
            () => CellEnd::Whole,
        };
        Ok(Outcome { blocks: progress.blocks, end })
    }

    /// Starts the arms of a cell, and renews them if the cell says so. Returns the counters that each proxy keeps of
    /// itself.
    fn ready(&mut self, cell: &Cell) -> Result<Vec<record::Counted>, LabError> {
        self.arms.have(&cell.arms, self.writer, self.events)?;
        let has_networks = matches!(self.header.network, NetworkUsed::Namespaces { .. });
        match cell.renew {
            Renewal::Nothing => {}
            Renewal::Network if has_networks => self.arms.restart(&cell.arms, self.writer)?,
            Renewal::Network | Renewal::Instance => self.arms.renew(&cell.arms, self.writer)?,
        }
        if is_kept(cell) { self.arms.counters(&cell.arms) } else { Ok(Vec::new()) }
    }

    /// Builds the load job of each generator.
    fn jobs(&self, cell: &Cell, timeline: &Timeline) -> Result<Vec<LoadJob>, LabError> {
        let flows = Flows::read(&cell.load, Some(cell.slice))?;
        let flow_jobs = cell.arms.iter().enumerate().map(|(place, &arm)| {
            let when = weir_proposers::arrivals::of(cell, timeline, place);
            self.arms.flows(&flows, arm, place, &when)
        });
        let LoadShare { generators, threads, descriptors } = preflight::deal_load(
            &self.header.study,
            &cell.load,
            self.hosts,
            &self.header.cpus.generator,
        );
        let job = LoadJob {
            flows: flow_jobs.collect::<Result<Vec<_>, LabError>>()?.concat(),
            traces: flows.traces,
            files: flows.files,
            drain: cell.load.longest_timeout(),
            spin: cell.load.spin,
            threads,
            descriptors,
            ..LoadJob::default()
        };
        let named = &self.header.cpus.generator;
        let mut jobs = deal(&job, generators);
        for (job, host) in jobs.iter_mut().zip(self.hosts.generators()) {
            let host_cpus = host.own_cpus(named);
            let cpu_map: BTreeMap<u32, u32> =
                named.cpus().iter().copied().zip(host_cpus.cpus().iter().copied()).collect();
            for cpu in job.threads.iter_mut().flatten() {
                *cpu = cpu_map.get(cpu).copied().unwrap_or(*cpu);
            }
            if !host.is_kept() && self.header.study.cpus.is_none() {
                job.threads.fill(None);
            }
        }
        Ok(jobs)
    }

    /// Runs the trial and records its blocks as they arrive; `seen` gets the blocks and the reason for an early end.
    fn trial(
        &mut self,
        recorder: Recorder<'_>,
        timeline: &Timeline,
        progress: &mut TrialProgress,
        go_on: &mut dyn FnMut(&Block) -> bool,
    ) -> Result<Result<TrialEnd, AgentError>, LabError> {
        let cell = recorder.cell;
        let trial = Trial {
            timeline,
            jobs: self.jobs(cell, timeline)?,
            hosts: self.hosts,
            watched: Watched {
                slots: self.arms.slots(&cell.arms)?,
                pods: self.arms.pods(&cell.arms, self.proxy_pods.as_ref()),
                proxies: self.arms.cpus(&cell.arms),
                generator: &self.header.cpus.generator,
                origin: &self.header.cpus.origin,
                taken: recorder.arms.iter().map(|arm| arm.taken).collect(),
            },
            before: self.before.get(&cell.load.name).copied().unwrap_or_default(),
            sampled: self.sampled,
            interrupted: self.interrupted,
        };
        Ok(trial.run(&mut |heard| {
            let result = match heard {
                TrialEvent::Block(finished) => recorder
                    .block(finished, self.writer)
                    .map_err(LabError::from)
                    .and_then(|block| self.keep(cell, block))
                    .map(|block| {
                        self.show_measured(&block, &finished.arms);
                        progress.decided = !go_on(&block);
                        progress.blocks.push(block);
                    }),
                TrialEvent::Sampled(SampleMessage::Rows(host, rows)) => {
                    let written = self.writer.append_samples(&host, &rows);
                    (self.events)(Event::Sampled { host, rows });
                    written.map_err(LabError::from)
                }
                TrialEvent::Sampled(SampleMessage::Missing(host, missing)) => {
                    self.writer.append_missing(&host, &missing).map_err(LabError::from)
                }
            };
            if let Err(error) = result {
                progress.broken.get_or_insert(error);
            }
            !progress.decided && progress.broken.is_none()
        }))
    }

    /// Records a block and reports it. Fails if a proxy has ended meanwhile, so that its block does not count.
    fn keep(&mut self, cell: &Cell, block: Block) -> Result<Block, LabError> {
        weir_probe::fault::at("block");
        for trial in &block {
            self.record(&Record::Trial(Box::new(trial.clone())))?;
        }
        self.arms.alive()?;
        if cell.phase.counts() && cell.planned > 0 {
            let loads = cell.loads();
            let done = loads.iter().map(|load| self.history.whole_blocks(load)).sum();
            (self.events)(Event::Block {
                loads: loads.into_iter().map(str::to_owned).collect(),
                done,
                of: cell.planned,
                baseline_rate: block.first().map_or(0.0, rate_completed),
            });
        }
        Ok(block)
    }

    /// Shows what the arms measured in a block, or in several if they are short.
    fn show_measured(&mut self, block: &Block, parts: &[ArmBlock]) {
        for (trial, part) in block.iter().zip(parts) {
            self.feed.add(trial, part);
        }
        for measured in self.feed.due(self.hosts.now()) {
            (self.events)(Event::Measured(Box::new(measured)));
        }
    }

    /// Advances the load's slice numbers and time past a trial, for the load's next one.
    fn count_on(&mut self, cell: &Cell, timeline: &Timeline) {
        let before = self.before.entry(cell.load.name.clone()).or_default();
        before.slices += timeline.slices.len() as u64;
        before.ns += timeline.length().as_nanos() as u64;
    }

    /// Evaluates the generator's result at the end of a trial. `None` if the trial was stopped before a connection was
    /// open: it has measured nothing, and that is no error.
    fn ended(
        &self,
        cell: &Cell,
        result: Result<TrialEnd, AgentError>,
    ) -> Result<Option<TrialEnd>, LabError> {
        let interrupted = self.interrupted.load(Ordering::Relaxed);
        match result {
            Err(AgentError::Failed(failure))
                if failure.kind == FailureKind::NoConnection && interrupted =>
            {
                Ok(None)
            }
            Err(source @ AgentError::Failed(_)) => {
                Err(LabError::Load { load: cell.load.name.clone(), source })
            }
            result => Ok(Some(result?)),
        }
    }

    fn keep_counters<'c>(
        &mut self,
        recorder: Recorder<'_>,
        counted: impl Iterator<Item = (&'c record::Counted, &'c record::Counted)>,
    ) -> Result<(), LabError> {
        for (arm, (before, after)) in recorder.arms.iter().zip(counted) {
            let counted = record::counted(before, after);
            if counted.is_empty() {
                continue;
            }
            for measured in recorder.cell.measured(0) {
                self.record(&Record::Counters(CountersRecord {
                    session: self.session,
                    load: measured.load,
                    arm: arm.name.clone(),
                    phase: recorder.cell.phase,
                    first_block: measured.first_block,
                    counted: counted.clone(),
                }))?;
            }
        }
        Ok(())
    }
}

/// Copies a job for each generator, with the number of threads of the generators before and behind it.
fn deal(job: &LoadJob, generators: u32) -> Vec<LoadJob> {
    let threads = job.threads.len() as u32;
    (0..generators)
        .map(|number| LoadJob {
            others: OtherThreads {
                before: number * threads,
                behind: (generators - 1 - number) * threads,
            },
            ..job.clone()
        })
        .collect()
}

/// Returns true if more than the trials of a cell is recorded.
fn is_kept(cell: &Cell) -> bool {
    cell.phase != Phase::Pilot
}

/// Turns an error of a broken arm into an outcome, and likewise the user's wish not to wait for an arm. Any other error
/// is returned.
fn broken(error: LabError, blocks: Vec<Block>) -> Result<Outcome, LabError> {
    match error.broken_arm() {
        None if error.is_interruption() => Ok(Outcome { blocks, end: CellEnd::Interrupted }),
        Some(_) => Ok(Outcome { blocks, end: CellEnd::Broken(Box::new(error)) }),
        None => Err(error),
    }
}

fn rate_completed(trial: &TrialRecord) -> f64 {
    let completed: u64 = trial.slices.iter().map(|slice| slice.completed).sum();
    let ns: u64 = trial.slices.iter().map(|slice| slice.measured_ns).sum();
    completed as f64 / (ns.max(1) as f64 / 1e9)
}
