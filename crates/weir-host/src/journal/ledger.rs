//! Journal of changes other than those of kernel settings: the same file and the same lock, with lines that the caller
//! defines.
//!
//! A line is, as for settings, on the disk before the change that it announces is made, so an incomplete last line
//! announces nothing that was done. The journal is trusted only if nobody else could have written it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_files::only_ours;

use super::error::{Holder, JournalError};
use super::lock::Lock;
use super::log::{self, Log, create_folder};

/// A journal that one weir process has open; it holds the folder's lock until it is dropped.
#[derive(Debug)]
pub struct Ledger {
    folder: PathBuf,
    /// Journal file; None until the first line is written or the journal is read, so a process that changes nothing
    /// writes nothing.
    log: Option<Log>,
    // The last field, so that the lock outlives everything else.
    lock: Lock,
}

impl Ledger {
    /// Takes the lock of a folder, which is created if it does not exist. `purpose` is shown to other processes that
    /// find the lock taken.
    ///
    /// # Errors
    /// Another weir holds the lock, the folder cannot be created, or others could write there.
    pub fn open(folder: &Path, purpose: &str) -> Result<Ledger, JournalError> {
        create_folder(folder)?;
        only_ours(folder)?;
        Ok(Ledger { folder: folder.to_owned(), log: None, lock: Lock::take(folder, purpose)? })
    }

    /// Returns this process's own entry as the holder of the lock.
    pub fn holder(&self) -> &Holder {
        &self.lock.holder
    }

    /// Reads the journal, one value for each line, the head first; empty if there is no journal.
    ///
    /// # Errors
    /// The journal cannot be read, others could have written it, or a line is damaged.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, JournalError> {
        let Some((lines, len)) = read(&self.folder)? else {
            return Ok(Vec::new());
        };
        self.log = Some(Log::resume(&self.folder, len)?);
        Ok(lines)
    }

    /// Begins a new journal with this line, in place of one that has nothing open.
    ///
    /// # Errors
    /// The disk does not accept the line.
    pub fn begin(&mut self, head: &impl Serialize) -> Result<(), JournalError> {
        self.log = Some(Log::begin(&self.folder, head)?);
        Ok(())
    }

    /// Appends a line and returns when it is on the disk. Writes nothing if no journal was begun or read.
    ///
    /// # Errors
    /// The disk does not accept the line.
    pub fn append(&mut self, line: &impl Serialize) -> Result<(), JournalError> {
        self.log.iter_mut().try_for_each(|log| log.append(line))
    }
}

/// Reads the journal of a folder, one value for each line, without waiting for the process that holds it.
///
/// # Errors
/// The journal cannot be read, others could have written it, or a line is damaged.
pub fn peek<T: DeserializeOwned>(folder: &Path) -> Result<Vec<T>, JournalError> {
    if folder.exists() {
        only_ours(folder)?;
        Ok(read(folder)?.map_or(Vec::new(), |(lines, _)| lines))
    } else {
        Ok(Vec::new())
    }
}

/// Returns the complete lines of a journal and their total length in bytes; None if there is no journal.
fn read<T: DeserializeOwned>(folder: &Path) -> Result<Option<(Vec<T>, u64)>, JournalError> {
    let Some(bytes) = log::bytes(folder)? else {
        return Ok(None);
    };
    let end = bytes.iter().rposition(|&byte| byte == b'\n');
    let len = end.map_or(0, |at| at + 1);
    let read =
        bytes[..len].split_inclusive(|&byte| byte == b'\n').enumerate().map(|(number, line)| {
            serde_json::from_slice(line)
                .map_err(|error| log::damaged(folder, number + 1, error.to_string()))
        });
    Ok(Some((read.collect::<Result<_, _>>()?, len as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_whole_announces_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("journal");
        let mut ledger = Ledger::open(&folder, "a test").unwrap();
        assert_eq!(ledger.read::<String>().unwrap(), Vec::<String>::new());
        ledger.append(&"lost: nothing was begun").unwrap();
        ledger.begin(&"head").unwrap();
        ledger.append(&"one").unwrap();
        let held = Ledger::open(&folder, "another test").unwrap_err();
        assert!(matches!(held, JournalError::Held(Some(_))), "{held}");
        drop(ledger);
        let path = folder.join("journal.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}\"half")).unwrap();
        assert_eq!(peek::<String>(&folder).unwrap(), ["head", "one"]);
        let mut ledger = Ledger::open(&folder, "a test").unwrap();
        assert_eq!(ledger.read::<String>().unwrap(), ["head", "one"]);
        ledger.append(&"two").unwrap();
        assert_eq!(peek::<String>(&folder).unwrap(), ["head", "one", "two"]);
        let damaged = peek::<u32>(&folder).unwrap_err();
        assert!(matches!(damaged, JournalError::Damaged { line: 1, .. }), "{damaged}");
    }
}
