//! One weir process at work on a run: arms started, pilots, trials, records.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use weir_agent::message::LoadJob;
use weir_agent::{AgentError, FailureKind};
use weir_model::record::{
    CountersRecord, EndRecord, LoadEndRecord, NetworkUsed, Outcome, PilotRecord, Record, RunHeader,
    SessionRecord, TrialRecord,
};
use weir_model::study::{LoadSpec, StudyArrivals};
use weir_record::RunWriter;
use weir_stats::SplitMix64;

use crate::arms::{Arms, Bench};
use crate::assembly::Before;
use crate::done::Done;
use crate::measure::{Trial, TrialEnd};
use crate::pilot::{self, Quantity};
use crate::places::Places;
use crate::record::Recorder;
use crate::run::{Options, Summary};
use crate::timeline::Timeline;
use crate::{Event, LabError, arrivals, part, preflight, settings};

/// How far the trial of one load is.
struct Progress {
    /// Blocks recorded, over all sessions.
    done: u32,
    planned: u32,
    /// The parts that this session has measured.
    before: Before,
}

/// One weir process at work on a run.
pub(crate) struct Session<'a> {
    pub(crate) header: &'a RunHeader,
    pub(crate) options: &'a Options,
    pub(crate) number: u32,
    pub(crate) writer: RunWriter,
    pub(crate) done: Done,
}

impl Session<'_> {
    /// Starts everything, measures every load, and ends everything.
    pub(crate) fn run(
        &mut self,
        mut places: Places,
        events: &mut dyn FnMut(Event),
    ) -> Result<Summary, LabError> {
        let at = Timestamp::now().to_string();
        self.writer.append(&Record::Session(SessionRecord {
            session: self.number,
            at,
        }))?;
        let folder = self.options.folder.clone();
        let plan = preflight::plan_of(&self.header.study);
        let trials = plan.iter().map(|(_, _, length)| *length).sum();
        let remarks = self.header.remarks.clone();
        events(Event::Begun {
            folder: folder.clone(),
            trials,
            remarks,
        });
        if let Some(cpus) = places.own_cpus(&self.header.cpus) {
            // Off the proxy's CPUs. If one has gone offline since the check, any will do.
            let _ = weir_probe::keep_to(None, cpus.cpus());
        }
        let result = self.work(&mut places, events);
        // All processes end, and all settings are put back, before the run is said to have ended.
        drop(places);
        let (outcome, error) = match &result {
            Ok(()) if self.stopped() => (Outcome::Interrupted, String::new()),
            Ok(()) => (Outcome::Complete, String::new()),
            Err(error) => (Outcome::Failed, error.to_string()),
        };
        let at = Timestamp::now().to_string();
        let end = self
            .writer
            .append(&Record::End(EndRecord { at, outcome, error }));
        result?;
        end?;
        Ok(Summary { folder, outcome })
    }

    fn stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }

    fn work(&mut self, places: &mut Places, events: &mut dyn FnMut(Event)) -> Result<(), LabError> {
        let (study, roles) = (&self.header.study, &self.header.cpus);
        places.settle(roles)?;
        if let NetworkUsed::Namespaces { mtu } = self.header.network {
            places.make_networks(study, mtu)?;
        }
        settings::begin(study, places, self.options)?;
        let bench = Bench {
            study,
            roles,
            places,
            catalog: &self.options.catalog,
            session: self.number,
        };
        let mut arms = Arms::start(bench, &mut self.writer, events)?;
        let worked = study.loads.iter().try_for_each(|load| {
            if self.stopped() {
                return Ok(());
            }
            self.load(load, places, &mut arms, events)
        });
        // A host that is gone has no logs to give; why it is gone is what matters then.
        let kept = arms.keep_logs(&mut self.writer);
        let put_back = settings::put_back(places, events);
        worked.and(kept).and(put_back)
    }

    /// Measures one load: what earlier sessions have left of it.
    fn load(
        &mut self,
        load: &LoadSpec,
        places: &Places,
        arms: &mut Arms<'_>,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), LabError> {
        let study = &self.header.study;
        let Some(pilot) = self.pilot(load, places, arms, events)? else {
            return Ok(());
        };
        let slice = Duration::from_nanos(pilot.slice_ns);
        let planned = preflight::blocks(study, load, slice);
        let (whole, first) = self
            .done
            .blocks
            .get(&load.name)
            .copied()
            .unwrap_or_default();
        let left = planned.saturating_sub(whole);
        if left > 0 {
            // Each session and load has an order of its own, and the same again for the same seed.
            let seed = study.blocks.seed ^ (u64::from(self.number) << 32) ^ u64::from(first);
            let mut rng = SplitMix64::new(seed);
            let (arm_count, discard) = (study.arms.len(), load.discard(&study.blocks));
            let mut next = first;
            let parts: Vec<Timeline> = parts(left, study.blocks.instances)
                .map(|blocks| {
                    let from = next;
                    next += blocks;
                    Timeline::new(arm_count, blocks, from, slice, discard, &mut rng)
                })
                .collect();
            events(Event::TrialBegun {
                load: load.name.clone(),
                blocks: left,
                length: parts.iter().map(Timeline::length).sum(),
                rate: pilot.rate,
            });
            let mut progress = Progress {
                done: whole,
                planned,
                before: Before::default(),
            };
            for (place, timeline) in parts.iter().enumerate() {
                if self.stopped() {
                    break;
                }
                if place > 0 {
                    arms.renew(&mut self.writer)?;
                }
                let trial = prepared(
                    self.header,
                    self.options,
                    load,
                    places,
                    arms,
                    timeline,
                    pilot.rate,
                )?;
                self.trial(load, arms, trial, pilot.rate, &mut progress, events)?;
            }
        }
        if self.stopped() {
            return Ok(());
        }
        let load = load.name.clone();
        events(Event::TrialEnded { load: load.clone() });
        self.writer.append(&Record::LoadEnd(LoadEndRecord {
            load,
            blocks: planned,
        }))?;
        Ok(())
    }

    fn trial(
        &mut self,
        load: &LoadSpec,
        arms: &Arms<'_>,
        mut trial: Trial<'_>,
        rate: Option<f64>,
        progress: &mut Progress,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), LabError> {
        trial.before = progress.before;
        let timeline = trial.timeline;
        let mut recorder = Recorder {
            writer: &mut self.writer,
            header: self.header,
            load,
            session: self.number,
            rate,
        };
        let mut broken: Option<LabError> = None;
        let counted = arms.counters()?;
        let outcome = trial.run(&mut |block| {
            if broken.is_some() {
                return;
            }
            let recorded = recorder.block(block).map_err(LabError::from);
            match recorded.and_then(|trials| arms.alive().map(|()| trials)) {
                Ok(trials) => {
                    progress.done += 1;
                    trials.iter().for_each(|trial| self.done.add(trial));
                    let baseline_rate = trials.first().map_or(0.0, rate_completed);
                    let load = load.name.clone();
                    events(Event::Block {
                        load,
                        done: progress.done,
                        of: progress.planned,
                        baseline_rate,
                    });
                }
                Err(error) => {
                    broken = Some(error);
                    self.options.stop.store(true, Ordering::Relaxed);
                }
            }
        });
        if let Some(error) = broken {
            return Err(error);
        }
        progress.before.slices += timeline.slices.len() as u64;
        progress.before.ns += timeline.length().as_nanos() as u64;
        // A proxy that ended between blocks shows as refused connections: name the cause.
        arms.alive()?;
        let Some(end) = self.ended(load, outcome)? else {
            return Ok(());
        };
        let place = timeline.place(self.number);
        let counted = counted.into_iter().zip(arms.counters()?);
        for (arm, (before, after)) in self.header.study.arms.iter().zip(counted) {
            let counted = part::counted(&before, &after);
            if counted.is_empty() {
                continue;
            }
            self.writer.append(&Record::Counters(CountersRecord {
                session: self.number,
                load: load.name.clone(),
                arm: arm.name.clone(),
                first_block: place.first_block,
                counted,
            }))?;
        }
        // The last of all: where it stands, a proxy without counters has counted nothing.
        let part = part::record(&self.header.study, load, place, end);
        self.writer.append(&Record::Part(Box::new(part)))?;
        Ok(())
    }

    /// What the generator says about the end of a trial. One that was stopped before a connection was
    /// open has measured nothing (`None`), and nothing is wrong with it.
    fn ended(
        &self,
        load: &LoadSpec,
        outcome: Result<TrialEnd, AgentError>,
    ) -> Result<Option<TrialEnd>, LabError> {
        let nothing = FailureKind::NoConnection;
        match outcome {
            Err(AgentError::Failed(failure)) if failure.kind == nothing && self.stopped() => {
                Ok(None)
            }
            Err(source @ AgentError::Failed(_)) => Err(LabError::Load {
                load: load.name.clone(),
                source,
            }),
            outcome => Ok(Some(outcome?)),
        }
    }

    /// The slice and the rate for a load: as chosen before, as the study says, or by trying.
    /// `None`: interrupted.
    fn pilot(
        &mut self,
        load: &LoadSpec,
        places: &Places,
        arms: &Arms<'_>,
        events: &mut dyn FnMut(Event),
    ) -> Result<Option<PilotRecord>, LabError> {
        if let Some(pilot) = self.done.pilots.get(&load.name) {
            return Ok(Some(pilot.clone()));
        }
        let study = &self.header.study;
        let rate = self.rate(load);
        let mut candidates = Vec::new();
        let slice = match study.blocks.slice {
            Some(slice) => slice,
            None => {
                events(Event::PilotBegun {
                    load: load.name.clone(),
                });
                for ms in pilot::CANDIDATES_MS {
                    let slice = Duration::from_millis(ms);
                    candidates.push(self.candidate(load, places, arms, slice, rate)?);
                    if self.stopped() {
                        return Ok(None);
                    }
                    if pilot::settled(&candidates) {
                        break;
                    }
                }
                let chosen = pilot::choose(&candidates).map_or(0, |chosen| chosen.slice_ns);
                Duration::from_nanos(chosen)
            }
        };
        let slice_ns = slice.as_nanos() as u64;
        let pilot = PilotRecord {
            load: load.name.clone(),
            slice_ns,
            rate,
            candidates,
        };
        self.writer.append(&Record::Pilot(pilot.clone()))?;
        if study.blocks.slice.is_none() {
            events(Event::PilotEnded(pilot.clone()));
        }
        Ok(Some(pilot))
    }

    fn candidate(
        &self,
        load: &LoadSpec,
        places: &Places,
        arms: &Arms<'_>,
        slice: Duration,
        rate: Option<f64>,
    ) -> Result<weir_model::record::PilotCandidate, LabError> {
        let study = &self.header.study;
        let blocks = (pilot::TRY.as_nanos() / (slice * 4).as_nanos().max(1)) as u32;
        let blocks = blocks.max(pilot::AT_LEAST_BLOCKS);
        let mut rng = SplitMix64::new(study.blocks.seed);
        let timeline = Timeline::new(2, blocks, 0, slice, study.blocks.discard, &mut rng);
        let trial = prepared(
            self.header,
            self.options,
            load,
            places,
            arms,
            &timeline,
            rate,
        )?;
        let quantity = if rate.is_some() {
            Quantity::CpuPerRequest
        } else {
            Quantity::Rate
        };
        let mut ratios = Vec::new();
        let (mut sum_ns, mut count) = (0.0, 0);
        let outcome = trial.run(&mut |block| {
            ratios.extend(pilot::log_ratios(block, quantity));
            let (more_ns, more) = pilot::response_times(block);
            (sum_ns, count) = (sum_ns + more_ns, count + more);
        });
        // A slice that is chosen by the figures of a dead proxy would be chosen in vain, and the
        // other candidates take half a minute.
        arms.alive()?;
        self.ended(load, outcome)?;
        // In an open loop the rate is given, and a slow arm's queue is what is to be seen.
        let mean = (count > 0).then(|| Duration::from_nanos((sum_ns / count as f64) as u64));
        let fits = rate.is_some() || pilot::fits(slice, study.blocks.discard, mean);
        Ok(pilot::judge(slice, blocks, &ratios, fits))
    }

    /// Rate of the open loop; `None` for a closed one.
    fn rate(&self, load: &LoadSpec) -> Option<f64> {
        match load.arrivals {
            StudyArrivals::Closed => None,
            StudyArrivals::Constant(rate) => Some(rate),
            StudyArrivals::ShareOfSlowest(share) => {
                let closed = |load: &&LoadSpec| load.arrivals == StudyArrivals::Closed;
                let first = self.header.study.loads.iter().find(closed)?;
                // Whole requests per second read better, and nobody needs more.
                self.done
                    .slowest(&first.name)
                    .map(|rate| (rate * share).round().max(1.0))
            }
        }
    }
}

/// A trial over the first of the arms, as many as the timeline has.
fn prepared<'t>(
    header: &'t RunHeader,
    options: &'t Options,
    load: &LoadSpec,
    places: &'t Places,
    arms: &Arms<'_>,
    timeline: &'t Timeline,
    rate: Option<f64>,
) -> Result<Trial<'t>, LabError> {
    let (threads, descriptors) =
        preflight::threads(&header.study, load, places, &header.cpus.generator);
    Ok(Trial {
        timeline,
        job: LoadJob {
            flows: arms.flows(
                load,
                timeline.arms,
                &arrivals::of(load, rate, &header.study.blocks),
            )?,
            slices: Vec::new(),
            drain: load.timeout,
            threads,
            descriptors,
        },
        places,
        roles: &header.cpus,
        before: Before::default(),
        stop: &options.stop,
    })
}

/// `blocks` in as many parts of nearly the same size as there are instances.
fn parts(blocks: u32, instances: u32) -> impl Iterator<Item = u32> {
    let count = instances.clamp(1, blocks.max(1));
    (0..count).map(move |part| blocks / count + u32::from(part < blocks % count))
}

fn rate_completed(trial: &TrialRecord) -> f64 {
    let completed: u64 = trial.slices.iter().map(|slice| slice.completed).sum();
    let ns: u64 = trial.slices.iter().map(|slice| slice.measured_ns).sum();
    completed as f64 / (ns.max(1) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_spread_evenly_over_instances() {
        let split = |blocks, instances| parts(blocks, instances).collect::<Vec<_>>();
        assert_eq!(split(93, 4), [24, 23, 23, 23]);
        assert_eq!(split(12, 1), [12]);
        assert_eq!(
            split(2, 4),
            [1, 1],
            "an instance without a block is not started"
        );
    }
}
