//! The runs of a folder, each by its header, the end of its records, its summary and its notes.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_files::{only_ours_named, open_regular};
use weir_model::record::{Outcome, Record, RunHeader, Validity};
use weir_record::{HEADER_FILE, RECORDS_FILE, STUDY_FILE, read_header};

use crate::folder::files_in;
use crate::notes::read_notes;
use crate::summary::read_summary;

/// Maximum length of a header that a list reads, bytes. That of a study with hundreds of arms has about one MiB.
const LONGEST_HEADER: u64 = 8 << 20;
/// Number of bytes at the end of the records in which the end of the run is looked for.
const TAIL: u64 = 256 << 10;

/// A run in a folder, or what looks like one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunEntry {
    /// Name of the run's folder.
    pub name: String,
    /// Path of the run's folder.
    pub path: PathBuf,
    /// State of the run.
    pub state: RunState,
    /// Time when the run began, RFC 3339; empty if it is unknown.
    pub started_at: String,
    /// Name of the study.
    pub study: String,
    /// Title of the study.
    pub title: String,
    /// The study's question.
    pub question: String,
    /// Names of the arms; the first is the baseline.
    pub arms: Vec<String>,
    /// Kinds of proxies, each once, in alphabetical order.
    pub proxies: Vec<String>,
    /// Validity of the answer; absent if the run was not analyzed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
    /// The verdict in a few words; empty if the run was not analyzed.
    pub verdict: String,
    /// Length of all files together, bytes.
    pub size_bytes: u64,
    /// Tags of the user's, in alphabetical order.
    pub tags: Vec<String>,
    /// Note of the user's; empty if there is none.
    pub note: String,
    /// Problems of the folder; empty if there is none.
    pub problems: Vec<FolderProblem>,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Everything planned was measured.
    Complete,
    /// The user stopped the run.
    Interrupted,
    /// An error stopped the run.
    Failed,
    /// A weir is working on the run.
    Running,
    /// The run has no end: its process was killed.
    Unfinished,
    /// The folder has no header that can be read.
    Unreadable,
}

impl RunState {
    /// Returns the state in one word.
    pub fn word(self) -> &'static str {
        match self {
            RunState::Complete => "complete",
            RunState::Interrupted => "interrupted",
            RunState::Failed => "failed",
            RunState::Running => "running",
            RunState::Unfinished => "unfinished",
            RunState::Unreadable => "unreadable",
        }
    }
}

/// Something that is wrong with a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "problem")]
pub enum FolderProblem {
    /// The folder is a symbolic link, which is not followed.
    Link,
    /// There is no `run.json`: the run was killed before its first trial.
    NoHeader,
    /// Others could have written the folder.
    Foreign {
        /// The folder that is open to others, and the reason.
        why: String,
    },
    /// Something cannot be read.
    Unreadable {
        /// The file, and the reason.
        why: String,
    },
}

impl fmt::Display for FolderProblem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FolderProblem::Link => to.write_str("it is a symbolic link, which is not followed"),
            FolderProblem::NoHeader => {
                write!(to, "it has no {HEADER_FILE}: the run was killed before its first trial")
            }
            FolderProblem::Foreign { why } => write!(to, "others could have written it: {why}"),
            FolderProblem::Unreadable { why } => to.write_str(why),
        }
    }
}

impl RunEntry {
    fn new(path: &Path) -> RunEntry {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        RunEntry {
            name: name.unwrap_or_default(),
            path: path.to_owned(),
            state: RunState::Unreadable,
            started_at: String::new(),
            study: String::new(),
            title: String::new(),
            question: String::new(),
            arms: Vec::new(),
            proxies: Vec::new(),
            validity: None,
            verdict: String::new(),
            size_bytes: 0,
            tags: Vec::new(),
            note: String::new(),
            problems: Vec::new(),
        }
    }

    fn describe(&mut self, header: &RunHeader) {
        let study = &header.study;
        self.started_at.clone_from(&header.started_at);
        self.study.clone_from(&study.name);
        self.title.clone_from(&study.title);
        study.question.trim().clone_into(&mut self.question);
        self.arms = study.arms.iter().map(|arm| arm.name.clone()).collect();
        let kinds = study.arms.iter().map(|arm| study.proxy_of(arm).kind.name());
        let kinds: BTreeSet<&str> = kinds.collect();
        self.proxies = kinds.into_iter().map(str::to_owned).collect();
    }

    fn fails(&mut self, file: &str, error: &io::Error) {
        self.problems.push(unreadable(format!("{file}: {error}")));
    }
}

/// Lists the runs in a folder, the newest first; those without a time come last, by name.
///
/// # Errors
/// The folder cannot be read. Whatever is wrong with a run is in its entry.
pub fn list_runs(folder: &Path, weir_version: &str) -> io::Result<Vec<RunEntry>> {
    let mut entries: Vec<RunEntry> = fs::read_dir(folder)?
        .flatten()
        .filter(|entry| is_run_or_rest_of_one(&entry.path()))
        .map(|entry| read_entry(&entry.path(), weir_version))
        .collect();
    entries.sort_by(|one, other| {
        other.started_at.cmp(&one.started_at).then_with(|| one.name.cmp(&other.name))
    });
    Ok(entries)
}

/// Returns true for a folder with a file that only runs have. What a removal left is none.
fn is_run_or_rest_of_one(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let files = [HEADER_FILE, RECORDS_FILE, STUDY_FILE];
    !is_hidden && files.iter().any(|file| path.join(file).symlink_metadata().is_ok())
}

/// Reads what a list shows of one run folder.
pub fn read_entry(path: &Path, weir_version: &str) -> RunEntry {
    let mut entry = RunEntry::new(path);
    if path.is_symlink() {
        entry.problems.push(FolderProblem::Link);
        return entry;
    }
    if let Err(why) = only_ours_named(path) {
        entry.problems.push(FolderProblem::Foreign { why: why.to_string() });
    }
    match files_in(path) {
        Ok(files) => entry.size_bytes = files.iter().map(|file| file.bytes).sum(),
        Err(error) => entry.fails("folder", &error),
    }
    match read_notes(path) {
        Ok(notes) => {
            entry.tags = notes.tags.into_iter().collect();
            entry.note = notes.note;
        }
        Err(error) => entry.problems.push(unreadable(error)),
    }
    let header = match read_short_header(path) {
        Ok(header) => header,
        Err(problem) => {
            entry.problems.push(problem);
            return entry;
        }
    };
    entry.describe(&header);
    entry.state = match read_state(path) {
        Ok(state) => state,
        Err(error) => {
            entry.fails(RECORDS_FILE, &error);
            return entry;
        }
    };
    if let Some(summary) = read_summary(path, weir_version) {
        entry.validity = Some(summary.validity);
        entry.verdict = summary.verdict;
    }
    entry
}

fn read_short_header(dir: &Path) -> Result<RunHeader, FolderProblem> {
    let length = match dir.join(HEADER_FILE).symlink_metadata() {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(FolderProblem::NoHeader);
        }
        Err(error) => return Err(unreadable(format!("{HEADER_FILE}: {error}"))),
    };
    if length > LONGEST_HEADER {
        return Err(unreadable(format!("{HEADER_FILE}: it is longer than {LONGEST_HEADER} bytes")));
    }
    read_header(dir).map_err(unreadable)
}

fn unreadable(why: impl ToString) -> FolderProblem {
    FolderProblem::Unreadable { why: why.to_string() }
}

/// Returns the state of a run by the end of its records.
fn read_state(dir: &Path) -> io::Result<RunState> {
    let mut file = open_regular(&dir.join(RECORDS_FILE))?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    (&mut file).take(TAIL).read_to_end(&mut tail)?;
    let outcome = tail
        .split(|byte| *byte == b'\n')
        .rev()
        .take_while(|line| !line.starts_with(br#"{"record":"session""#))
        .filter(|line| line.starts_with(br#"{"record":"end""#))
        .find_map(|line| match serde_json::from_slice(line) {
            Ok(Record::End(end)) => Some(end.outcome),
            _ => None,
        });
    Ok(match outcome {
        Some(Outcome::Complete) => RunState::Complete,
        Some(Outcome::Interrupted) => RunState::Interrupted,
        Some(Outcome::Failed) => RunState::Failed,
        None if is_being_written(&file) => RunState::Running,
        None => RunState::Unfinished,
    })
}

/// Returns true if a weir holds the lock of the run's records.
pub(crate) fn is_being_written(records: &File) -> bool {
    matches!(records.try_lock_shared(), Err(TryLockError::WouldBlock))
}
