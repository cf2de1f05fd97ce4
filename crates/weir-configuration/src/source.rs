//! The files of a configuration, and changes of their text.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, group_diff_ops};
use weir_model::study::AskSpec;
use weir_parameters::Parameter;

/// Files of one configuration as they were read, the main one first, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Files of the configuration, the main one first.
    pub files: Vec<SourceFile>,
    /// Folder from which relative paths are resolved: the main file's, unless the reader was given another one.
    pub base: PathBuf,
    /// Files that each argument of `include` stood for when the configuration was read, as indices in
    /// [`Source::files`]. Empty in a language without includes.
    pub includes: BTreeMap<String, Vec<usize>>,
}

/// One file of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Absolute path of the user's file.
    pub path: PathBuf,
    /// Complete text. A configuration that is not UTF-8 is refused when it is read.
    pub text: String,
}

/// A replacement of some bytes of a file's text; an empty range is an insertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// Index in [`Source::files`].
    pub file: usize,
    /// Byte range of the text as it was read.
    pub range: Range<usize>,
    /// New text for the range.
    pub text: String,
}

/// A setting that has to be in force.
#[derive(Debug, Clone, Copy)]
pub struct WantedSetting<'a> {
    /// Row of the catalog, which defines how the proxy spells the setting.
    pub row: &'a Parameter,
    /// Canonical level of the setting.
    pub level: &'a str,
}

/// Requests of a load to a copy, and the address for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Requests, in terms of the user's configuration.
    pub spec: AskSpec,
    /// Address at which the copy receives the requests. If two loads ask one listener, it has the address of the first.
    pub at: SocketAddr,
}

/// Everything that a copy of a configuration needs in order to run in a trial.
#[derive(Debug, Clone)]
pub struct Surroundings<'a> {
    /// Folder of the copy, as a real and absolute path: logs, sockets and temporary files go below it.
    pub prefix: &'a Path,
    /// Requests of the loads, with their addresses; the copy listens on no other addresses.
    pub asks: Vec<Ask>,
    /// Certificate for clients that ask over TLS; None for the one in the user's configuration.
    pub certificate: Option<Pem<'a>>,
    /// Address of the server that replaces every origin server.
    pub origin: SocketAddr,
    /// User and group for the workers; None if weir may not change the user.
    pub user: Option<(&'a str, &'a str)>,
}

/// A certificate and its key, as absolute paths of two PEM files. HAProxy looks for the key beside the certificate,
/// under the certificate's name followed by `.key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pem<'a> {
    /// Path of the certificate.
    pub certificate: &'a Path,
    /// Path of the key.
    pub key: &'a Path,
}

impl Source {
    /// Creates a configuration of these files, the main one first, without includes.
    pub fn new(files: Vec<SourceFile>) -> Source {
        let folder = files.first().and_then(|main| main.path.parent());
        Source {
            base: folder.unwrap_or(Path::new("/")).to_owned(),
            files,
            includes: BTreeMap::new(),
        }
    }

    /// Returns the same files with some replacements. Insertions at one place keep their order. Bytes that two
    /// replacements take away go once (the blank between two words, say), and of two texts for the same bytes the first
    /// counts.
    #[must_use]
    pub fn with(&self, mut splices: Vec<Splice>) -> Source {
        splices.sort_by_key(|splice| (splice.file, splice.range.start, splice.range.end));
        let mut changed = self.clone();
        for of_file in splices.chunk_by(|a, b| a.file == b.file) {
            let before = &self.files[of_file[0].file].text;
            changed.files[of_file[0].file].text = apply_splices(before, of_file);
        }
        changed
    }

    /// Returns the path at which [`Source::write_below`] puts each file, relative to its folder: as the files lie below
    /// the deepest folder that contains them all. Characters with a meaning in a language of configurations or in its
    /// globs are left out of the names.
    pub fn names(&self) -> Vec<PathBuf> {
        let common = self.common_folder();
        let mut names = BTreeSet::new();
        self.files
            .iter()
            .map(|file| {
                let below = file.path.strip_prefix(&common).unwrap_or(&file.path);
                make_distinct(plain(below), &mut names)
            })
            .collect()
    }

    fn common_folder(&self) -> PathBuf {
        self.files
            .iter()
            .filter_map(|file| file.path.parent())
            .map(Path::to_owned)
            .reduce(|common, folder| {
                common
                    .components()
                    .zip(folder.components())
                    .take_while(|(a, b)| a == b)
                    .map(|(component, _)| component)
                    .collect()
            })
            .unwrap_or_default()
    }

    /// Writes all files below `folder`, which is made if needed, and returns the main file's path. Nothing is written
    /// outside of it, wherever the files came from. Only this user can read the files, since they may contain secrets.
    ///
    /// # Errors
    /// Returns an error if a folder cannot be made or a file cannot be written.
    pub fn write_below(&self, folder: &Path) -> io::Result<PathBuf> {
        let names = self.names();
        for (file, name) in self.files.iter().zip(&names) {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                weir_files::make_folders(parent)?;
            }
            weir_files::write(&path, &file.text)?;
        }
        let main = names.first().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(folder.join(main))
    }
}

fn apply_splices(before: &str, splices: &[Splice]) -> String {
    let mut text = String::with_capacity(before.len() + splices.len() * 32);
    let mut at = 0;
    for splice in splices {
        let begin = splice.range.start.max(at);
        text += &before[at..begin];
        // What lies within bytes that are gone has no place any more.
        if splice.range.start == begin || splice.range.end > at {
            text += &splice.text;
        }
        at = splice.range.end.max(begin);
    }
    text + &before[at..]
}

/// Returns a relative path with only letters, digits and `-._`.
fn plain(path: &Path) -> PathBuf {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        })
        .map(|name| {
            name.replace(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '.' | '_'), "_")
        })
        .collect()
}

/// Returns `name`, or the first of `name-2`, `name-3`, … that is not taken.
fn make_distinct(name: PathBuf, taken: &mut BTreeSet<PathBuf>) -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("{}-{number}", name.display())));
    let free = std::iter::once(name.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name))
        .unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// Returns the changed lines of all files as one unified diff, with three lines around every change and `a/` and `b/`
/// before the paths, so that `patch -d / -p1` and `git apply` accept it. Empty if nothing changed. `diff(after,
/// before)` is the reverse.
///
/// Both must be states of the same files.
pub fn diff(before: &Source, after: &Source) -> String {
    before
        .files
        .iter()
        .zip(&after.files)
        .filter(|(before, after)| before.text != after.text)
        .map(|(before, after)| file_diff(&before.path, &before.text, &after.text))
        .collect()
}

/// Returns the line of a text, counted from 1, that became a line of a changed text; for an added line, the last one
/// before it. It maps a proxy's messages about a copy to the user's file.
pub fn former_line(before: &str, after: &str, line: usize) -> usize {
    // Nobody waits longer for the place of an error.
    const PATIENCE: Duration = Duration::from_secs(1);
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let ops = changes(&before, &after, Some(Instant::now() + PATIENCE));
    let at = line.saturating_sub(1);
    let Some(op) = ops.iter().find(|op| op.new_range().contains(&at)) else {
        return line;
    };
    let (old, offset) = (op.old_range(), at - op.new_range().start);
    let line = old.start + offset.min(old.len().saturating_sub(1)) + usize::from(!old.is_empty());
    line.max(1)
}

fn file_diff(path: &Path, before: &str, after: &str) -> String {
    // `patch` takes a line to end at a line feed and nowhere else; a lone carriage return is text.
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let ops = changes(&before, &after, None);
    let mut text = String::new();
    for hunk in group_diff_ops(ops, AROUND) {
        if hunk.is_empty() {
            continue;
        }
        if text.is_empty() {
            let shown = path.display().to_string();
            let name = shown.trim_start_matches('/');
            let [a, b] = ["a", "b"].map(|side| header_name(side, name));
            text = format!("--- {a}\n+++ {b}\n");
        }
        text.push_str(&format!("{}\n", UnifiedHunkHeader::new(&hunk)));
        for change in hunk.iter().flat_map(|op| op.iter_changes(&*before, &*after)) {
            let line = change.value();
            text.push_str(&format!("{}{line}", change.tag()));
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

/// Number of lines around a change in a diff.
const AROUND: usize = 3;

/// Returns the equal and the changed lines of two texts, the best result found by `deadline`. A single algorithm is
/// used: `similar::TextDiff` includes all of them, with a copy for each way of calling them.
pub(crate) fn changes(before: &[&str], after: &[&str], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut capture = Compact::new(Replace::new(Capture::new()), before, after);
    let ranges = (0..before.len(), 0..after.len());
    let Ok(()) = myers::diff_deadline(&mut capture, before, ranges.0, after, ranges.1, deadline);
    capture.into_inner().into_inner().into_ops()
}

/// Returns the name of a file as `patch` and `git apply` read it. A name with a line end, which could begin another
/// header, is quoted as in C.
fn header_name(side: &str, path: &str) -> String {
    if path.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
        let quoted = path.bytes().map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\{byte:03o}"),
        });
        return format!("\"{side}/{}\"", quoted.collect::<String>());
    }
    // A tab ends a name that has blanks, for `patch` would end it at the first of them.
    let end = if path.contains(' ') { "\t" } else { "" };
    format!("{side}/{path}{end}")
}
