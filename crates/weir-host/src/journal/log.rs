//! File of the journal: JSON Lines, only ever appended to.
//!
//! The first line names the format and the writer. Each further line either announces a change or records the outcome
//! of a setting. A line reaches the disk before the change that it announces is made. An incomplete line (the process
//! was killed, or the power failed, during the write) therefore announces nothing that was done, and is ignored.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_files::only_ours_file;

use super::entry::{Entry, Outcome};
use super::error::{FORMAT, JournalError};
use super::key::Key;
use super::settings::Settings;

const FILE: &str = "journal.jsonl";
/// Name of the previous journal, kept for users who want to know what was done.
const PREVIOUS_FILE: &str = "journal.previous.jsonl";

/// First line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// [`FORMAT`]
    pub(super) journal: String,
    /// Id of the boot during which the settings were changed.
    pub(super) boot: String,
    pub(super) pid: u32,
    pub(super) since: String,
    pub(super) purpose: String,
    /// Settings that the study's own rows are about; settings of the catalog are not listed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) settings: BTreeSet<String>,
}

impl Header {
    /// Returns true if the catalog or the study has a row for a setting.
    pub(super) fn lists(&self, key: &Key, settings: &dyn Settings) -> bool {
        settings.has_row(key) || self.settings.contains(&key.to_string())
    }
}

/// Line after the first one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The setting may be given these values from now on.
    Ahead(Entry),
    /// The setting needs no more restoring.
    Closed(Closed),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Closed {
    pub(super) key: Key,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

/// Content of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) header: Header,
    /// Settings that are not closed, in the order in which they were first changed.
    pub(super) open: Vec<Entry>,
    /// Every setting that the journal names, with its line number.
    named: Vec<(usize, Key)>,
    /// Length of the complete lines, bytes.
    pub(super) len: u64,
}

impl Recorded {
    /// Reads the journal of a folder; `None` if nothing has been changed. A journal that others could have written is
    /// refused, since its content is applied with this user's rights, usually root's.
    pub(super) fn read(
        folder: &Path,
        boot: &str,
        settings: &dyn Settings,
    ) -> Result<Option<Recorded>, JournalError> {
        let Some(bytes) = bytes(folder)? else {
            return Ok(None);
        };
        let path = folder.join(FILE);
        let recorded = Recorded::parse(&bytes, boot, &path)?;
        if let Some(recorded) = &recorded {
            recorded.must_be_listed(&path, settings)?;
        }
        Ok(recorded)
    }

    /// Refuses a journal with a setting that has no row in the catalog or the study.
    fn must_be_listed(&self, path: &Path, settings: &dyn Settings) -> Result<(), JournalError> {
        match self.named.iter().find(|(_, key)| !self.header.lists(key, settings)) {
            None => Ok(()),
            Some((line, key)) => {
                Err(JournalError::Unlisted { path: path.to_owned(), line: *line, key: key.clone() })
            }
        }
    }

    fn parse(bytes: &[u8], boot: &str, path: &Path) -> Result<Option<Recorded>, JournalError> {
        let end = bytes.iter().rposition(|&byte| byte == b'\n');
        let len = end.map_or(0, |at| at + 1);
        let mut lines = bytes[..len].split_inclusive(|&byte| byte == b'\n').enumerate().peekable();
        let Some((_, first)) = lines.next() else {
            return Ok(None);
        };
        let mut recorded = Recorded {
            header: header(first, path)?,
            open: Vec::new(),
            named: Vec::new(),
            len: len as u64,
        };
        let survived_a_boot = recorded.header.boot != boot;
        while let Some((number, bytes)) = lines.next() {
            let read = serde_json::from_slice::<Line>(bytes)
                .map_err(|error| error.to_string())
                .and_then(|line| {
                    let key = match &line {
                        Line::Ahead(entry) => &entry.key,
                        Line::Closed(closed) => &closed.key,
                    };
                    recorded.named.push((number + 1, key.clone()));
                    apply(&mut recorded.open, line)
                });
            match read {
                Ok(()) => {}
                // The blocks of a write reach the disk in any order: the last line may be garbled
                // and yet have its end.
                Err(_) if survived_a_boot && lines.peek().is_none() => {
                    recorded.len -= bytes.len() as u64;
                }
                Err(words) => return Err(damaged(path, number + 1, words)),
            }
        }
        Ok(Some(recorded))
    }
}

/// Returns the content of a folder's journal; `None` if there is none. A journal that others could have written is
/// refused.
pub(super) fn bytes(folder: &Path) -> Result<Option<Vec<u8>>, JournalError> {
    let path = folder.join(FILE);
    if fs::symlink_metadata(&path).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    only_ours_file(&path)?;
    weir_files::read_text(&path).map(Some).map_err(JournalError::io("read", &path))
}

fn header(line: &[u8], path: &Path) -> Result<Header, JournalError> {
    #[derive(Deserialize)]
    struct Version {
        journal: String,
    }
    let Version { journal: found } =
        serde_json::from_slice(line).map_err(|error| damaged(path, 1, error.to_string()))?;
    if found != FORMAT {
        return Err(JournalError::Format { path: path.to_owned(), found });
    }
    serde_json::from_slice(line).map_err(|error| damaged(path, 1, error.to_string()))
}

pub(super) fn damaged(path: &Path, line: usize, words: String) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), line, words }
}

/// Applies a line to the list of open settings.
pub(super) fn apply(open: &mut Vec<Entry>, line: Line) -> Result<(), String> {
    match line {
        Line::Ahead(ahead) => match find(open, &ahead.key, ahead.namespace.as_deref()) {
            Some(index) => open[index].given.extend(ahead.given),
            None => open.push(ahead),
        },
        Line::Closed(closed) => {
            let index = find(open, &closed.key, closed.namespace.as_deref());
            open.remove(index.ok_or_else(|| format!("{} was not open", closed.key))?);
        }
    }
    Ok(())
}

/// Returns the index of a setting's entry for a network namespace.
pub(super) fn find(open: &[Entry], key: &Key, namespace: Option<&str>) -> Option<usize> {
    open.iter().position(|entry| entry.is_of(key, namespace))
}

/// Journal file that is open for writing.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    /// Length of the complete lines, bytes.
    len: u64,
}

impl Log {
    /// Begins a new journal in place of one that has nothing open.
    pub(super) fn begin(folder: &Path, header: &impl Serialize) -> Result<Log, JournalError> {
        let path = folder.join(FILE);
        match fs::rename(&path, folder.join(PREVIOUS_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(JournalError::io("rename", &path)(error));
            }
            _ => {}
        }
        let file = weir_files::append(&path);
        let mut log = Log { file: file.map_err(JournalError::io("create", &path))?, path, len: 0 };
        log.append(header)?;
        sync_folder(folder)?;
        Ok(log)
    }

    /// Continues a journal whose complete lines have `len` bytes.
    pub(super) fn resume(folder: &Path, len: u64) -> Result<Log, JournalError> {
        let path = folder.join(FILE);
        let file = OpenOptions::new().append(true).open(&path);
        Ok(Log { file: file.map_err(JournalError::io("open", &path))?, path, len })
    }

    /// Appends a line, and returns when it is on the disk.
    pub(super) fn append(&mut self, line: &impl Serialize) -> Result<(), JournalError> {
        let line = serde_json::to_vec(line).map_err(io::Error::other);
        line.and_then(|line| self.append_bytes(line)).map_err(JournalError::io("write", &self.path))
    }

    fn append_bytes(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        // A half line that an earlier attempt has left (the disk was full) must not become the
        // beginning of this one.
        self.file.set_len(self.len)?;
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        self.len += line.len() as u64;
        Ok(())
    }
}

/// Creates the journal's folder and its parents for the owner alone, and syncs them to the disk.
pub(super) fn create_folder(folder: &Path) -> Result<(), JournalError> {
    weir_files::only_ours_to_be_made(folder)?;
    let missing: Vec<_> = folder
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .collect();
    weir_files::make_folders(folder).map_err(JournalError::io("create", folder))?;
    for path in missing {
        sync_folder(
            path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        )?;
    }
    Ok(())
}

/// Syncs a folder to the disk: the name of a new file is stored in its folder.
fn sync_folder(folder: &Path) -> Result<(), JournalError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(JournalError::io("flush", folder))
}
