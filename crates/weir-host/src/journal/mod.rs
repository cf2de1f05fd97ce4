//! Journal of the changes that weir makes to a host, so that they are put back whatever happens.
//!
//! A setting goes through three steps, and weir may be killed, or the power fail, between any two:
//!
//! 1. [`Journal::announce`] records the setting's present value and the values that it may be given, and waits until
//!    the record is on the disk;
//! 2. [`Journal::give`] changes the setting and reads it back ([`Journal::change`] is both steps in one);
//! 3. [`Journal::restore`] puts the original value back, *if the setting still has one of weir's*, and records that. A
//!    value that weir did not give is somebody else's decision: it is left alone, and the user is informed.
//!
//! Each step may be repeated, so [`restore`] undoes the changes of a killed weir from the file alone. One weir at a
//! time holds a host's lock; the lock is freed however that weir ends.
//!
//! Files in the folder ([`Journal::default_folder`]):
//!
//! | file | content |
//! |---|---|
//! | `journal.jsonl` | settings of the last weir that changed any (the format is in `docs/restore.md`) |
//! | `journal.previous.jsonl` | settings of the weir before that, all put back or undone by a boot |
//! | `lock` | locked while a weir runs that may change settings; names that weir |
//!
//! The journal is trusted only if nobody else could have written it (the folder and all folders above it are checked),
//! and only for settings that have a row in the catalog or the study: its values are written with root's rights.
//!
//! Network settings are those of the calling thread's network namespace. The journal records the namespace of each
//! change, and never mistakes one for another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io};

use serde::{Deserialize, Serialize};

mod entry;
mod error;
mod key;
pub mod ledger;
mod lock;
mod log;
mod place;
mod settings;
#[cfg(test)]
mod tests;

pub use entry::{Outcome, Restored};
pub use error::{Holder, JournalError};
pub use key::{Key, put_back_command, quoted};

use entry::{Entry, same};
use error::FORMAT;
use key::normal;
use lock::Lock;
use log::{Closed, Header, Line, Log, Recorded, create_folder};
use settings::{Kernel, Settings};
use weir_files::only_ours;

/// Settings of this host, opened by one weir; holds the host's lock until it is dropped.
pub struct Journal {
    folder: PathBuf,
    header: Header,
    /// Journal file, created with the first change: a process that changes nothing writes nothing.
    log: Option<Log>,
    open: Vec<Entry>,
    settings: Box<dyn Settings>,
    // The last field, so that the lock outlives everything else.
    _lock: Lock,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Journal");
        text.field("folder", &self.folder).field("open", &self.open);
        text.finish_non_exhaustive()
    }
}

impl Journal {
    /// Returns the folder of journals: `WEIR_JOURNAL` if that is set; else `/var/lib/weir/journal` for root, the only
    /// user who changes settings of a whole host; else `weir/journal` in the user's folder for state (XDG Base
    /// Directory Specification: `XDG_STATE_HOME` if it is absolute, else `~/.local/state`).
    pub fn default_folder() -> PathBuf {
        let is_root = rustix::process::geteuid().is_root();
        default_folder(|name| env::var_os(name).map(PathBuf::from), is_root, env::home_dir())
    }

    /// Takes the host's lock. `purpose`, such as the command line, is shown to other processes that find the lock
    /// taken.
    ///
    /// # Errors
    /// [`JournalError::Held`] if another running weir holds the lock; [`JournalError::Left`] if a weir that has ended
    /// left settings changed since the last boot; the journal is damaged, is of another version or could have been
    /// written by others; or its folder cannot be created or read.
    pub fn open(folder: &Path, purpose: &str) -> Result<Journal, JournalError> {
        Journal::open_with(folder, purpose, Box::new(Kernel))
    }

    fn open_with(
        folder: &Path,
        purpose: &str,
        settings: Box<dyn Settings>,
    ) -> Result<Journal, JournalError> {
        create_folder(folder)?;
        only_ours(folder)?;
        let lock = Lock::take(folder, purpose)?;
        let boot = place::boot_id()?;
        if let Some(earlier) = Recorded::read(folder, &boot, &*settings)?
            && earlier.header.boot == boot
            && !earlier.open.is_empty()
        {
            let settings = earlier.open.len();
            return Err(JournalError::Left(settings));
        }
        Ok(Journal {
            folder: folder.to_owned(),
            header: Header {
                journal: FORMAT.to_owned(),
                boot,
                pid: lock.holder.pid,
                since: lock.holder.since.clone(),
                purpose: lock.holder.purpose.clone(),
                settings: BTreeSet::new(),
            },
            log: None,
            open: Vec::new(),
            settings,
            _lock: lock,
        })
    }

    /// Allows changes to settings that the study's own rows are about, besides those of the catalog.
    #[must_use]
    pub fn listing(mut self, settings: impl IntoIterator<Item = String>) -> Journal {
        self.header.settings.extend(settings);
        self
    }

    /// Records the present value of a setting and the values that [`Journal::give`] may give it. May be called again
    /// with more values; values that are already recorded cost no flush.
    ///
    /// # Errors
    /// The setting does not exist, cannot be read, or has no row in the catalog or the study; or the disk does not
    /// accept the line.
    pub fn announce(&mut self, key: &Key, values: &[String]) -> Result<(), JournalError> {
        let namespace = place::namespace(key)?;
        let open_entry =
            log::find(&self.open, key, namespace.as_deref()).map(|index| &self.open[index]);
        let mut new_values = Vec::new();
        for value in values {
            let is_known = open_entry.is_some_and(|entry| entry.announces(value));
            if !is_known && !new_values.contains(value) {
                new_values.push(value.clone());
            }
        }
        if new_values.is_empty() {
            return Ok(());
        }
        let before = match open_entry {
            Some(entry) => entry.before.clone(),
            None => self.settings.read(key).map_err(JournalError::reading(key))?,
        };
        if !self.header.lists(key, &*self.settings) {
            return Err(JournalError::NoRow(key.clone()));
        }
        let ahead = Line::Ahead(Entry { key: key.clone(), namespace, before, given: new_values });
        self.log()?.append(&ahead)?;
        // A line that only adds to what is open is always taken.
        let _ = log::apply(&mut self.open, ahead);
        Ok(())
    }

    /// Gives a setting one of its announced values and reads it back. Nothing is flushed to the disk, so a setting can
    /// be switched at every slice of a trial.
    ///
    /// # Errors
    /// [`JournalError::Differs`] if somebody else has changed the setting since, [`JournalError::NotTaken`] if the
    /// kernel turned the value into another one; the kernel refuses; or the value was not announced. The setting then
    /// has its value from before the call, somebody else's, or its original value.
    pub fn give(&mut self, key: &Key, value: &str) -> Result<(), JournalError> {
        let namespace = place::namespace(key)?;
        let index = log::find(&self.open, key, namespace.as_deref());
        let entry = index.map(|index| &self.open[index]);
        let Some(entry) = entry.filter(|entry| entry.announces(value)) else {
            return Err(JournalError::NotAnnounced { key: key.clone(), value: value.to_owned() });
        };
        let settings = &*self.settings;
        let current = settings.read(key).map_err(JournalError::reading(key))?;
        if !entry.knows(&current) {
            return Err(JournalError::Differs {
                key: key.clone(),
                before: normal(&entry.before),
                given: entry.given.clone(),
                found: normal(&current),
            });
        }
        settings.write(key, value).map_err(JournalError::writing(key, value))?;
        let written = settings.read(key).map_err(JournalError::reading(key))?;
        if same(&written, value) {
            return Ok(());
        }
        // Some settings round what they are given. The journal does not know that value for
        // weir's, so it may not stay.
        settings.write(key, &entry.before).map_err(JournalError::writing(key, &entry.before))?;
        Err(JournalError::NotTaken { key: key.clone(), value: value.to_owned(), found: written })
    }

    /// Announces a value and gives it.
    ///
    /// # Errors
    /// Same as [`Journal::announce`] and [`Journal::give`].
    pub fn change(&mut self, key: &Key, value: &str) -> Result<(), JournalError> {
        self.announce(key, &[value.to_owned()])?;
        self.give(key, value)
    }

    /// Puts all settings back, the last changed first, and returns the outcome of each. Settings that somebody else has
    /// changed are closed too: the caller informs the user, since they are not reported again. A setting that could not
    /// be put back stays in the journal.
    pub fn restore(&mut self) -> Vec<Restored> {
        self.undo(Outcome::closes)
    }

    fn undo(&mut self, closes: impl Fn(&Outcome) -> bool) -> Vec<Restored> {
        let (log, settings) = (self.log.as_mut(), &*self.settings);
        undo(&mut self.open, log, settings, true, closes)
    }

    fn log(&mut self) -> Result<&mut Log, JournalError> {
        match &mut self.log {
            Some(log) => Ok(log),
            none => Ok(none.insert(Log::begin(&self.folder, &self.header)?)),
        }
    }
}

impl Drop for Journal {
    /// Puts settings back as far as possible. Outcomes that the user must learn stay in the journal, since nothing is
    /// reported here; `weir restore` reports them.
    fn drop(&mut self) {
        self.undo(Outcome::is_restored);
    }
}

fn default_folder(
    variable: impl Fn(&str) -> Option<PathBuf>,
    is_root: bool,
    home: Option<PathBuf>,
) -> PathBuf {
    if let Some(folder) = variable("WEIR_JOURNAL").filter(|path| !path.as_os_str().is_empty()) {
        return folder;
    }
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    match state.or_else(|| Some(home?.join(".local/state"))) {
        Some(state) if !is_root => state.join("weir/journal"),
        _ => PathBuf::from("/var/lib/weir/journal"),
    }
}

/// Puts settings back, the last changed first, and records those that are closed.
fn undo(
    open: &mut Vec<Entry>,
    mut log: Option<&mut Log>,
    settings: &dyn Settings,
    same_boot: bool,
    closes: impl Fn(&Outcome) -> bool,
) -> Vec<Restored> {
    weir_files::let_files_open();
    let mut restored = Vec::new();
    for index in (0..open.len()).rev() {
        let outcome = open[index].put_back(settings, same_boot);
        restored.push(open[index].restored(outcome.clone()));
        if !closes(&outcome) {
            continue;
        }
        let entry = open.remove(index);
        if let Some(log) = log.as_deref_mut() {
            // Without the line, the setting is looked at once more and found to be as it was.
            let _ = log.append(&Line::Closed(Closed {
                key: entry.key,
                namespace: entry.namespace,
                outcome,
            }));
        }
    }
    restored
}

/// Settings that wait to be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// True if a running weir holds the lock; the settings are then left to it.
    pub held: bool,
    /// Holder of the lock, if it has written who it is.
    pub holder: Option<Holder>,
    /// Expected outcome of each setting, the last changed first.
    pub settings: Vec<Restored>,
}

/// Returns the outcomes that [`restore`] would have. Changes nothing and does not wait until the holder ends.
///
/// # Errors
/// The journal is damaged, of another version, or cannot be read.
pub fn pending(folder: &Path) -> Result<Pending, JournalError> {
    pending_with(folder, &Kernel)
}

fn pending_with(folder: &Path, settings: &dyn Settings) -> Result<Pending, JournalError> {
    if !exists(folder)? {
        return Ok(Pending { held: false, holder: None, settings: Vec::new() });
    }
    let held = Lock::holder(folder)?;
    let boot = place::boot_id()?;
    let settings = match Recorded::read(folder, &boot, settings)? {
        None => Vec::new(),
        Some(recorded) => {
            let same_boot = recorded.header.boot == boot;
            recorded
                .open
                .iter()
                .rev()
                .map(|entry| entry.restored(entry.outlook(settings, same_boot)))
                .collect()
        }
    };
    Ok(Pending { held: held.is_some(), holder: held.flatten(), settings })
}

/// Returns true if the folder of a journal exists. A folder that others could have written is refused before anything
/// in it is opened.
fn exists(folder: &Path) -> Result<bool, JournalError> {
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(JournalError::io("read", folder)(error)),
        Ok(_) => Ok(only_ours(folder).map(|()| true)?),
    }
}

/// Returns true if the journal has settings that a process with this process's number has left changed since the last
/// boot. It is then this process from before an execve(2), since a process that opens the journal knows that it has
/// left none.
pub fn is_left_by_this_process(folder: &Path) -> bool {
    has_own_entries(folder).unwrap_or(false)
}

fn has_own_entries(folder: &Path) -> Option<bool> {
    exists(folder).ok().filter(|exists| *exists)?;
    let boot = place::boot_id().ok()?;
    let recorded = Recorded::read(folder, &boot, &Kernel).ok()??;
    let is_own = recorded.header.pid == std::process::id() && recorded.header.boot == boot;
    Some(is_own && !recorded.open.is_empty())
}

/// Puts back the settings that an ended weir has left changed, as [`Journal::restore`] does. Creates no file if there
/// is nothing to do.
///
/// # Errors
/// [`JournalError::Held`] if a running weir holds the lock; the journal is damaged, of another version, or cannot be
/// read or written. Nothing was changed then.
pub fn restore(folder: &Path) -> Result<Vec<Restored>, JournalError> {
    restore_with(folder, &Kernel)
}

fn restore_with(folder: &Path, settings: &dyn Settings) -> Result<Vec<Restored>, JournalError> {
    if !exists(folder)? {
        return Ok(Vec::new());
    }
    let _lock = Lock::take(folder, "weir restore")?;
    let boot = place::boot_id()?;
    let Some(mut recorded) = Recorded::read(folder, &boot, settings)? else {
        return Ok(Vec::new());
    };
    if recorded.open.is_empty() {
        return Ok(Vec::new());
    }
    let mut log = Log::resume(folder, recorded.len)?;
    let same_boot = recorded.header.boot == boot;
    let (open, log) = (&mut recorded.open, Some(&mut log));
    Ok(undo(open, log, settings, same_boot, Outcome::closes))
}
