//! Where and when a setting was changed: a sysctl lasts until the next boot, and one of the network
//! is another in each network namespace.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::JournalError;
use super::key::Key;

/// Identifies the time since the last boot (proc_sys_kernel(5), `random/boot_id`).
pub(super) fn boot_id() -> Result<String, JournalError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(JournalError::io("read", path))?;
    Ok(text.trim().to_owned())
}

/// The network namespace in which the calling thread sees a key, such as `net:[4026531840]`;
/// `None` for a key that is the same in all of them.
pub(super) fn namespace(key: &Key) -> Result<Option<String>, JournalError> {
    let Key::Sysctl(name) = key;
    if !(name.starts_with("net.") || name.starts_with("net/")) {
        return Ok(None);
    }
    let path = Path::new("/proc/thread-self/ns/net");
    let link = fs::read_link(path).map_err(JournalError::io("read", path))?;
    Ok(Some(link.to_string_lossy().into_owned()))
}

/// Whether a network namespace can still be entered: a process is in it, or it has a name
/// (ip-netns(8)). One that has neither is gone, and its settings with it.
pub(super) fn namespace_lives(namespace: &str) -> bool {
    let in_processes = paths_in("/proc").any(|process| {
        fs::read_link(process.join("ns/net")).is_ok_and(|link| link.as_os_str() == namespace)
    });
    in_processes
        || paths_in("/run/netns").any(|name| {
            fs::metadata(name).is_ok_and(|file| format!("net:[{}]", file.ino()) == namespace)
        })
}

fn paths_in(folder: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry: io::Result<fs::DirEntry>| Some(entry.ok()?.path()))
}
