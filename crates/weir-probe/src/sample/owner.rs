//! Processes that share their network namespace with others, and which sockets are theirs.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::rows::Why;
use super::source::unread;
use crate::process::children;

/// Processes whose sockets are told apart from those of others in their network namespace.
#[derive(Debug)]
pub(super) struct Owner {
    roots: Vec<u32>,
    /// The kernel's numbers of the sockets that they had when they were last looked for.
    inodes: BTreeSet<u32>,
}

impl Owner {
    /// These processes and all that they start.
    pub(super) fn new(roots: Vec<u32>) -> Owner {
        Owner {
            roots,
            inodes: BTreeSet::new(),
        }
    }

    /// Returns true if a socket was theirs when they were last looked for.
    pub(super) fn has(&self, inode: u32) -> bool {
        self.inodes.contains(&inode)
    }

    /// Looks for their sockets (proc_pid_fd(5)). Processes that end meanwhile have none.
    ///
    /// # Errors
    /// The descriptors of one may not be read: it is another user's.
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

fn sockets_in(folder: &Path) -> io::Result<Vec<u32>> {
    let of_link = |link: fs::DirEntry| {
        let target = fs::read_link(link.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?;
        inode.strip_suffix(']')?.parse().ok()
    };
    Ok(fs::read_dir(folder)?
        .flatten()
        .filter_map(of_link)
        .collect())
}
