//! Folder of one run's proxies, and the sweep of folders that earlier runs left behind.
//!
//! A run that ends in any orderly way removes its folder. A run that was killed cannot, so the next one sweeps: it
//! removes folders whose weir has ended. A proxy's processes that survived their weir are ended first, if they are
//! identified beyond doubt: see [`crate::orphans`].

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use weir_probe::ProcessId;

use crate::SutError;
use crate::orphans::left_below;
use crate::port::random;
use crate::processes::end_all;
use crate::user::WorkerUser;

/// Name of the file that identifies the maker of a folder. No arm's name begins with a dot, so weir's own files in the
/// folder never conflict with an arm's.
const OWNER_FILE: &str = ".pid";

/// Age from which a folder without an owner's file counts as abandoned; a younger one is about to be filled by a weir.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// Maximum time for an orphaned proxy to end after SIGTERM.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);

/// A private folder under the system's folder for temporary files, removed with everything in it when this value is
/// dropped. Other users can neither read nor write in it. They may pass through root's folder to an arm's prefix: a
/// proxy's workers often run as another user than its master ([`make_folder`]).
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    /// Returns the folder in which work folders are created.
    ///
    /// # Errors
    /// [`SutError::TemporaryFolder`] if it is no folder, or this user cannot make files in it.
    pub fn place() -> Result<PathBuf, SutError> {
        let path = std::env::temp_dir();
        match can_make_files(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err(SutError::TemporaryFolder { path, source }),
        }
    }

    /// Creates a new folder, `weir-<pid>-<random>`.
    ///
    /// # Errors
    /// The folder cannot be created or written to, for example because the disk is full.
    pub fn create() -> Result<WorkFolder, SutError> {
        WorkFolder::create_in(&std::env::temp_dir())
    }

    /// Creates a new folder in another one.
    ///
    /// # Errors
    /// Same as [`WorkFolder::create`].
    pub fn create_in(parent: &Path) -> Result<WorkFolder, SutError> {
        let owner = Owner::this_process()?;
        let path = parent.join(format!("weir-{}-{:016x}", owner.process.pid, random()));
        weir_files::make_folder(&path)
            .map_err(|source| SutError::TemporaryFolder { path: parent.to_owned(), source })?;
        let folder = WorkFolder { path };
        // Proxies run what is in it: whoever owns a folder above it could put another in its place.
        weir_files::only_ours(&folder.path).map_err(|why| {
            SutError::file("use", &folder.path)(std::io::Error::other(format!(
                "{why}; make it root's and sticky (chown root, chmod +t), or set TMPDIR to another folder"
            )))
        })?;
        let file = folder.path.join(OWNER_FILE);
        weir_files::write(&file, owner.to_text()).map_err(SutError::file("write", file))?;
        if rustix::process::geteuid().is_root() {
            let passable = fs::set_permissions(&folder.path, Permissions::from_mode(PASSABLE));
            passable.map_err(SutError::file("open", &folder.path))?;
        }
        Ok(folder)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a folder for one proxy's prefix, which is not created yet. `name` is an arm's name
    /// ([`weir_model::study::is_arm_name`]).
    pub fn prefix(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes the folders that ended weirs left under the system's folder for temporary files, and returns the removed
    /// ones. Folders of other users, of running weirs, and of weirs in another container are left alone, and so are
    /// those that cannot be removed.
    pub fn sweep() -> Vec<PathBuf> {
        WorkFolder::sweep_in(&std::env::temp_dir())
    }

    /// Does the same as [`WorkFolder::sweep`] for another parent folder.
    pub fn sweep_in(parent: &Path) -> Vec<PathBuf> {
        let mut swept = WorkFolder::abandoned_in(parent);
        swept.retain(|path| {
            end_orphans(path);
            fs::remove_dir_all(path).is_ok()
        });
        swept
    }

    /// Removes the folders that this process created before it became another program by execve(2), and ends the
    /// processes that still run in them; returns the removed ones.
    pub fn sweep_own() -> Vec<PathBuf> {
        let mut folders = WorkFolder::own();
        let this = Owner::this_process().ok();
        folders.retain(|path| {
            let is_own = this.is_some() && Owner::of(path) == this;
            is_own && {
                end_orphans(path);
                fs::remove_dir_all(path).is_ok()
            }
        });
        folders
    }

    /// Returns the folders of this process under the system's folder for temporary files.
    pub fn own() -> Vec<PathBuf> {
        let mut folders = WorkFolder::named_in(&std::env::temp_dir());
        folders.retain(|(pid, path)| {
            *pid == std::process::id()
                && fs::symlink_metadata(path)
                    .is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
                && weir_files::only_ours(path).is_ok()
        });
        folders.into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the folders that [`WorkFolder::sweep`] would remove.
    pub fn abandoned() -> Vec<PathBuf> {
        WorkFolder::abandoned_in(&std::env::temp_dir())
    }

    fn abandoned_in(parent: &Path) -> Vec<PathBuf> {
        WorkFolder::named_in(parent)
            .into_iter()
            .map(|(_, path)| path)
            .filter(|path| is_abandoned(path))
            .collect()
    }

    /// Returns all paths with such a name in a folder, each with the process number in its name.
    fn named_in(parent: &Path) -> Vec<(u32, PathBuf)> {
        fs::read_dir(parent)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter_map(|path| Some((name_pid(path.file_name()?.to_str()?)?, path)))
            .collect()
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        weir_files::let_files_open();
        // Nobody is left to tell; the next run's sweep tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Checks that a path is a folder in which this user can make files.
fn can_make_files(folder: &Path) -> std::io::Result<()> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(std::io::ErrorKind::NotADirectory.into());
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    Ok(accessat(CWD, folder, access, AtFlags::empty())?)
}

/// Mode of a folder that others may pass through, and not look into.
const PASSABLE: u32 = 0o711;

/// Mode of a folder that its group may pass through, and not look into.
const PASSABLE_BY_GROUP: u32 = 0o710;

/// Mode of a folder that its group may look into.
const LISTABLE_BY_GROUP: u32 = 0o750;

/// Creates one folder of a prefix. Nobody else may list it; a proxy's workers that become another user may pass through
/// it, by their group, to files and sockets whose names they know.
pub(crate) fn make_folder(path: &Path, workers: Option<&WorkerUser>) -> Result<(), SutError> {
    make_passable(path, workers).map_err(SutError::file("create", path))
}

/// Lets a proxy's workers list a folder of a prefix, as the folder of a site is: nginx opens it to look a file up with
/// `open_file_cache`.
pub(crate) fn let_workers_list(path: &Path, workers: Option<&WorkerUser>) -> Result<(), SutError> {
    match workers {
        Some(_) => fs::set_permissions(path, Permissions::from_mode(LISTABLE_BY_GROUP))
            .map_err(SutError::file("open to workers", path)),
        None => Ok(()),
    }
}

fn make_passable(path: &Path, workers: Option<&WorkerUser>) -> std::io::Result<()> {
    weir_files::make_folder(path)?;
    let Some(user) = workers else { return Ok(()) };
    chown(path, None, Some(user.gid))?;
    fs::set_permissions(path, Permissions::from_mode(PASSABLE_BY_GROUP))
}

/// Returns the process number in a folder's name; `None` for names that are not weir's.
fn name_pid(name: &str) -> Option<u32> {
    let (pid, random) = name.strip_prefix("weir-")?.split_once('-')?;
    let is_random = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    if is_random { pid.parse().ok() } else { None }
}

/// Maker of a folder. Process numbers are valid only within one boot and one PID namespace: containers may share a
/// folder for temporary files and not their processes.
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

    /// Reads the maker of a folder; None if the folder has no valid owner's file.
    fn of(folder: &Path) -> Option<Owner> {
        Owner::parse(&fs::read_to_string(folder.join(OWNER_FILE)).ok()?)
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

    /// Returns true if the owner has certainly ended, from the point of view of `own`.
    fn is_gone(&self, own: &Owner) -> bool {
        if self.boot != own.boot {
            return true;
        }
        self.namespace == own.namespace && !self.process.is_alive()
    }

    /// Returns true if process numbers that the owner has noted are valid here.
    fn shares_numbers(&self, own: &Owner) -> bool {
        self.boot == own.boot && self.namespace == own.namespace
    }
}

/// Returns true if a folder is this user's and its weir has certainly ended. Whoever owns a folder above it could have
/// put another in its place, whose notes name any process.
fn is_abandoned(path: &Path) -> bool {
    // Not followed: a link of that name is nobody's work folder.
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return false;
    };
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    let Ok(current) = Owner::this_process() else {
        return false;
    };
    if !metadata.is_dir() || !is_own || weir_files::only_ours(path).is_err() {
        return false;
    }
    match Owner::of(path) {
        Some(owner) => owner.is_gone(&current),
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
    let (owner, current) = (Owner::of(folder), Owner::this_process().ok());
    let has_numbers =
        owner.zip(current).is_some_and(|(owner, current)| owner.shares_numbers(&current));
    for prefix in fs::read_dir(folder).into_iter().flatten().flatten() {
        end_all(&left_below(&prefix.path(), has_numbers), ORPHAN_GRACE);
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
        let owner = Owner::this_process().unwrap();
        assert_eq!(Owner::parse(&owner.to_text()), Some(owner.clone()));
        assert!(!owner.is_gone(&owner));
        let mut earlier = owner.clone();
        earlier.process.start_ticks += 1;
        assert!(earlier.is_gone(&owner), "another process has the number now");
        earlier.namespace = "pid:[1]".to_owned();
        assert!(!earlier.is_gone(&owner), "numbers of another container mean nothing here");
        earlier.boot = "another boot".to_owned();
        assert!(earlier.is_gone(&owner), "nothing outlives a boot");
    }

    #[test]
    fn a_sweep_takes_abandoned_folders_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let living = WorkFolder::create_in(parent.path()).unwrap();
        let mut former_owner = Owner::this_process().unwrap();
        former_owner.process.start_ticks += 1;
        let abandoned = parent.path().join("weir-42-0123456789abcdef");
        fs::create_dir_all(abandoned.join("arm/logs")).unwrap();
        fs::write(abandoned.join(OWNER_FILE), former_owner.to_text()).unwrap();
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
    fn a_folder_that_others_could_replace_is_not_used() {
        let parent = tempfile::tempdir().unwrap();
        for (mode, is_used) in [(0o777, false), (0o1777, true), (0o755, true)] {
            fs::set_permissions(parent.path(), Permissions::from_mode(mode)).unwrap();
            let folder = WorkFolder::create_in(parent.path());
            assert_eq!(folder.is_ok(), is_used, "{mode:o}: {folder:?}");
            drop(folder);
            assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        }
        // As root alone.
        if chown(parent.path(), Some(12_345), None).is_ok() {
            let refused = WorkFolder::create_in(parent.path()).unwrap_err();
            assert!(refused.to_string().contains("another user"), "{refused}");
        }
    }

    #[test]
    fn a_folder_can_be_looked_into_by_nobody_else_and_goes_when_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::create_in(parent.path()).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(mode_of(folder.path()), if is_root { 0o711 } else { 0o700 });
        assert_eq!(mode_of(&folder.path().join(OWNER_FILE)), 0o600);
        let prefix = folder.prefix("arm");
        make_folder(&prefix, WorkerUser::find(&["nobody"]).as_ref()).unwrap();
        assert_eq!(mode_of(&prefix), if is_root { 0o710 } else { 0o700 });
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    /// The owner of a folder above a work folder could put another in its place while it is swept.
    #[test]
    fn a_folder_that_others_could_replace_is_left_alone() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("weir-1-0123456789abcdef");
        fs::create_dir(&folder).unwrap();
        let mut ended = Owner::this_process().unwrap();
        ended.process.start_ticks += 1;
        fs::write(folder.join(OWNER_FILE), ended.to_text()).unwrap();
        chown(parent.path(), Some(65_534), Some(65_534)).unwrap();
        assert_eq!(WorkFolder::sweep_in(parent.path()), Vec::<PathBuf>::new());
        chown(parent.path(), Some(0), Some(0)).unwrap();
        assert_eq!(WorkFolder::sweep_in(parent.path()), [folder]);
    }
}
