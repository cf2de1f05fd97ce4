//! Names of settings and the files that they stand for.

use std::fmt;
use std::path::{Path, PathBuf};

use super::SysctlError;

/// Folder of all settings (proc_sys(5)).
const ROOT: &str = "/proc/sys";

/// A name that leads to a place under `/proc/sys` and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    parts: Vec<String>,
    path: PathBuf,
}

impl Name {
    /// Parses a name by the rule of sysctl.d(5): if the first separator is a dot, dots separate and slashes stand for
    /// dots within a part; if it is a slash, slashes separate and dots are dots.
    pub(super) fn parse(text: &str) -> Result<Name, SysctlError> {
        let Some(separator) = text.chars().find(|c| matches!(c, '.' | '/')) else {
            return Err(SysctlError::bad_name(text, "it has one part"));
        };
        let parts: Vec<String> = text
            .split(separator)
            .map(|part| match separator {
                '.' => part.replace('/', "."),
                _ => part.to_owned(),
            })
            .collect();
        if parts.iter().any(String::is_empty) {
            return Err(SysctlError::bad_name(text, "a part of it is empty"));
        }
        if parts.iter().any(|part| part == "." || part == "..") {
            return Err(SysctlError::bad_name(text, "a part of it would lead elsewhere"));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(SysctlError::bad_name(text, "it has characters other than visible ASCII"));
        }
        let path = Path::new(ROOT).join(parts.iter().collect::<PathBuf>());
        Ok(Name { parts, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if a network namespace may have its own value of the setting.
    pub(super) fn is_of_the_network(&self) -> bool {
        self.parts[0] == "net"
    }
}

impl fmt::Display for Name {
    /// Writes the name as sysctl(8) does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            f.write_str(&part.replace('.', "/"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_lead_to_the_same_file() {
        #[rustfmt::skip]
        let rows = [
            ("net.core.somaxconn", "/proc/sys/net/core/somaxconn", "net.core.somaxconn"),
            ("net/core/somaxconn", "/proc/sys/net/core/somaxconn", "net.core.somaxconn"),
            // The examples of sysctl.d(5).
            ("net.ipv4.conf.enp3s0/200.forwarding", "/proc/sys/net/ipv4/conf/enp3s0.200/forwarding",
             "net.ipv4.conf.enp3s0/200.forwarding"),
            ("net/ipv4/conf/enp3s0.200/forwarding", "/proc/sys/net/ipv4/conf/enp3s0.200/forwarding",
             "net.ipv4.conf.enp3s0/200.forwarding"),
        ];
        for (text, path, shown) in rows {
            let name = Name::parse(text).unwrap();
            assert_eq!(name.path(), Path::new(path));
            assert_eq!(name.to_string(), shown);
            assert_eq!(Name::parse(shown).unwrap(), name);
        }
    }

    #[test]
    fn no_name_leads_out_of_proc_sys() {
        let texts = "|net|net.|.net|/etc/passwd|net..core|net//core|net/../../etc/passwd|\
            net.//.passwd|net/./core|net./.core|net.core.somax conn|net.core.somaxconn\n|\
            net.core.\0|net.core.é";
        for text in texts.split('|') {
            let parsed = Name::parse(text);
            let refused = matches!(parsed, Err(SysctlError::BadName { .. }));
            assert!(refused, "{text:?}: {parsed:?}");
        }
    }
}
