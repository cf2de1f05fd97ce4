//! A journal of changes of another kind than settings of the kernel: the same file and the same lock, and lines of
//! whoever keeps it.
//!
//! The same holds as for settings: a line is on the disk before the change that it announces is made, so a last line
//! that is not whole announces nothing that was done. It is believed only if nobody else could have written it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_files::only_ours;

use super::error::{Holder, JournalError};
use super::lock::Lock;
use super::log::{self, Log, create_folder};

/// A journal in the hand of one weir: it holds the folder's lock while it lives.
#[derive(Debug)]
pub struct Ledger {
    folder: PathBuf,
    /// Begun with the first line: who changes nothing writes nothing.
    log: Option<Log>,
    // The last field, so that the lock outlives everything else.
    lock: Lock,
}

impl Ledger {
    /// Takes the lock of a folder, which is made where it is not there. `purpose` is what others are told who find it
    /// taken.
    ///
    /// # Errors
    /// Another weir has it, or the folder cannot be made, or others could write there.
    pub fn open(folder: &Path, purpose: &str) -> Result<Ledger, JournalError> {
        create_folder(folder)?;
        only_ours(folder)?;
        Ok(Ledger {
            folder: folder.to_owned(),
            log: None,
            lock: Lock::take(folder, purpose)?,
        })
    }

    /// Who has it.
    pub fn holder(&self) -> &Holder {
        &self.lock.holder
    }

    /// What was written there, a value for each line, the head first; none where nothing was.
    ///
    /// # Errors
    /// It cannot be read, others could have written it, or a line is damaged.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, JournalError> {
        let Some((lines, len)) = read(&self.folder)? else {
            return Ok(Vec::new());
        };
        self.log = Some(Log::resume(&self.folder, len)?);
        Ok(lines)
    }

    /// Begins anew with this line, in place of a journal that has nothing open.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn begin(&mut self, head: &impl Serialize) -> Result<(), JournalError> {
        self.log = Some(Log::begin(&self.folder, head)?);
        Ok(())
    }

    /// Appends a line, and returns when it is on the disk. Nothing is written where nothing was begun or read.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn append(&mut self, line: &impl Serialize) -> Result<(), JournalError> {
        self.log.iter_mut().try_for_each(|log| log.append(line))
    }
}

/// What is written in a folder by whoever has it: a value for each line. Waits for nobody's end.
///
/// # Errors
/// It cannot be read, others could have written it, or a line is damaged.
pub fn peek<T: DeserializeOwned>(folder: &Path) -> Result<Vec<T>, JournalError> {
    match folder.exists() {
        true => {
            only_ours(folder)?;
            Ok(read(folder)?.map_or(Vec::new(), |(lines, _)| lines))
        }
        false => Ok(Vec::new()),
    }
}

/// The whole lines of a journal, and how many bytes they are.
fn read<T: DeserializeOwned>(folder: &Path) -> Result<Option<(Vec<T>, u64)>, JournalError> {
    let Some(bytes) = log::bytes(folder)? else {
        return Ok(None);
    };
    let end = bytes.iter().rposition(|&byte| byte == b'\n');
    let len = end.map_or(0, |at| at + 1);
    let lines = bytes[..len].split_inclusive(|&byte| byte == b'\n');
    let read = lines.enumerate().map(|(number, line)| {
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
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("journal");
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
        assert!(
            matches!(damaged, JournalError::Damaged { line: 1, .. }),
            "{damaged}"
        );
    }
}
