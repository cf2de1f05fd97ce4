//! Run folders of the user, and studies in files.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_files::only_ours_named;
use weir_record::{HEADER_FILE, SAMPLES_FOLDER};

use crate::StudyText;

/// Folder of runs, below that of the studies.
pub(crate) const RUNS: &str = "runs";
/// Length of a table's end that is read, bytes.
const END: u64 = 512 << 10;
/// Longest study, bytes.
pub(crate) const LONGEST_STUDY: usize = 1 << 20;

/// Returns the path of a run by the name of its folder, which has no other folders in it.
pub(crate) fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    let path = folder.join(RUNS).join(name);
    (is_plain && path.join(HEADER_FILE).is_file() && only_ours_named(&path).is_ok()).then_some(path)
}

/// The newest rows of a table of samples.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Reads the end of a table of samples.
pub(crate) fn read_samples(run: &Path, table: &str) -> Rows {
    let path = run.join(SAMPLES_FOLDER).join(format!("{table}.csv"));
    let is_name = table.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let columns = read_begin(&path).filter(|_| is_name);
    let Some((columns, end)) = columns.zip(read_end(&path, END)) else {
        return Rows::default();
    };
    let count = columns.len();
    let rows = end
        .lines()
        .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>())
        // The header, the rest of a line, and a field with a comma.
        .filter(|row| row.len() == count && *row != columns)
        .collect();
    Rows { columns, rows }
}

/// Returns the columns of a table.
fn read_begin(path: &Path) -> Option<Vec<String>> {
    let mut begin = Vec::new();
    weir_files::open_regular(path).ok()?.take(4096).read_to_end(&mut begin).ok()?;
    let text = String::from_utf8_lossy(&begin);
    let (line, _) = text.split_once('\n')?;
    Some(line.trim_end().split(',').map(str::to_owned).collect())
}

/// Returns the whole lines at the end of a file, at most `length` bytes.
fn read_end(path: &Path, length: u64) -> Option<String> {
    let mut file = weir_files::open_regular(path).ok()?;
    let begin = file.metadata().ok()?.len().saturating_sub(length);
    file.seek(SeekFrom::Start(begin)).ok()?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).ok()?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n')?;
    let first = match begin {
        0 => 0,
        _ => bytes.iter().position(|byte| *byte == b'\n')? + 1,
    };
    Some(String::from_utf8_lossy(bytes.get(first..end)?).into_owned())
}

/// Returns the studies in the files of a folder, by name. Files that others could have written are left out.
pub(crate) fn studies(folder: &Path) -> Vec<StudyText> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut studies: Vec<StudyText> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .filter_map(|path| read_study(&path))
        .collect();
    studies.sort_by(|one, other| one.name.cmp(&other.name));
    studies
}

fn read_study(path: &Path) -> Option<StudyText> {
    weir_files::only_ours_file_to_read(path).ok()?;
    let mut file = weir_files::open_regular(path).ok()?;
    if file.metadata().ok()?.len() > LONGEST_STUDY as u64 {
        return None;
    }
    let mut text = String::new();
    file.by_ref().take(LONGEST_STUDY as u64).read_to_string(&mut text).ok()?;
    let is_study = text.lines().any(|line| line.starts_with("weir:"));
    is_study.then(|| StudyText { name: stem_of(path), text })
}

fn stem_of(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns the path of the file with a study of this name; `None` if the name is not one that a file may have.
pub(crate) fn study_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let is_name =
        (1..=64).contains(&name.len()) && name.bytes().all(is_plain_byte) && !name.starts_with('-');
    is_name.then(|| folder.join(format!("{name}.yaml")))
}

fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_".contains(&byte)
}
