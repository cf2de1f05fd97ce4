//! Verdicts of a running run: its folder is read and analyzed now and then.
//!
//! The thread is as polite as can be: at nice 10, off the CPUs reserved for proxies, and idle for fifty times the CPU
//! time of the last analysis, so that it takes at most 2 % of one CPU.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::time::{ClockId, clock_gettime};
use weir_analysis::findings::{Comparison, Findings};
use weir_lab::Event as LabEvent;
use weir_model::progress::Verdict;
use weir_model::quantity::CpuSet;
use weir_record::Run;
use weir_report::words;

use super::{Event, POLITE};

/// Least time from one analysis to the next, together with [`REST`].
const EVERY: Duration = Duration::from_secs(5);
/// Least time from one analysis to the next, as a multiple of the CPU time that it takes.
const REST: u32 = 50;

/// Analyzes a run while it goes on.
pub(crate) struct Analyst {
    events: Sender<Event>,
    /// Folder of the records, and the CPUs to use.
    place: Option<(PathBuf, Option<CpuSet>)>,
    /// Channel to the thread, which gets a message for every block.
    blocks: Option<Sender<()>>,
}

impl Analyst {
    /// Creates an analyst that sends its results as [`Event::Verdicts`].
    pub(crate) fn new(events: &Sender<Event>) -> Analyst {
        Analyst { events: events.clone(), place: None, blocks: None }
    }

    /// Takes an event of the run.
    pub(crate) fn hear(&mut self, event: &LabEvent) {
        match event {
            LabEvent::Begun { folder, cpus, .. } => {
                self.place = Some((folder.clone(), cpus.clone()));
            }
            LabEvent::Block { .. } => {
                if let Some((folder, cpus)) = self.place.take() {
                    let (blocks, heard) = channel();
                    let events = self.events.clone();
                    let builder = std::thread::Builder::new().name("weir-analyst".to_owned());
                    let begun = builder.spawn(move || {
                        settle(cpus.as_ref());
                        watch(&folder, &heard, &events);
                    });
                    self.blocks = begun.is_ok().then_some(blocks);
                }
                if let Some(blocks) = &self.blocks {
                    // The thread may have ended.
                    let _ = blocks.send(());
                }
            }
            _ => {}
        }
    }
}

fn settle(cpus: Option<&CpuSet>) {
    let _ = setpriority_process(None, POLITE);
    if let Some(cpus) = cpus {
        let _ = weir_probe::keep_to(None, cpus.cpus());
    }
}

/// Analyzes the run after blocks, until no more will come.
fn watch(folder: &std::path::Path, blocks: &Receiver<()>, events: &Sender<Event>) {
    while blocks.recv().is_ok() {
        let (begun, cpu) = (Instant::now(), cpu_time());
        // A run that cannot be read now, perhaps because a record is being written, can be later.
        if let Ok(run) = Run::read(folder) {
            let verdicts = list_verdicts(&weir_analysis::analyze(&run));
            if !verdicts.is_empty() && events.send(Event::Verdicts { verdicts }).is_err() {
                return;
            }
        }
        let due = begun + EVERY.max((cpu_time() - cpu) * REST);
        // What comes before the next look is seen then; the end is heard at once.
        loop {
            let wait = due.saturating_duration_since(Instant::now());
            match blocks.recv_timeout(wait) {
                Ok(()) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Returns every comparison, in the order of the study.
fn list_verdicts(findings: &Findings) -> Vec<Verdict> {
    let all = findings
        .loads
        .iter()
        .flat_map(|load| load.comparisons.iter().map(|comparison| verdict(&load.load, comparison)));
    all.collect()
}

fn verdict(load: &str, found: &Comparison) -> Verdict {
    let (low, high) = found.interval;
    let is_known = found.ratio.is_finite() && low.is_finite();
    Verdict {
        load: load.to_owned(),
        metric: words::metric_head(found.metric).to_owned(),
        arm: found.arm.clone(),
        against: found.against.clone(),
        verdict: found.verdict.word().to_owned(),
        ratio: is_known.then_some(found.ratio),
        interval: (is_known && high.is_finite()).then_some((low, high)),
        blocks: found.n * found.merged,
    }
}
