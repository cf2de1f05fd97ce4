//! Reader of run folders: a run in memory, its histograms checked against its records.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use weir_model::record::{
    FORMAT, LookRecord, Outcome, PartRecord, Phase, PilotRecord, QuantileSummary, Record,
    RunHeader, TrialRecord,
};
use weir_model::study::Study;

use crate::histogram_log::{self, LoggedHistogram};
use crate::samples::{Samples, read_samples};
use crate::{
    HEADER_FILE, HISTOGRAMS_FILE, HistogramKind, RECORDS_FILE, RecordError, STUDY_FILE, tag,
};

/// A run, read from its folder.
#[derive(Debug)]
pub struct Run {
    /// Path of the folder.
    pub dir: PathBuf,
    /// The plan of the run: its study, its hosts, and the version of weir.
    pub header: RunHeader,
    /// The study as it was typed.
    pub study_text: String,
    /// All records, in order of time.
    pub records: Vec<Record>,
    /// Samples of hosts and proxies.
    pub samples: Samples,
    /// True if a half-written last line was ignored, because the process was killed while it wrote.
    pub truncated: bool,
    /// Histograms by tag.
    histograms: HashMap<String, Vec<LoggedHistogram>>,
}

impl Run {
    /// Reads the run in `dir`. A run that is still being written is read as far as it got.
    ///
    /// # Errors
    /// There is no run, its format is unknown, a line other than the last is damaged (named by file and line), the
    /// histogram of a record is missing or has other values than the record says, or the kernel refuses.
    pub fn read(dir: &Path) -> Result<Run, RecordError> {
        let header = read_header(dir)?;
        let study_path = dir.join(STUDY_FILE);
        let study_text = weir_files::read_text(&study_path)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(RecordError::io("read", &study_path))?;

        // Records before histograms: every record's histogram was on disk before it.
        let path = dir.join(RECORDS_FILE);
        let bytes = weir_files::read(&path).map_err(RecordError::io("read", &path))?;
        let complete_lines = whole_lines(&bytes);
        let records = complete_lines
            .split_inclusive(|&byte| byte == b'\n')
            .enumerate()
            .map(|(index, line)| parse(&path, index, line.trim_ascii_end()))
            .collect::<Result<_, _>>()?;
        let path = dir.join(HISTOGRAMS_FILE);
        let log = weir_files::read(&path).map_err(RecordError::io("read", &path))?;
        let whole_log = whole_lines(&log);
        let histograms = histogram_log::read(whole_log)
            .map_err(|(line, message)| RecordError::Corrupt { path, line, message })?;
        let run = Run {
            dir: dir.to_owned(),
            header,
            study_text,
            records,
            samples: read_samples(dir)?,
            truncated: whole_log.len() != log.len() || complete_lines.len() != bytes.len(),
            histograms,
        };
        run.check_histograms()?;
        Ok(run)
    }

    /// Returns the histogram behind a summary: (nanoseconds, number of values equal to them), ascending. Empty if it
    /// was not kept.
    pub fn histogram(&self, summary: &QuantileSummary) -> &[(u64, u64)] {
        self.kept(summary).map_or(&[], |kept| &kept.buckets)
    }

    /// Returns the histogram of a trial's response times without the slices in which the machine stood still
    /// ([`HistogramKind::Undisturbed`]); `None` if it has no such slices.
    pub fn undisturbed(&self, trial: &TrialRecord) -> Option<&[(u64, u64)]> {
        if !trial.slices.iter().any(|slice| slice.stood_still) {
            return None;
        }
        Some(self.kept_undisturbed(trial).map_or(&[], |histogram| &histogram.buckets))
    }

    /// Returns the latest histogram that fits the summary; [`histogram_log::read`] explains why there may be others.
    fn kept(&self, summary: &QuantileSummary) -> Option<&LoggedHistogram> {
        self.all_kept(summary).next()
    }

    /// Returns all histograms that fit the summary, the latest one first.
    fn all_kept<'r>(
        &'r self,
        summary: &QuantileSummary,
    ) -> impl Iterator<Item = &'r LoggedHistogram> + use<'r> {
        let totals = (summary.count, summary.max);
        self.histograms
            .get(&summary.tag)
            .into_iter()
            .flatten()
            .rev()
            .filter(move |kept| (kept.count, kept.max) == totals)
    }

    /// Returns the first undisturbed histogram that was written after the trial's response times. These may fit another
    /// trial's summary too: two trials in which nothing was answered have the same.
    fn kept_undisturbed(&self, trial: &TrialRecord) -> Option<&LoggedHistogram> {
        let kind = HistogramKind::Undisturbed;
        let undisturbed = self.histograms.get(&tag(&trial.load, &trial.arm, trial.block, kind))?;
        self.all_kept(&trial.response_time).find_map(|all| {
            undisturbed
                .iter()
                .find(|kept| kept.line > all.line)
                .filter(|kept| kept.count <= all.count)
        })
    }

    /// Checks every trial against its histograms, because figures rest on both.
    fn check_histograms(&self) -> Result<(), RecordError> {
        for (line, record) in (1..).zip(&self.records) {
            let Record::Trial(trial) = record else {
                continue;
            };
            let summaries =
                [&trial.response_time, &trial.service_time, &trial.first_byte, &trial.dispatch_lag];
            for summary in summaries {
                if !summary.tag.is_empty() && self.kept(summary).is_none() {
                    return Err(self.damaged(line, self.mismatch(summary)));
                }
            }
            let is_split = trial.slices.iter().any(|slice| slice.stood_still)
                && trial.slices.iter().any(|slice| !slice.stood_still && slice.due > 0);
            let is_kept = !trial.response_time.tag.is_empty();
            if is_split && is_kept && self.kept_undisturbed(trial).is_none() {
                let message = format!(
                    "{HISTOGRAMS_FILE} lacks the response times of `{}` without the slices in which the machine \
                     stood still",
                    trial.response_time.tag
                );
                return Err(self.damaged(line, message));
            }
        }
        Ok(())
    }

    fn damaged(&self, line: usize, message: String) -> RecordError {
        RecordError::Corrupt { path: self.dir.join(RECORDS_FILE), line, message }
    }

    /// Describes the difference between a summary and the histogram in the log.
    fn mismatch(&self, summary: &QuantileSummary) -> String {
        let QuantileSummary { tag, count, max, .. } = summary;
        let wanted = format!("the histogram `{tag}` must have {count} values up to {max} ns");
        match self.histograms.get(tag).and_then(|all| all.last()) {
            None => format!("{wanted}, but {HISTOGRAMS_FILE} does not have it"),
            Some(found) => format!(
                "{wanted}, but the one in {HISTOGRAMS_FILE}:{} has {} values up to {} ns",
                found.line, found.count, found.max
            ),
        }
    }

    /// Returns all trials that figures rest on, in order of time; those of other phases are left out.
    pub fn trials(&self) -> impl Iterator<Item = &TrialRecord> {
        self.trials_in(Phase::counts)
    }

    /// Returns all trials of some phases, in order of time.
    pub fn trials_in(&self, wanted: fn(Phase) -> bool) -> impl Iterator<Item = &TrialRecord> {
        self.records.iter().filter_map(move |record| match record {
            Record::Trial(trial) if wanted(trial.phase) => Some(&**trial),
            _ => None,
        })
    }

    /// Groups the trials of a load by (block, session), ascending. Within a block they are in the order of the study's
    /// arms. A block that a kill cut short lacks arms. If the resumed session used its number again, the two are kept
    /// apart, because blocks never span sessions.
    pub fn blocks(&self, load: &str) -> BTreeMap<(u32, u32), Vec<&TrialRecord>> {
        self.blocks_in(load, Phase::counts)
    }

    /// Groups the trials of a load in some phases by (block, session), ascending.
    pub fn blocks_in(
        &self,
        load: &str,
        wanted: fn(Phase) -> bool,
    ) -> BTreeMap<(u32, u32), Vec<&TrialRecord>> {
        let mut blocks: BTreeMap<(u32, u32), Vec<&TrialRecord>> = BTreeMap::new();
        let trials = self.trials_in(wanted);
        for trial in trials.filter(|trial| trial.load == load) {
            let block = blocks.entry((trial.block, trial.session)).or_default();
            block.push(trial);
        }
        for block in blocks.values_mut() {
            block.sort_by_key(|trial| self.place_of(&trial.arm));
        }
        blocks
    }

    /// Returns the trials of one arm under one load, in block order.
    pub fn trials_of(&self, load: &str, arm: &str) -> Vec<&TrialRecord> {
        let mut trials: Vec<_> =
            self.trials().filter(|trial| trial.load == load && trial.arm == arm).collect();
        trials.sort_by_key(|trial| (trial.block, trial.session));
        trials
    }

    /// Returns the looks at a load, in order.
    pub fn looks(&self, load: &str) -> Vec<&LookRecord> {
        self.records
            .iter()
            .filter_map(|record| match record {
                Record::Look(look) if look.load == load => Some(&**look),
                _ => None,
            })
            .collect()
    }

    /// Returns the latest choice of the slice for a load.
    pub fn pilot(&self, load: &str) -> Option<&PilotRecord> {
        self.records.iter().rev().find_map(|record| match record {
            Record::Pilot(pilot) if pilot.load == load => Some(pilot),
            _ => None,
        })
    }

    /// Returns the continuous trials of a load that have ended and that figures rest on, in order of time.
    pub fn parts(&self, load: &str) -> impl Iterator<Item = &PartRecord> {
        self.parts_in(load, Phase::counts)
    }

    /// Returns the continuous trials of a load in some phases that have ended, in order of time.
    pub fn parts_in(
        &self,
        load: &str,
        wanted: fn(Phase) -> bool,
    ) -> impl Iterator<Item = &PartRecord> {
        self.records.iter().filter_map(move |record| match record {
            Record::Part(part) if part.load == load && wanted(part.phase) => Some(&**part),
            _ => None,
        })
    }

    /// Returns the outcome of the run; `None` if it is still going on or its process was killed. The end of an earlier
    /// session does not count once another one began.
    pub fn outcome(&self) -> Option<Outcome> {
        self.records
            .iter()
            .rev()
            .take_while(|record| !matches!(record, Record::Session(_)))
            .find_map(|record| match record {
                Record::End(end) => Some(end.outcome),
                _ => None,
            })
    }

    fn place_of(&self, arm: &str) -> usize {
        let arms = &self.header.study.arms;
        arms.iter().position(|known| known.name == arm).unwrap_or(arms.len())
    }
}

/// Returns `bytes` up to and including the last newline: a line without one was never completely written.
pub(crate) fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte == b'\n');
    &bytes[..end.map_or(0, |end| end + 1)]
}

/// Reads what is known of the run in `dir` since before its first trial.
///
/// # Errors
/// The same as of [`Run::read`].
pub fn read_header(dir: &Path) -> Result<RunHeader, RecordError> {
    /// The one field that every format has, so that an unknown format is reported rather than misread.
    #[derive(Deserialize)]
    struct Format {
        format: String,
    }
    let path = dir.join(HEADER_FILE);
    let text = match weir_files::read_text(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && dir.is_dir() => {
            return Err(RecordError::NotARun(dir.to_owned()));
        }
        Err(error) => return Err(RecordError::io("read", &path)(error)),
    };
    let Format { format } = parse(&path, 0, &text)?;
    if format != FORMAT {
        return Err(RecordError::UnknownFormat { path, found: format });
    }
    let header: RunHeader = parse(&path, 0, &text)?;
    match fault_of(&header.study) {
        None => Ok(header),
        Some(message) => {
            Err(RecordError::Corrupt { path, line: 1, message: format!("study: {message}") })
        }
    }
}

/// Returns what no study can have that was checked, and what an analysis would fail at; `None` if there is nothing.
fn fault_of(study: &Study) -> Option<&'static str> {
    let objective = &study.objective;
    if study.arms.is_empty() {
        Some("it has no arm")
    } else if study.arms.iter().any(|arm| arm.against >= study.arms.len()) {
        Some("an arm is compared with one that is not there")
    } else if !(0.5..1.0).contains(&objective.confidence) || !(0.0..1.0).contains(&objective.band) {
        Some("confidence or band is no share")
    } else if !(0.0..1.0).contains(&study.blocks.discard) {
        Some("the part of a slice that is left out is no share")
    } else {
        None
    }
}

/// Parses JSON that begins on line `index` (from 0) of `path`.
fn parse<T: DeserializeOwned>(path: &Path, index: usize, text: &[u8]) -> Result<T, RecordError> {
    serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        // serde_json counts lines from 1 and appends its own place, which is within `text`.
        let position = format!(" at line {} column {}", error.line(), error.column());
        RecordError::Corrupt {
            path: path.to_owned(),
            line: index + error.line().max(1),
            message: message.strip_suffix(&position).unwrap_or(&message).to_owned(),
        }
    })
}
