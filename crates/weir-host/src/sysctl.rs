//! Kernel settings by name (sysctl(8)), as the calling thread's network namespace has them.
//!
//! `/proc/sys/net` shows every thread the settings of the namespace that it is in, whoever mounted
//! `/proc` (`net_ctl_header_lookup`, net/sysctl_net.c); a thread that has entered a [`Network`]
//! reads and writes that one's. All else under `/proc/sys` is the whole host's here.
//!
//! The kernel may take a value in part: of `4096 x` for three numbers it keeps the first and refuses
//! the rest, of `1 2` for one number it takes the 1 and says that it took two bytes. Every value is
//! therefore read back, and one that was not taken as it stands is undone.

mod error;
mod name;
mod value;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rustix::io::Errno;

pub use error::SysctlError;
use name::Name;

use crate::Network;

/// The file of a setting under `/proc/sys`.
///
/// # Errors
/// [`SysctlError::BadName`].
pub(crate) fn file(name: &str) -> Result<PathBuf, SysctlError> {
    Ok(Name::parse(name)?.path().to_owned())
}

/// What the setting is, with one blank between its parts.
///
/// `name` as sysctl(8) takes it: `net.core.somaxconn`, `net/core/somaxconn`, and
/// `net.ipv4.conf.eth0/1.rp_filter` where a part has a dot of its own.
///
/// # Errors
/// This kernel or this namespace has none of that name, or it may not be read.
pub fn read(name: &str) -> Result<String, SysctlError> {
    Name::parse(name)?.read()
}

/// Changes the setting and reads it back. `value` as sysctl(8) takes it; blanks and tabs between
/// its parts count as one blank.
///
/// Nothing is noted down: what is the host's own goes through the [`journal`](crate::journal).
///
/// # Errors
/// The setting is not there, not this thread's to change, or does not take the value. After an
/// error it is what it was, unless the error says otherwise.
pub fn write(name: &str, value: &str) -> Result<(), SysctlError> {
    let name = Name::parse(name)?;
    let wanted = value::normalised(value);
    let before = name.read()?;
    let outcome = name.put(&wanted);
    let got = name.read()?;
    if outcome.is_ok() && value::same(&wanted, &got) {
        return Ok(());
    }
    if got != before {
        // What it was before is a value that the kernel takes; how it went is read off below.
        let _ = name.put(&before);
    }
    let now = name.read()?;
    Err(match outcome {
        Ok(()) => SysctlError::NotTaken {
            name: name.to_string(),
            wanted,
            got,
            now,
        },
        Err(Refused::Open(e)) => name.refused(e, Access::Write),
        Err(Refused::Value(source)) => SysctlError::Invalid {
            name: name.to_string(),
            value: wanted,
            now,
            source,
        },
    })
}

/// Where the kernel refused.
enum Refused {
    /// Before it saw the value.
    Open(io::Error),
    /// At the value.
    Value(io::Error),
}

/// What was wanted of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl Name {
    fn read(&self) -> Result<String, SysctlError> {
        match fs::read(self.path()) {
            Ok(bytes) => Ok(value::normalised(&String::from_utf8_lossy(&bytes))),
            Err(e) => Err(self.refused(e, Access::Read)),
        }
    }

    /// Hands the value to the kernel in one piece, because it takes every write(2) for a whole one.
    fn put(&self, value: &str) -> Result<(), Refused> {
        let file = OpenOptions::new().write(true).open(self.path());
        let line = format!("{value}\n");
        // A short count says that the rest was passed over; what became of it is read back.
        let written = file.map_err(Refused::Open)?.write(line.as_bytes());
        written.map(drop).map_err(Refused::Value)
    }

    /// What the refusal to open or read it means.
    fn refused(&self, source: io::Error, access: Access) -> SysctlError {
        let name = self.to_string();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => match self.mode_elsewhere() {
                Some(_) => SysctlError::NotInNamespace(name),
                None => SysctlError::Absent(name),
            },
            Some(Errno::ISDIR) => SysctlError::bad_name(&name, "it is a group of settings"),
            Some(Errno::NOTDIR) => SysctlError::bad_name(&name, "a part of it is a setting itself"),
            Some(Errno::ROFS) => SysctlError::MountedReadOnly(name),
            Some(Errno::ACCESS | Errno::PERM) => self.forbidden(access),
            _ => SysctlError::Refused { name, source },
        }
    }

    /// Whether nobody may, or not this process.
    fn forbidden(&self, access: Access) -> SysctlError {
        let name = self.to_string();
        let mode = fs::metadata(self.path()).map_or(0, |found| found.mode());
        match access {
            Access::Read if mode & OWNER_READS == 0 => SysctlError::WriteOnly(name),
            Access::Write if mode & OWNER_WRITES == 0 => match self.mode_elsewhere() {
                Some(mode) if mode & OWNER_WRITES != 0 => SysctlError::NotInNamespace(name),
                _ => SysctlError::ReadOnly(name),
            },
            _ => SysctlError::Denied(name),
        }
    }

    /// Its mode in the network namespace that this process, or the first one of all, lives in, if
    /// this thread is in another one.
    fn mode_elsewhere(&self) -> Option<u32> {
        if !self.is_of_the_network() {
            return None;
        }
        let here = Network::of_this_thread().ok()?.id().ok()?;
        ["/proc/self/ns/net", "/proc/1/ns/net"]
            .iter()
            .filter_map(|path| Network::at(path).ok())
            .filter(|network| network.id().is_ok_and(|id| id != here))
            .find_map(|network| {
                let found = network.within(|| fs::metadata(self.path())).ok()?;
                found.ok().map(|found| found.mode())
            })
    }
}

/// Bits of a file's mode (inode(7)). The kernel judges root by them too: no capability overrides
/// the ones of a setting.
const OWNER_READS: u32 = 0o400;
const OWNER_WRITES: u32 = 0o200;
