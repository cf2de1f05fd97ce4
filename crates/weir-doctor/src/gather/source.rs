//! Files of the host, or of a folder that is used as its `/`.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use weir_configuration::read_regular_below;

use crate::facts::{Reading, Unread};

/// Maximum size of a file that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// The root folder to read from, with records of what was read and what could not be.
pub(super) struct Source {
    root: PathBuf,
    real: bool,
    pub(super) looked_at: Vec<Reading>,
    pub(super) unread: Vec<Unread>,
}

impl Source {
    pub(super) fn new(root: Option<&Path>) -> Source {
        Source {
            root: root.unwrap_or(Path::new("/")).to_owned(),
            real: root.is_none(),
            looked_at: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// Returns true if this is the machine that weir runs on.
    pub(super) fn is_real(&self) -> bool {
        self.real
    }

    /// Returns the actual location of a path of the host.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the text of a file; `None` if it does not exist or cannot be read. Only the latter is recorded as
    /// unread.
    pub(super) fn text(&mut self, path: &str) -> Option<String> {
        match self.read(path) {
            Ok(text) => Some(text),
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                    self.unread(path, error.to_string());
                }
                None
            }
        }
    }

    /// Returns the text of a file that may vanish at any moment, such as one of a process; `None` if it cannot be read.
    /// Nothing is recorded as unread.
    pub(super) fn peek(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    fn read(&self, path: &str) -> io::Result<String> {
        let bytes = read_regular_below(&self.root, Path::new(path), LONGEST)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the paths, as seen on the host, of the files in a folder whose names have this ending, sorted by name.
    pub(super) fn files(&mut self, folder: &str, ending: &str) -> Vec<String> {
        let entries = match fs::read_dir(self.path(folder)) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    self.unread(folder, error.to_string());
                }
                return Vec::new();
            }
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(ending))
            .collect();
        names.sort();
        names.into_iter().map(|name| format!("{folder}/{name}")).collect()
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(super) fn looked(&mut self, reading: Reading) {
        self.looked_at.push(reading);
    }

    pub(super) fn unread(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.unread.push(Unread { what: what.into(), why: why.into() });
    }
}
