//! Checks that records from before a kill remain, and that the run can be finished.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use weir_model::record::{Outcome, Record};
use weir_record::Run;
use weir_testkit::program::{Ended, Running};

use super::scene::Scene;

/// Limit that only a hanging process reaches.
const PATIENCE: Duration = Duration::from_secs(150);

/// State of a killed weir's run after it was resumed.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Lines that were complete and are now missing or different.
    pub(crate) lost: usize,
    /// True if the run was resumed to its end; `None` if there was nothing to resume.
    pub(crate) resumed: Option<bool>,
    pub(crate) faults: Vec<String>,
}

/// Waits for the end of weir, for a limited time.
pub(crate) fn end(mut run: Running) -> Result<Ended, String> {
    let begun = std::time::Instant::now();
    while run.is_alive() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("weir hangs:\n{}", run.stderr()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(run.end())
}

/// Returns the lines of the records that a kill cannot have cut short.
pub(crate) fn whole_lines(scene: &Scene<'_>) -> Vec<u8> {
    let mut bytes = fs::read(scene.sandbox.run_folder().join("records.jsonl")).unwrap_or_default();
    let last_line = bytes.iter().rposition(|&byte| byte == b'\n');
    bytes.truncate(last_line.map_or(0, |end| end + 1));
    bytes
}

/// Resumes the run to its end, and checks all of it.
pub(crate) fn recover(scene: &Scene<'_>, before: &[u8]) -> Recovered {
    let mut recovered = Recovered::default();
    match Run::read(&scene.sandbox.run_folder()) {
        Ok(run) => {
            recovered.reads_back(scene);
            if run.outcome() != Some(Outcome::Complete) {
                recovered.resume(scene);
            }
            recovered.compare(scene, before);
            recovered.is_whole(scene);
        }
        Err(error) => recovered.never_began(scene, before, &error.to_string()),
    }
    recovered
}

impl Recovered {
    fn fault(&mut self, words: String) {
        self.faults.push(words);
    }

    /// Checks a run that was killed before its header was written.
    fn never_began(&mut self, scene: &Scene<'_>, before: &[u8], error: &str) {
        self.lost = before.split(|&byte| byte == b'\n').count() - 1;
        if self.lost > 0 {
            self.fault(format!("there are records and no run: {error}"));
        }
        match end(scene.resume()) {
            Err(words) => self.fault(words),
            Ok(ended) if ended.code == Some(0) || !ended.is_clear() => {
                self.fault(format!("resuming what never began: {ended:?}"));
            }
            Ok(_) => {}
        }
    }

    fn reads_back(&mut self, scene: &Scene<'_>) {
        let report = scene.report();
        if report.code != Some(0) || report.stdout.is_empty() {
            self.fault(format!("weir report: {report:?}"));
        }
    }

    fn resume(&mut self, scene: &Scene<'_>) {
        self.resumed = Some(false);
        match end(scene.resume()) {
            Ok(ended) if ended.code == Some(0) => self.resumed = Some(true),
            Ok(ended) => self.fault(format!("weir run --resume: {ended:?}")),
            Err(words) => self.fault(words),
        }
    }

    fn compare(&mut self, scene: &Scene<'_>, before: &[u8]) {
        let after = whole_lines(scene);
        if after.starts_with(before) {
            return;
        }
        let lines_after: BTreeSet<&[u8]> = after.split(|&byte| byte == b'\n').collect();
        let lines_before = before.split(|&byte| byte == b'\n');
        let missing = lines_before.filter(|line| !lines_after.contains(line));
        self.lost = missing.count();
        self.fault(format!("{} records are not there any more", self.lost));
    }

    /// Checks that every block is there once, with all its arms and all their histograms.
    fn is_whole(&mut self, scene: &Scene<'_>) {
        let run = match Run::read(&scene.sandbox.run_folder()) {
            Ok(run) => run,
            Err(error) => return self.fault(format!("the finished run: {error}")),
        };
        if run.outcome() != Some(Outcome::Complete) {
            return self.fault(format!("the run ended as {:?}", run.outcome()));
        }
        let planned = run.records.iter().rev().find_map(|record| match record {
            Record::LoadEnd(end) => Some(end.blocks as usize),
            _ => None,
        });
        let arms = run.header.study.arms.len();
        let blocks = run.blocks("closed");
        let complete: Vec<u32> = blocks
            .iter()
            .filter(|(_, trials)| trials.len() == arms)
            .map(|((block, _), _)| *block)
            .collect();
        let numbers: BTreeSet<u32> = complete.iter().copied().collect();
        if Some(complete.len()) != planned || numbers.len() != complete.len() {
            self.fault(format!("the blocks {complete:?} of {planned:?} planned"));
        }
        for trials in blocks.values() {
            let names: BTreeSet<&str> = trials.iter().map(|trial| &*trial.arm).collect();
            if names.len() != trials.len() {
                self.fault(format!("an arm is twice in a block: {names:?}"));
            }
        }
        for trial in run.trials() {
            // That it is the right one was seen when the run was read. On a busy machine an arm may have answered
            // nothing in a block.
            let is_missing = run.histogram(&trial.response_time).is_empty();
            if is_missing && trial.response_time.count > 0 {
                self.fault(format!("no histogram {}", trial.response_time.tag));
            }
        }
        self.reads_back(scene);
    }
}
