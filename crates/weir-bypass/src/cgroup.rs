//! The cgroup v2 of this process (cgroups(7)).

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::BypassError;

/// Opens the directory of the calling process's group.
pub(crate) fn of_this_process() -> Result<File, BypassError> {
    let groups = read_text("/proc/self/cgroup")?;
    let path = path_of(&groups, &read_text("/proc/self/mountinfo")?, Path::is_dir)?;
    File::open(&path)
        .map_err(|e| BypassError::NoCgroup(format!("cannot open {}: {e}", path.display())))
}

fn read_text(path: &str) -> Result<String, BypassError> {
    std::fs::read_to_string(path)
        .map_err(|e| BypassError::NoCgroup(format!("cannot read {path}: {e}")))
}

/// Finds the directory of a group from `/proc/PID/cgroup` and `/proc/PID/mountinfo` (proc(5)).
///
/// A mount may show only the part of the hierarchy below its root; a group whose path is not below that root is not
/// visible in the mount.
fn path_of(
    groups: &str,
    mounts: &str,
    is_there: impl Fn(&Path) -> bool,
) -> Result<PathBuf, BypassError> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).ok_or_else(|| {
        BypassError::NoCgroup("the process is in no group of the second version".to_owned())
    })?;
    let mut mount_points = Vec::new();
    for (root, mount_point) in mounts.lines().filter_map(cgroup2_mount) {
        mount_points.push(mount_point.clone());
        let Ok(below) = Path::new(group).strip_prefix(&root) else {
            continue;
        };
        let path = Path::new(&mount_point).join(below);
        if is_there(&path) {
            return Ok(path);
        }
    }
    Err(BypassError::NoCgroup(if mount_points.is_empty() {
        "none is mounted".to_owned()
    } else {
        format!("`{group}` is not below {}", mount_points.join(", "))
    }))
}

/// Returns root and mount point of a mountinfo line for cgroup2; `None` for other lines.
fn cgroup2_mount(line: &str) -> Option<(String, String)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    if filesystem.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
        25 20 0:23 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu\n\
        26 20 0:24 / /sys/fs/cgroup/unified rw,relatime shared:6 - cgroup2 cgroup2 rw\n";

    fn path(groups: &str, mounts: &str) -> Result<String, String> {
        path_of(groups, mounts, |_| true)
            .map(|path| path.display().to_string())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn the_group_is_found_wherever_it_is_mounted() {
        let groups = "8:pids:/other\n0::/user.slice/weir\n";
        let directory = path(groups, HYBRID);
        assert_eq!(directory.as_deref(), Ok("/sys/fs/cgroup/unified/user.slice/weir"));
        let unified = "31 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(path("0::/", unified).as_deref(), Ok("/sys/fs/cgroup/"));
    }

    #[test]
    fn a_mount_that_shows_a_part_is_used_for_what_it_shows() {
        let part = "31 23 0:27 /pods/a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let directory = path("0::/pods/a/b\n", part);
        assert_eq!(directory.as_deref(), Ok("/sys/fs/cgroup/b"));
        let error = path("0::/pods/c\n", part).unwrap_err();
        assert!(error.contains("`/pods/c` is not below"), "{error}");
    }

    #[test]
    fn what_is_missing_is_said() {
        let error = path("8:pids:/\n", HYBRID).unwrap_err();
        assert!(error.contains("in no group"), "{error}");
        let error = path("0::/\n", "25 20 0:23 / /proc rw - proc proc rw\n").unwrap_err();
        assert!(error.contains("none is mounted"), "{error}");
    }
}
