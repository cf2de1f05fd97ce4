//! What may stand against a kernel setting, and what to do about it.

use std::io;

/// Why a kernel setting could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// Not a name of a setting.
    #[error("`{name}` is not the name of a kernel setting: {why}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// This kernel has none of that name.
    #[error("this kernel has no setting {0}")]
    Absent(String),
    /// It is the whole host's; a network namespace has none, or sees it read-only.
    #[error("{0} belongs to the whole host: a network namespace cannot have a value of its own")]
    NotInNamespace(String),
    /// Nobody can change it.
    #[error("{0} is read-only: the kernel tells it, and takes no other")]
    ReadOnly(String),
    /// The mount is read-only, as containers have it.
    #[error("{0} cannot be changed: /proc/sys is mounted read-only here")]
    MountedReadOnly(String),
    /// Writing to it does something, and it has no value that could be put back.
    #[error("{0} is an action, not a setting: it has no value")]
    WriteOnly(String),
    /// Not for this process.
    #[error("{0}: permission denied")]
    Denied(String),
    /// The kernel refuses the value: out of range, or not of its type.
    #[error("the kernel refuses `{value}` for {name}: {source}; it is `{now}`")]
    Invalid {
        /// The name.
        name: String,
        /// What was asked for.
        value: String,
        /// What it is afterwards: what it was before, unless something else changed it.
        now: String,
        /// The kernel's words.
        source: io::Error,
    },
    /// The kernel took the value, and made something else of it.
    #[error("the kernel made `{got}` of `{wanted}` for {name}; it is `{now}` again")]
    NotTaken {
        /// The name.
        name: String,
        /// What was asked for.
        wanted: String,
        /// What it was then.
        got: String,
        /// What it is afterwards: what it was before, unless something else changed it.
        now: String,
    },
    /// The kernel refused otherwise.
    #[error("cannot read or change {name}: {source}")]
    Refused {
        /// The name.
        name: String,
        /// The kernel's words.
        source: io::Error,
    },
}

impl SysctlError {
    /// What to do about it, where that can be said.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            SysctlError::BadName { .. } => {
                "write it as sysctl does, for example net.core.somaxconn"
            }
            SysctlError::Absent { .. } => {
                "look for it with `sysctl -a`; one that a module brings is there once the module \
                 is loaded"
            }
            SysctlError::NotInNamespace { .. } => "change it on the host itself, or leave it out",
            SysctlError::ReadOnly { .. } | SysctlError::WriteOnly { .. } => "leave it out",
            SysctlError::MountedReadOnly { .. } => {
                "run weir outside of the container, or in a privileged one"
            }
            SysctlError::Denied { .. } => "run weir as root; settings of net. need CAP_NET_ADMIN",
            SysctlError::Invalid { .. } => {
                "see its range in the kernel's Documentation/networking/ip-sysctl.rst or \
                 Documentation/admin-guide/sysctl/"
            }
            SysctlError::NotTaken { .. } => "choose a value that the kernel accepts unchanged",
            SysctlError::Refused { .. } => return None,
        };
        Some(hint.to_owned())
    }

    pub(super) fn bad_name(name: &str, why: &'static str) -> SysctlError {
        SysctlError::BadName {
            name: name.to_owned(),
            why,
        }
    }
}
