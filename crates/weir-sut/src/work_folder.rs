//! The folder of one run's proxies, and what is done about those that earlier runs left behind.
//!
//! A run that ends in any orderly way removes its folder. One that was killed cannot, so the next
//! one sweeps: it removes folders whose weir lives no more. A proxy's processes that survived their
//! weir are ended first, if it is beyond doubt that they are such: they run the program that the folder
//! names and have a file of the folder open for writing.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use weir_probe::ProcessId;

use crate::SutError;
use crate::orphans::writers_below;
use crate::port::random;
use crate::processes::end_all;

const OWNER_FILE: &str = "pid";

/// A folder without an owner's file is one that a weir is about to fill, unless it is this old.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// How long an orphaned proxy may take to end when it is asked to.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);

/// A private folder under the system's folder for temporary files, removed with everything in it
/// when this is dropped. Everybody may enter it and read it, since a proxy's workers are often
/// another user than weir; nobody else may write.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    /// Makes a new folder, `weir-<pid>-<random>`.
    ///
    /// # Errors
    /// It cannot be made or written to, for example because the disk is full.
    pub fn create() -> Result<WorkFolder, SutError> {
        WorkFolder::create_in(&std::env::temp_dir())
    }

    /// Makes a new folder in another one.
    ///
    /// # Errors
    /// As [`WorkFolder::create`].
    pub fn create_in(parent: &Path) -> Result<WorkFolder, SutError> {
        let own = Owner::this_process()?;
        let path = parent.join(format!("weir-{}-{:016x}", own.process.pid, random()));
        make_folder(&path)?;
        let folder = WorkFolder { path };
        let file = folder.path.join(OWNER_FILE);
        fs::write(&file, own.to_text()).map_err(SutError::file("write", file))?;
        Ok(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder for one proxy's prefix, not made yet. `name` is an arm's name.
    pub fn prefix(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes what weirs that live no more left under the system's folder for temporary files,
    /// and says which folders those were. Folders of other users, of weirs that live, and of weirs
    /// in another container are left alone, and so is what cannot be removed.
    pub fn sweep() -> Vec<PathBuf> {
        WorkFolder::sweep_in(&std::env::temp_dir())
    }

    /// [`WorkFolder::sweep`] of another place.
    pub fn sweep_in(parent: &Path) -> Vec<PathBuf> {
        let mut swept = WorkFolder::abandoned_in(parent);
        swept.retain(|path| {
            end_orphans(path);
            fs::remove_dir_all(path).is_ok()
        });
        swept
    }

    /// What [`WorkFolder::sweep`] would remove.
    pub fn abandoned() -> Vec<PathBuf> {
        WorkFolder::abandoned_in(&std::env::temp_dir())
    }

    fn abandoned_in(parent: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(parent) else {
            return Vec::new();
        };
        let is_named_so = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name_pid(name).is_some())
        };
        let paths = entries.flatten().map(|entry| entry.path());
        paths
            .filter(|path| is_named_so(path) && is_abandoned(path))
            .collect()
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // Nobody is left to tell; the next run's sweep tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes one folder that everybody may enter and nobody else may write, whatever the umask.
pub(crate) fn make_folder(path: &Path) -> Result<(), SutError> {
    let mut builder = DirBuilder::new();
    builder.mode(0o755);
    builder
        .create(path)
        .map_err(SutError::file("create", path))?;
    fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(SutError::file("create", path))
}

/// The process number in a folder's name, `None` for names that are not weir's.
fn name_pid(name: &str) -> Option<u32> {
    let (pid, random) = name.strip_prefix("weir-")?.split_once('-')?;
    let is_random = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    if is_random { pid.parse().ok() } else { None }
}

/// Who made a folder. Process numbers mean something only within one boot and one PID namespace:
/// containers may share a folder for temporary files and not their processes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    process: ProcessId,
    boot: String,
    namespace: String,
}

impl Owner {
    fn this_process() -> Result<Owner, SutError> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Ok(Owner {
            process: ProcessId::own()?,
            boot: boot.trim().to_owned(),
            namespace: namespace.to_string_lossy().into_owned(),
        })
    }

    fn to_text(&self) -> String {
        let ProcessId { pid, start_ticks } = self.process;
        format!("{pid}\n{start_ticks}\n{}\n{}\n", self.boot, self.namespace)
    }

    fn parse(text: &str) -> Option<Owner> {
        let mut lines = text.lines();
        Some(Owner {
            process: ProcessId {
                pid: lines.next()?.parse().ok()?,
                start_ticks: lines.next()?.parse().ok()?,
            },
            boot: lines.next()?.to_owned(),
            namespace: lines.next()?.to_owned(),
        })
    }

    /// Whether it is certain that the owner lives no more, as `own` sees it.
    fn is_gone(&self, own: &Owner) -> bool {
        if self.boot != own.boot {
            return true;
        }
        self.namespace == own.namespace && !self.process.is_alive()
    }
}

/// Whether a folder is this user's and its weir is certainly gone.
fn is_abandoned(path: &Path) -> bool {
    // Not followed: a link of that name is nobody's work folder.
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return false;
    };
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    let Ok(own) = Owner::this_process() else {
        return false;
    };
    if !metadata.is_dir() || !is_own {
        return false;
    }
    let text = fs::read_to_string(path.join(OWNER_FILE)).unwrap_or_default();
    match Owner::parse(&text) {
        Some(owner) => owner.is_gone(&own),
        None => is_older_than(&metadata, ABANDONED_AFTER),
    }
}

fn is_older_than(metadata: &Metadata, age: Duration) -> bool {
    let modified = metadata.modified().ok();
    let since = modified.and_then(|then| SystemTime::now().duration_since(then).ok());
    since.is_some_and(|since| since > age)
}

/// Ends proxies that outlived the weir of an abandoned folder.
fn end_orphans(folder: &Path) {
    let Ok(prefixes) = fs::read_dir(folder) else {
        return;
    };
    for prefix in prefixes.flatten() {
        end_all(&writers_below(&prefix.path()), ORPHAN_GRACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_weir_gives_are_looked_at() {
        assert_eq!(name_pid("weir-42-0123456789abcdef"), Some(42));
        for other in [
            "weir-42",
            "weir-x-0123456789abcdef",
            "weir-42-012345",
            "weir-42-0123456789abcdeg",
            "weird",
        ] {
            assert_eq!(name_pid(other), None, "{other}");
        }
    }

    #[test]
    fn an_owner_is_gone_only_when_that_is_certain() {
        let own = Owner::this_process().unwrap();
        assert_eq!(Owner::parse(&own.to_text()), Some(own.clone()));
        assert!(!own.is_gone(&own));
        let mut earlier = own.clone();
        earlier.process.start_ticks += 1;
        assert!(earlier.is_gone(&own), "another process has the number now");
        earlier.namespace = "pid:[1]".to_owned();
        assert!(
            !earlier.is_gone(&own),
            "numbers of another container mean nothing here"
        );
        earlier.boot = "another boot".to_owned();
        assert!(earlier.is_gone(&own), "nothing outlives a boot");
    }

    #[test]
    fn a_sweep_takes_abandoned_folders_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let living = WorkFolder::create_in(parent.path()).unwrap();
        let mut gone = Owner::this_process().unwrap();
        gone.process.start_ticks += 1;
        let abandoned = parent.path().join("weir-42-0123456789abcdef");
        fs::create_dir_all(abandoned.join("arm/logs")).unwrap();
        fs::write(abandoned.join(OWNER_FILE), gone.to_text()).unwrap();
        let young = parent.path().join("weir-43-0123456789abcdef");
        fs::create_dir(&young).unwrap();
        let linked = parent.path().join("weir-44-0123456789abcdef");
        std::os::unix::fs::symlink(parent.path(), &linked).unwrap();
        let foreign = parent.path().join("weird");
        fs::create_dir(&foreign).unwrap();

        let expected = std::slice::from_ref(&abandoned);
        assert_eq!(WorkFolder::abandoned_in(parent.path()), expected);
        assert!(abandoned.exists(), "it was only looked for");
        assert_eq!(WorkFolder::sweep_in(parent.path()), expected);
        assert!(!abandoned.exists());
        assert!(living.path().exists() && young.exists() && linked.exists() && foreign.exists());
    }

    #[test]
    fn a_folder_may_be_entered_by_all_and_goes_when_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::create_in(parent.path()).unwrap();
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
