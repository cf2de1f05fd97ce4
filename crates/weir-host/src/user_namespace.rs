//! A user namespace of this process's own (user_namespaces(7)). Distributions that let anybody have one give every user
//! network namespaces, and with them kernel settings of `net.*`, without root.

use std::fs;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid};

use crate::HostError;

/// Settings that forbid user namespaces: name, value that forbids, and value that allows.
const FORBIDDEN_BY: [(&str, &str, &str); 3] = [
    // Ubuntu from 23.10 on.
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    // Debian's own.
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
];

/// Moves this process into a user namespace of its own. Its user and group keep their numbers there, and it has all
/// capabilities over the namespaces that it makes from then on, but none over anything that was there before.
///
/// The move is permanent, so try it in another process first ([`crate::may_have_networks`] says what it brings): some
/// distributions let a process enter one and then give it no capabilities.
///
/// # Errors
/// The kernel refused, or this process has more than one thread.
pub fn enter_user_namespace() -> Result<(), HostError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| {
        HostError::refused("make a user namespace", std::io::Error::from(error))
    })?;
    // Who may not set the numbers of groups may not drop one either (user_namespaces(7)).
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1\n"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1\n"))
}

fn write(path: &str, text: &str) -> Result<(), HostError> {
    fs::write(path, text).map_err(|error| HostError::refused(format!("write {path}"), error))
}

/// Returns the command that an administrator can run so that users who are not root can have network namespaces; None
/// if no setting is found that forbids them.
pub(crate) fn permission() -> Option<String> {
    permission_in(Path::new("/proc/sys"))
}

fn permission_in(sysctls: &Path) -> Option<String> {
    let (name, _, allowed) = FORBIDDEN_BY.iter().find(|(name, value, _)| {
        let path = sysctls.join(name.replace('.', "/"));
        fs::read_to_string(path).is_ok_and(|text| text.trim() == *value)
    })?;
    Some(format!("sysctl -w {name}={allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(permission_in(folder.path()), None);
        write_setting(folder.path(), "user/max_user_namespaces", "96365");
        assert_eq!(permission_in(folder.path()), None);
        write_setting(folder.path(), "user/max_user_namespaces", "0");
        let command = permission_in(folder.path());
        assert_eq!(command.as_deref(), Some("sysctl -w user.max_user_namespaces=10000"));
        write_setting(folder.path(), "kernel/apparmor_restrict_unprivileged_userns", "1");
        let command = permission_in(folder.path());
        assert_eq!(
            command.as_deref(),
            Some("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
        );
    }

    fn write_setting(folder: &Path, name: &str, value: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{value}\n")).unwrap();
    }
}
