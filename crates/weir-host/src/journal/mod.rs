//! The journal of what weir changes on a host, so that it is put back whatever happens.
//!
//! A setting goes through three steps, and weir may be killed, or the power go, between any two:
//!
//! 1. [`Journal::announce`] writes down the value that it has and those that it may be given, and
//!    waits until that is on the disk;
//! 2. [`Journal::give`] changes it and reads it back ([`Journal::change`] is both steps in one);
//! 3. [`Journal::restore`] gives it its value before, *if it still has one of weir's*, and writes
//!    down that it is done with. A value that weir did not give is somebody else's decision: it is
//!    left alone, and the user is told.
//!
//! Each step may be done again, so what a killed weir has left is undone by [`restore`] from the
//! file alone. One weir at a time holds a host's lock; its end, of whatever kind, frees it.
//!
//! In a folder ([`Journal::default_folder`]):
//!
//! | file | what |
//! |---|---|
//! | `journal.jsonl` | the settings of the last weir that changed any (the format is in `docs/restore.md`) |
//! | `journal.previous.jsonl` | those of the one before it, all put back or undone by a boot |
//! | `lock` | locked while a weir lives that may change settings; says which |
//!
//! The journal is believed only if nobody else could have written it (the folder and all above it are
//! looked at), and only about settings that the catalog or the study has a row for: what stands there is
//! written with root's rights.
//!
//! Settings of the network are those of the calling thread's network namespace. The journal knows
//! in which one each was changed, and never takes one for another.

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

/// The settings of this host, in the hand of one weir: holds the host's lock while it lives.
pub struct Journal {
    folder: PathBuf,
    header: Header,
    /// Begun with the first change: who changes nothing writes nothing.
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
    /// Where journals are: in `WEIR_JOURNAL` if that is set; else `/var/lib/weir/journal` for root,
    /// who alone changes settings of a whole host; else `weir/journal` in the user's folder for
    /// state (XDG Base Directory Specification: `XDG_STATE_HOME` if it is absolute, else
    /// `~/.local/state`).
    pub fn default_folder() -> PathBuf {
        let variable = |name: &str| env::var_os(name).map(PathBuf::from);
        let is_root = rustix::process::geteuid().is_root();
        default_folder(variable, is_root, env::home_dir())
    }

    /// Takes the host's lock. `purpose` is what others are told when they find it taken, such as
    /// the command line.
    ///
    /// # Errors
    /// [`JournalError::Held`] while another weir lives that has it; [`JournalError::Left`] when one
    /// that lives no more has left settings changed since the last boot; the journal is damaged,
    /// of another version or one that others could have written, or its folder cannot be made or read.
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

    /// Lets settings be changed that the study's own rows are about, beside those of the catalog.
    #[must_use]
    pub fn listing(mut self, settings: impl IntoIterator<Item = String>) -> Journal {
        self.header.settings.extend(settings);
        self
    }

    /// Writes down the value that a setting has and those that [`Journal::give`] may give it. May
    /// be called again with more values; those that are known already cost no flush.
    ///
    /// # Errors
    /// There is no such setting, it cannot be read, neither the catalog nor the study has a row for it, or
    /// the disk does not take the line.
    pub fn announce(&mut self, key: &Key, values: &[String]) -> Result<(), JournalError> {
        let namespace = place::namespace(key)?;
        let known = log::find(&self.open, key, namespace.as_deref());
        let known = known.map(|index| &self.open[index]);
        let mut given = Vec::new();
        for value in values {
            let is_known = known.is_some_and(|entry| entry.announces(value));
            if !is_known && !given.contains(value) {
                given.push(value.clone());
            }
        }
        if given.is_empty() {
            return Ok(());
        }
        let before = match known {
            Some(entry) => entry.before.clone(),
            None => self
                .settings
                .read(key)
                .map_err(JournalError::reading(key))?,
        };
        if !self.header.lists(key, &*self.settings) {
            return Err(JournalError::NoRow(key.clone()));
        }
        let ahead = Line::Ahead(Entry {
            key: key.clone(),
            namespace,
            before,
            given,
        });
        self.log()?.append(&ahead)?;
        // A line that only adds to what is open is always taken.
        let _ = log::apply(&mut self.open, ahead);
        Ok(())
    }

    /// Gives a setting one of the values that were announced, and reads it back. Nothing is
    /// flushed: it is fit for switching a setting at every slice of a trial.
    ///
    /// # Errors
    /// [`JournalError::Differs`] when somebody else has changed it since, and
    /// [`JournalError::NotTaken`] when the kernel has made another value of it; the kernel refuses;
    /// the value was not announced. The setting then has its value from before the call, somebody
    /// else's, or its value before weir.
    pub fn give(&mut self, key: &Key, value: &str) -> Result<(), JournalError> {
        let namespace = place::namespace(key)?;
        let index = log::find(&self.open, key, namespace.as_deref());
        let entry = index.map(|index| &self.open[index]);
        let Some(entry) = entry.filter(|entry| entry.announces(value)) else {
            return Err(JournalError::NotAnnounced {
                key: key.clone(),
                value: value.to_owned(),
            });
        };
        let settings = &*self.settings;
        let found = settings.read(key).map_err(JournalError::reading(key))?;
        if !entry.knows(&found) {
            return Err(JournalError::Differs {
                key: key.clone(),
                before: normal(&entry.before),
                given: entry.given.clone(),
                found: normal(&found),
            });
        }
        settings
            .write(key, value)
            .map_err(JournalError::writing(key, value))?;
        let found = settings.read(key).map_err(JournalError::reading(key))?;
        if same(&found, value) {
            return Ok(());
        }
        // Some settings round what they are given. The journal does not know that value for
        // weir's, so it may not stay.
        settings
            .write(key, &entry.before)
            .map_err(JournalError::writing(key, &entry.before))?;
        Err(JournalError::NotTaken {
            key: key.clone(),
            value: value.to_owned(),
            found,
        })
    }

    /// Announces a value and gives it.
    ///
    /// # Errors
    /// As [`Journal::announce`] and [`Journal::give`].
    pub fn change(&mut self, key: &Key, value: &str) -> Result<(), JournalError> {
        self.announce(key, &[value.to_owned()])?;
        self.give(key, value)
    }

    /// Puts everything back, the last setting that was changed first, and says what became of each.
    /// Settings that somebody else has changed are done with too: the caller tells the user, and
    /// they are not told of again. What could not be put back stays in the journal.
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
    /// Puts back what it can. What the user has to be told of stays in the journal, since nobody is
    /// told here: `weir restore` does it.
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

/// Puts settings back, the last first, and writes down those that are done with.
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

/// What there is to restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Whether a weir lives that has the settings in hand; they are its business then.
    pub held: bool,
    /// Which, if it has said so.
    pub holder: Option<Holder>,
    /// What would become of each setting, the last changed first.
    pub settings: Vec<Restored>,
}

/// What [`restore`] would do. Changes nothing and waits for nobody's end.
///
/// # Errors
/// The journal is damaged, of another version, or cannot be read.
pub fn pending(folder: &Path) -> Result<Pending, JournalError> {
    pending_with(folder, &Kernel)
}

fn pending_with(folder: &Path, settings: &dyn Settings) -> Result<Pending, JournalError> {
    if !exists(folder)? {
        return Ok(Pending {
            held: false,
            holder: None,
            settings: Vec::new(),
        });
    }
    let held = Lock::holder(folder)?;
    let boot = place::boot_id()?;
    let settings = match Recorded::read(folder, &boot, settings)? {
        None => Vec::new(),
        Some(recorded) => {
            let same_boot = recorded.header.boot == boot;
            let would = |entry: &Entry| entry.restored(entry.outlook(settings, same_boot));
            recorded.open.iter().rev().map(would).collect()
        }
    };
    Ok(Pending {
        held: held.is_some(),
        holder: held.flatten(),
        settings,
    })
}

/// Whether there is a folder of a journal; one that others could have written is refused before anything in
/// it is opened.
fn exists(folder: &Path) -> Result<bool, JournalError> {
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(JournalError::io("read", folder)(error)),
        Ok(_) => Ok(only_ours(folder).map(|()| true)?),
    }
}

/// Whether the journal has settings that a process of this one's number has left changed since the last boot: before it
/// became this one by execve(2), for a process that opens the journal knows that it has none.
pub fn is_left_by_this_process(folder: &Path) -> bool {
    let left = || {
        exists(folder).ok().filter(|exists| *exists)?;
        let boot = place::boot_id().ok()?;
        let recorded = Recorded::read(folder, &boot, &Kernel).ok()??;
        let is_own = recorded.header.pid == std::process::id() && recorded.header.boot == boot;
        Some(is_own && !recorded.open.is_empty())
    };
    left().unwrap_or(false)
}

/// Puts back what a weir that lives no more has left, as [`Journal::restore`] does. Where there is
/// nothing to do, no file is made.
///
/// # Errors
/// [`JournalError::Held`] while a weir lives that has the settings in hand; the journal is damaged,
/// of another version, or cannot be read or written. Nothing was changed then.
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
