//! Files of the host, or of a folder that stands for one.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use weir_configuration::read_regular_below;

use crate::facts::Unread;

/// The longest file that is read for its lines, in bytes.
const LONGEST: u64 = 4 << 20;

/// Where things are read, and what came of it.
pub(super) struct Source {
    root: PathBuf,
    real: bool,
    pub(super) looked_at: Vec<String>,
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

    /// Whether this is the machine that weir runs on.
    pub(super) fn is_real(&self) -> bool {
        self.real
    }

    /// Where a path of the host is found.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text; `None` where there is no such file, or it cannot be read, which is noted.
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

    /// The same of a file that may be gone at any moment, as those of processes: nothing is noted.
    pub(super) fn peek(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    fn read(&self, path: &str) -> io::Result<String> {
        let bytes = read_regular_below(&self.root, Path::new(path), LONGEST)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Paths, as the host has them, of the files in a folder whose names end so, in order of name.
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
        names
            .into_iter()
            .map(|name| format!("{folder}/{name}"))
            .collect()
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(super) fn looked(&mut self, what: impl Into<String>) {
        self.looked_at.push(what.into());
    }

    pub(super) fn unread(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.unread.push(Unread {
            what: what.into(),
            why: why.into(),
        });
    }
}
