//! haproxy.cfg: one file, or a folder of files as `haproxy -f FOLDER` reads it.

mod adapt;
mod addresses;
mod asked;
mod change;
mod conditions;
mod edit;
mod keywords;
mod known;
mod listeners;
mod maps;
mod options;
mod paths;
mod replaced;
mod rewritten;
mod sections;
mod servers;
mod sides;
mod spelling;
mod steps;
mod variables;
mod words;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

pub use adapt::adapt;
pub use asked::{asked, listeners};
pub use change::change;
pub use keywords::is_used_by;
pub use options::{as_defaults, lines};
pub use replaced::{certificates, replaced};
pub use sections::{Section, Statement, Tree};
pub use words::Word;

use weir_configuration::place::{about, absolute, read as read_file};
use weir_configuration::{ConfigurationError, Source};

/// Reads a haproxy.cfg, or all files of a folder that end in `.cfg` and are not hidden, in the order of their names'
/// bytes (HAProxy's management guide, `-f`).
///
/// # Errors
/// Returns an error if a file is missing or not UTF-8, if a folder has no such file, or if a file cannot be parsed as
/// sections ([`Tree::parse`]).
pub fn read(main: &Path) -> Result<Source, ConfigurationError> {
    let main = absolute(main);
    let paths = if main.is_dir() { files_of(&main)? } else { vec![main] };
    let files = paths.iter().map(|path| read_file(path)).collect::<Result<_, _>>()?;
    let source = Source::new(files);
    Tree::parse(&source)?;
    Ok(source)
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, ConfigurationError> {
    let mut paths = Vec::new();
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    for entry in entries.map_err(|e| about(folder, format!("cannot be read: {e}")))? {
        let path = entry.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.extension() == Some(OsStr::new("cfg")) && !hidden && path.is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        let hint = "HAProxy reads the files of a folder that end in .cfg";
        return Err(about(folder, "the folder has no configuration").hint(hint));
    }
    paths.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    Ok(paths)
}
