//! Configurations of a user.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::sandbox::{self, Sandbox};

/// State of a file: its bytes, its inode number and its time of modification.
type State = (Vec<u8>, u64, SystemTime);

/// A folder with a user's configuration.
pub struct User {
    pub folder: PathBuf,
    before: BTreeMap<PathBuf, State>,
}

impl User {
    /// Writes the files, which only root may change.
    pub fn new(sandbox: &Sandbox, files: &[(&str, &str)]) -> User {
        let folder = sandbox.path("user");
        fs::create_dir_all(&folder).expect("own folder");
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("own folder");
            fs::write(&path, text).expect("own folder");
            fs::set_permissions(&path, Permissions::from_mode(0o444)).expect("own file");
        }
        User { before: states(&folder), folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Checks that all files are unchanged, and that there are no others.
    #[track_caller]
    pub fn assert_untouched(&self) {
        assert!(states(&self.folder) == self.before, "the user's files");
    }
}

fn states(folder: &Path) -> BTreeMap<PathBuf, State> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(states(&path));
            continue;
        }
        let is = fs::metadata(&path).expect("a file");
        let bytes = fs::read(&path).expect("a file");
        let written = is.modified().expect("a time");
        all.insert(path, (bytes, is.ino(), written));
    }
    all
}

/// Returns a study of a user's configuration; its load names one of the virtual servers.
pub fn study(proxy: &str, arms: &str) -> String {
    let load = "- {name: closed, closed: true, connections: 2, duration: 2s, timeout: 10s,\n   \
                request: {fields: {Host: shop.example}}}";
    sandbox::study(proxy, load, &format!("a/a: false\narms:\n{arms}"))
}
