//! Access to the settings of a host for the journal.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::OnceLock;

use weir_parameters::Catalog;

use super::key::Key;
use crate::sysctl;

/// Error of reading or writing a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SettingError {
    /// The setting does not exist here: another kernel, a module that is not loaded, or a network namespace that does
    /// not show it.
    Absent,
    /// The kernel refused, with this message.
    Refused(String),
}

/// Access to the settings of a host. A trait, so that tests run on settings that do not exist instead of those of a
/// whole machine.
pub(super) trait Settings: Send {
    /// Reads the present value, without the newline at its end.
    fn read(&self, key: &Key) -> Result<String, SettingError>;
    /// Gives a setting a value.
    fn write(&self, key: &Key, value: &str) -> Result<(), SettingError>;
    /// Returns true if a setting is in weir's catalog. A journal is only a file: weir has never changed a setting
    /// without a row, unless the study brought one.
    fn has_row(&self, key: &Key) -> bool;
}

/// Settings of this machine, as the calling thread's namespaces have them.
#[derive(Debug)]
pub(super) struct Kernel;

impl Settings for Kernel {
    fn read(&self, key: &Key) -> Result<String, SettingError> {
        let Key::Sysctl(name) = key;
        let text = fs::read_to_string(path(name)?)?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    fn write(&self, key: &Key, value: &str) -> Result<(), SettingError> {
        let Key::Sysctl(name) = key;
        if value.contains('\n') {
            // The kernel would take the first line and leave the others.
            let words = "no setting has a value of several lines";
            return Err(SettingError::Refused(words.to_owned()));
        }
        let mut file = OpenOptions::new().write(true).open(path(name)?)?;
        // One write, since the kernel takes each for a whole value; and never an empty one, which
        // would not reach it.
        Ok(file.write_all(format!("{value}\n").as_bytes())?)
    }

    fn has_row(&self, key: &Key) -> bool {
        static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
        let Key::Sysctl(name) = key;
        NAMES.get_or_init(|| Catalog::builtin().sysctls().collect()).contains(name)
    }
}

impl From<io::Error> for SettingError {
    fn from(error: io::Error) -> SettingError {
        match error.kind() {
            io::ErrorKind::NotFound => SettingError::Absent,
            _ => SettingError::Refused(error.to_string()),
        }
    }
}

/// Returns the file of a sysctl. A journal is only a file, so its names must not lead out of `/proc/sys`.
fn path(name: &str) -> Result<PathBuf, SettingError> {
    sysctl::file(name).map_err(|error| SettingError::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_sysctl_8() {
        #[rustfmt::skip]
        let rows = [
            ("net.core.somaxconn", "/proc/sys/net/core/somaxconn"),
            ("net/core/somaxconn", "/proc/sys/net/core/somaxconn"),
            ("net.ipv4.conf.eth0/5.mtu", "/proc/sys/net/ipv4/conf/eth0.5/mtu"),
            ("net/ipv4/conf/eth0.5/mtu", "/proc/sys/net/ipv4/conf/eth0.5/mtu"),
        ];
        for (name, file) in rows {
            assert_eq!(path(name), Ok(PathBuf::from(file)), "{name}");
        }
    }

    #[test]
    fn no_name_leads_out_of_the_settings() {
        for name in "|.|..|a..b|/etc/passwd|net/../../x|a.//.b|net.\0".split('|') {
            let refused = matches!(path(name), Err(SettingError::Refused(_)));
            assert!(refused, "{name}");
        }
    }

    #[test]
    fn what_is_absent_is_told_from_what_is_refused() {
        let absent = Key::Sysctl("net.core.of_no_kernel".to_owned());
        assert_eq!(Kernel.read(&absent), Err(SettingError::Absent));
        assert_eq!(Kernel.write(&absent, "1"), Err(SettingError::Absent));
        let read_only = Key::Sysctl("kernel.random.boot_id".to_owned());
        assert!(Kernel.read(&read_only).is_ok_and(|id| id.len() == 36));
        let refused = Kernel.write(&read_only, "1");
        assert!(matches!(refused, Err(SettingError::Refused(_))));
        let of_two_lines = Kernel.write(&absent, "1\n2");
        assert!(
            matches!(of_two_lines, Err(SettingError::Refused(_))),
            "before anything is written"
        );
    }
}
