//! Names of settings, and the files that they stand for.

use std::fmt;
use std::path::{Path, PathBuf};

use super::SysctlError;

/// Where settings are (proc_sys(5)).
const ROOT: &str = "/proc/sys";

/// A name that leads to a place under `/proc/sys` and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    parts: Vec<String>,
    path: PathBuf,
}

impl Name {
    /// By the rule of sysctl.d(5): where the first separator is a dot, dots separate and slashes
    /// stand for dots within a part; where it is a slash, slashes separate and dots are dots.
    pub(super) fn parse(text: &str) -> Result<Name, SysctlError> {
        let bad = |why| SysctlError::bad_name(text, why);
        let Some(separator) = text.chars().find(|c| matches!(c, '.' | '/')) else {
            return Err(bad("it has one part"));
        };
        let parts: Vec<String> = text
            .split(separator)
            .map(|part| match separator {
                '.' => part.replace('/', "."),
                _ => part.to_owned(),
            })
            .collect();
        if parts.iter().any(String::is_empty) {
            return Err(bad("a part of it is empty"));
        }
        if parts.iter().any(|part| part == "." || part == "..") {
            return Err(bad("a part of it would lead elsewhere"));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(bad("it has characters other than visible ASCII"));
        }
        Ok(Name::of(parts))
    }

    fn of(parts: Vec<String>) -> Name {
        let path = Path::new(ROOT).join(parts.iter().collect::<PathBuf>());
        Name { parts, path }
    }

    /// Its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it may be a network namespace's own.
    pub(super) fn is_of_the_network(&self) -> bool {
        self.parts[0] == "net"
    }

    /// The same setting of an interface that every namespace has.
    pub(super) fn of_any_interface(&self) -> Name {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        let [
            "net",
            "ipv4" | "ipv6",
            group @ ("conf" | "neigh"),
            interface,
            _,
        ] = parts[..]
        else {
            return self.clone();
        };
        if matches!(interface, "all" | "default") {
            return self.clone();
        }
        let mut parts = self.parts.clone();
        // Namespaces have no neigh.default: it is the host's.
        parts[3] = if group == "conf" { "default" } else { "lo" }.to_owned();
        Name::of(parts)
    }
}

impl fmt::Display for Name {
    /// As sysctl(8) writes it.
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
        for text in [
            "",
            "net",
            "net.",
            ".net",
            "/etc/passwd",
            "net..core",
            "net//core",
            "net/../../etc/passwd",
            "net.//.passwd",
            "net/./core",
            "net./.core",
            "net.core.somax conn",
            "net.core.somaxconn\n",
            "net.core.\0",
            "net.core.é",
        ] {
            let found = Name::parse(text);
            assert!(
                matches!(found, Err(SysctlError::BadName { .. })),
                "{text:?}: {found:?}"
            );
        }
    }

    #[test]
    fn settings_of_an_interface_are_looked_up_on_another() {
        #[rustfmt::skip]
        let rows = [
            ("net.ipv4.conf.eth0.rp_filter", "net.ipv4.conf.default.rp_filter"),
            ("net.ipv6.neigh.eth0/1.locktime", "net.ipv6.neigh.lo.locktime"),
            ("net.ipv4.conf.all.rp_filter", "net.ipv4.conf.all.rp_filter"),
            ("net.ipv4.neigh.default.gc_thresh3", "net.ipv4.neigh.default.gc_thresh3"),
            ("net.core.somaxconn", "net.core.somaxconn"),
        ];
        for (text, expected) in rows {
            let name = Name::parse(text).unwrap().of_any_interface();
            assert_eq!(name.to_string(), expected);
        }
    }
}
