//! Processes that share their network namespace with others, and their sockets.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::rows::Why;
use super::source::unread;
use crate::process::children;

/// Processes whose sockets are distinguished from those of others in their network namespace.
#[derive(Debug)]
pub(super) struct Owner {
    roots: Vec<u32>,
    /// Inodes of the sockets that they had at the last search.
    inodes: BTreeSet<u32>,
}

impl Owner {
    /// Selects these processes and all that they start.
    pub(super) fn new(roots: Vec<u32>) -> Owner {
        Owner { roots, inodes: BTreeSet::new() }
    }

    /// Returns true if these processes had a socket at the last search.
    pub(super) fn has(&self, inode: u32) -> bool {
        self.inodes.contains(&inode)
    }

    /// Searches for the sockets of these processes (proc_pid_fd(5)). Processes that end meanwhile have none.
    ///
    /// # Errors
    /// Fails if the descriptors of a process may not be read: it belongs to another user.
    pub(super) fn look(&mut self) -> Result<(), Why> {
        self.inodes.clear();
        let (mut left, mut seen) = (self.roots.clone(), BTreeSet::new());
        while let Some(pid) = left.pop() {
            if !seen.insert(pid) {
                continue;
            }
            left.extend(children(pid).unwrap_or_default());
            let folder = PathBuf::from(format!("/proc/{pid}/fd"));
            match sockets_in(&folder) {
                Ok(inodes) => self.inodes.extend(inodes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unread(&folder, &error)),
            }
        }
        Ok(())
    }
}

/// Counts of an owner's sockets; `None` if not counted yet.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Owned {
    /// Outbound sockets in TIME_WAIT.
    pub(super) time_wait: Option<u64>,
    /// Sockets other than listeners and those in TIME_WAIT.
    pub(super) in_use: Option<u64>,
}

/// Connections in one counter of a network namespace that an owner's listeners dropped. The kernel's count of a
/// listener includes more: each bare acknowledgement that TCP_DEFER_ACCEPT ignores, too (tcp_v4_rcv() of
/// net/ipv4/tcp_ipv4.c).
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Drops {
    /// Previous counts of the listeners and of the namespace.
    before: Option<(u64, u64)>,
    own: u64,
}

impl Drops {
    /// Adds the smaller of both increases since the last call. Returns the total so far.
    pub(super) fn counted(&mut self, by_listeners: u64, by_namespace: u64) -> u64 {
        if let Some((listeners, namespace)) = self.before.replace((by_listeners, by_namespace)) {
            let dropped = by_listeners.saturating_sub(listeners);
            self.own += dropped.min(by_namespace.saturating_sub(namespace));
        }
        self.own
    }
}

fn sockets_in(folder: &Path) -> io::Result<Vec<u32>> {
    Ok(fs::read_dir(folder)?
        .flatten()
        .filter_map(|link| {
            let target = fs::read_link(link.path()).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?;
            inode.strip_suffix(']')?.parse().ok()
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_listener_ignored_is_no_connection_that_it_dropped() {
        let mut drops = Drops::default();
        for (by_listeners, by_namespace, own) in
            [(40, 7, 0), (90, 7, 0), (95, 12, 5), (95, 30, 5), (100, 31, 6)]
        {
            assert_eq!(drops.counted(by_listeners, by_namespace), own);
        }
    }
}
