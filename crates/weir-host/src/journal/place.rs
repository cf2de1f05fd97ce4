//! Boot and network namespace in which a setting was changed: a sysctl lasts until the next boot, and a network setting
//! is a separate one in each network namespace.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::JournalError;
use super::key::Key;

/// Returns the id of the present boot (proc_sys_kernel(5), `random/boot_id`).
pub(super) fn boot_id() -> Result<String, JournalError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(JournalError::io("read", path))?;
    Ok(text.trim().to_owned())
}

/// Returns the network namespace in which the calling thread sees a setting, such as `net:[4026531840]`; `None` for a
/// setting that all namespaces share.
pub(super) fn namespace(key: &Key) -> Result<Option<String>, JournalError> {
    let Key::Sysctl(name) = key;
    if !(name.starts_with("net.") || name.starts_with("net/")) {
        return Ok(None);
    }
    let path = Path::new("/proc/thread-self/ns/net");
    let link = fs::read_link(path).map_err(JournalError::io("read", path))?;
    Ok(Some(link.to_string_lossy().into_owned()))
}

/// Returns true if a network namespace can still be entered: a process is in it, or it has a name (ip-netns(8)). A
/// namespace with neither is gone, and its settings with it.
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
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry: io::Result<fs::DirEntry>| Some(entry.ok()?.path()))
}
