//! Kernel settings by name (sysctl(8)), as the calling thread's network namespace has them.
//!
//! `/proc/sys/net` shows every thread the settings of the namespace that it is in, whoever mounted `/proc`
//! (`net_ctl_header_lookup`, net/sysctl_net.c); a thread that has entered a [`Network`] reads and writes the settings
//! of that namespace. Everything else under `/proc/sys` counts as the whole host's here.
//!
//! The kernel may accept a value in part: of `4096 x` for three numbers it keeps the first and refuses the rest; of `1
//! 2` for one number it takes the 1 and reports that it took two bytes. Every value is therefore read back, and a value
//! that was not taken unchanged is undone.

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

/// Returns the file of a setting under `/proc/sys`.
///
/// # Errors
/// [`SysctlError::BadName`].
pub(crate) fn file(name: &str) -> Result<PathBuf, SysctlError> {
    Ok(Name::parse(name)?.path().to_owned())
}

/// Reads a setting, with one blank between the parts of its value.
///
/// `name` as sysctl(8) accepts it: `net.core.somaxconn`, `net/core/somaxconn`, and `net.ipv4.conf.eth0/1.rp_filter` if
/// a part has a dot of its own.
///
/// # Errors
/// This kernel or this namespace has no setting of that name, or it may not be read.
pub fn read(name: &str) -> Result<String, SysctlError> {
    Name::parse(name)?.read()
}

/// Changes a setting and reads it back. `value` as sysctl(8) accepts it; blanks and tabs between its parts count as one
/// blank.
///
/// Nothing is recorded: settings of the host itself go through the [`journal`](crate::journal).
///
/// # Errors
/// The setting does not exist, this thread may not change it, or it does not accept the value. After an error the
/// setting is unchanged, unless the error says otherwise.
pub fn write(name: &str, value: &str) -> Result<(), SysctlError> {
    let name = Name::parse(name)?;
    let wanted = value::normalised(value);
    let before = name.read()?;
    let outcome = name.put(&wanted);
    let applied = name.read()?;
    if outcome.is_ok() && value::same(&wanted, &applied) {
        return Ok(());
    }
    if applied != before {
        // What it was before is a value that the kernel takes; how it went is read off below.
        let _ = name.put(&before);
    }
    let now = name.read()?;
    Err(match outcome {
        Ok(()) => SysctlError::NotTaken { name: name.to_string(), wanted, got: applied, now },
        Err(Refused::Open(e)) => name.refused(e, Access::Write),
        Err(Refused::Value(source)) => {
            SysctlError::Invalid { name: name.to_string(), value: wanted, now, source }
        }
    })
}

/// Step at which the kernel refused.
enum Refused {
    /// Opening the file, before the kernel saw the value.
    Open(io::Error),
    /// Writing the value.
    Value(io::Error),
}

/// Intended access to a setting.
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

    /// Writes the value in one piece, because the kernel takes every write(2) for a whole value.
    fn put(&self, value: &str) -> Result<(), Refused> {
        let file = OpenOptions::new().write(true).open(self.path());
        let line = format!("{value}\n");
        // A short count says that the rest was passed over; what became of it is read back.
        let written = file.map_err(Refused::Open)?.write(line.as_bytes());
        written.map(drop).map_err(Refused::Value)
    }

    /// Converts the kernel's error on opening or reading the setting.
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

    /// Returns the error for a missing permission: no process may access the setting, or only this one may not.
    fn forbidden(&self, access: Access) -> SysctlError {
        let name = self.to_string();
        let mode = fs::metadata(self.path()).map_or(0, |metadata| metadata.mode());
        match access {
            Access::Read if mode & OWNER_READS == 0 => SysctlError::WriteOnly(name),
            Access::Write if mode & OWNER_WRITES == 0 => match self.mode_elsewhere() {
                Some(mode) if mode & OWNER_WRITES != 0 => SysctlError::NotInNamespace(name),
                _ => SysctlError::ReadOnly(name),
            },
            _ => SysctlError::Denied(name),
        }
    }

    /// Returns the setting's mode in the network namespace of this process, or of the first process of all, if this
    /// thread is in another one.
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
                let metadata = network.within(|| fs::metadata(self.path())).ok()?;
                metadata.ok().map(|metadata| metadata.mode())
            })
    }
}

/// Bits of a file's mode (inode(7)). The kernel applies them to root too: no capability overrides the mode of a
/// setting.
const OWNER_READS: u32 = 0o400;
const OWNER_WRITES: u32 = 0o200;
