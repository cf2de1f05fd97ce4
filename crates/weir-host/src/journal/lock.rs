//! Lock by which one weir at a time may change the settings of a host.
//!
//! The lock is flock(2) on a file of the journal's folder: the kernel releases it however its holder ends. The text in
//! the file only tells other processes who the holder is.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};
use weir_probe::ProcessId;

use super::error::{Holder, JournalError};
use super::place::boot_id;

const FILE: &str = "lock";

/// Maximum time to wait for the lock: a process that is being killed, or that only checks who holds the lock, keeps it
/// a moment longer.
const PATIENCE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(5);

/// Content of the lock file. Process numbers are valid only within one boot and one PID namespace, and are reused.
#[derive(Debug, Serialize, Deserialize)]
struct Text {
    #[serde(flatten)]
    holder: Holder,
    start_ticks: u64,
    boot: String,
    pid_namespace: String,
}

impl Text {
    fn of_this_process(purpose: &str) -> Result<Text, JournalError> {
        // Settings are put back whatever the time is.
        let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH);
        let process = ProcessId::own()
            .map_err(io::Error::other)
            .map_err(JournalError::io("read", Path::new("/proc/self/stat")))?;
        Ok(Text {
            holder: Holder {
                pid: process.pid,
                since: now.round(Unit::Second).unwrap_or(now).to_string(),
                purpose: purpose.to_owned(),
            },
            start_ticks: process.start_ticks,
            boot: boot_id()?,
            pid_namespace: pid_namespace(),
        })
    }

    /// Returns true if the text is from an earlier holder that never cleared it.
    fn is_stale(&self) -> bool {
        let process = ProcessId { pid: self.holder.pid, start_ticks: self.start_ticks };
        let same_boot = boot_id().is_ok_and(|boot| boot == self.boot);
        !same_boot || (self.pid_namespace == pid_namespace() && !process.is_alive())
    }
}

fn pid_namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// Lock of a host, released when it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    pub(super) holder: Holder,
}

impl Lock {
    /// Takes the lock in a folder that exists.
    pub(super) fn take(folder: &Path, purpose: &str) -> Result<Lock, JournalError> {
        let path = folder.join(FILE);
        let opened = weir_files::append(&path);
        let mut file = opened.map_err(JournalError::io("open", &path))?;
        if !wait_for(&path, || file.try_lock())? {
            return Err(JournalError::Held(read_holder(&path)));
        }
        let text = Text::of_this_process(purpose)?;
        let line = serde_json::to_string(&text).map_err(io::Error::other);
        line.and_then(|line| file.set_len(0).and_then(|()| writeln!(file, "{line}")))
            .map_err(JournalError::io("write", &path))?;
        Ok(Lock { file, holder: text.holder })
    }

    /// Returns the current holder of the lock: `None` if it is free, `Some(None)` if the holder has not yet written who
    /// it is.
    pub(super) fn holder(folder: &Path) -> Result<Option<Option<Holder>>, JournalError> {
        let path = folder.join(FILE);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(JournalError::io("open", &path))?,
        };
        let is_free = wait_for(&path, || file.try_lock_shared())?;
        Ok((!is_free).then(|| read_holder(&path)))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only a courtesy: the text of a holder that is gone is known to be stale.
        let _ = self.file.set_len(0);
    }
}

/// Returns true if `attempt` got the lock in time.
fn wait_for(
    path: &Path,
    mut attempt: impl FnMut() -> Result<(), TryLockError>,
) -> Result<bool, JournalError> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if begun.elapsed() > PATIENCE => return Ok(false),
            Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
            Err(TryLockError::Error(error)) => return Err(JournalError::io("lock", path)(error)),
        }
    }
}

fn read_holder(path: &Path) -> Option<Holder> {
    let text = fs::read_to_string(path).ok()?;
    let text: Text = serde_json::from_str(&text).ok()?;
    (!text.is_stale()).then_some(text.holder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_holder_that_is_gone_is_not_believed() {
        let current = Text::of_this_process("a test").unwrap();
        assert!(!current.is_stale());
        let earlier = Text {
            start_ticks: current.start_ticks + 1,
            ..Text::of_this_process("a test").unwrap()
        };
        assert!(earlier.is_stale(), "another process has its number now");
        let in_a_container = Text { pid_namespace: "pid:[1]".to_owned(), ..earlier };
        assert!(!in_a_container.is_stale(), "its number means nothing here");
        let before_the_boot = Text { boot: "another".to_owned(), ..in_a_container };
        assert!(before_the_boot.is_stale());
    }

    #[test]
    fn a_lock_says_whose_it_is_and_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Lock::holder(folder.path()).unwrap(), None);
        let lock = Lock::take(folder.path(), "a test").unwrap();
        let holder = Lock::holder(folder.path()).unwrap().flatten();
        assert_eq!(holder.as_ref(), Some(&lock.holder));
        assert_eq!(lock.holder.pid, std::process::id());
        match Lock::take(folder.path(), "another test") {
            Err(JournalError::Held(holder)) => assert_eq!(holder, Some(lock.holder.clone())),
            other => panic!("{other:?}"),
        }
        drop(lock);
        assert_eq!(Lock::holder(folder.path()).unwrap(), None);
        Lock::take(folder.path(), "another test").unwrap();
    }
}
