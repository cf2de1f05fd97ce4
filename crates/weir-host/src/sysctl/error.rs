//! Errors of access to a kernel setting, with hints on what to do about them.

use std::io;

/// Error of reading or changing a kernel setting.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// The name is not that of a setting.
    #[error("`{name}` is not the name of a kernel setting: {why}")]
    BadName {
        /// The name.
        name: String,
        /// Reason why the name is not valid.
        why: &'static str,
    },
    /// This kernel has no setting of that name.
    #[error("this kernel has no setting {0}")]
    Absent(String),
    /// The setting belongs to the whole host; a network namespace does not have it, or sees it read-only.
    #[error("{0} belongs to the whole host: a network namespace cannot have a value of its own")]
    NotInNamespace(String),
    /// Nobody can change the setting.
    #[error("{0} is read-only: the kernel tells it, and takes no other")]
    ReadOnly(String),
    /// The mount of `/proc/sys` is read-only, as in containers.
    #[error("{0} cannot be changed: /proc/sys is mounted read-only here")]
    MountedReadOnly(String),
    /// The setting is an action: writing to it does something, and it has no value that could be put back.
    #[error("{0} is an action, not a setting: it has no value")]
    WriteOnly(String),
    /// This process has no permission.
    #[error("{0}: permission denied")]
    Denied(String),
    /// The kernel refuses the value: out of range, or not of its type.
    #[error("the kernel refuses `{value}` for {name}: {source}; it is `{now}`")]
    Invalid {
        /// The name.
        name: String,
        /// Requested value.
        value: String,
        /// Value afterwards: the one from before, unless something else changed it.
        now: String,
        /// Error from the kernel.
        source: io::Error,
    },
    /// The kernel took the value and turned it into another one.
    #[error("the kernel made `{got}` of `{wanted}` for {name}; it is `{now}` again")]
    NotTaken {
        /// The name.
        name: String,
        /// Requested value.
        wanted: String,
        /// Value that the kernel made of the requested one.
        got: String,
        /// Value afterwards: the one from before, unless something else changed it.
        now: String,
    },
    /// The kernel refused for another reason.
    #[error("cannot read or change {name}: {source}")]
    Refused {
        /// The name.
        name: String,
        /// Error from the kernel.
        source: io::Error,
    },
}

impl SysctlError {
    /// Returns advice on what to do about the error; None if there is none.
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
        SysctlError::BadName { name: name.to_owned(), why }
    }
}
