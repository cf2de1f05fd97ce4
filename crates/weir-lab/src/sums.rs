//! Checksums of users' files and of the run's header and study in the run folder. A resumed run compares them, so that
//! blocks measured with different files or settings do not mix.

use std::io::{self, ErrorKind};
use std::path::Path;

use serde_json::Value;
use weir_load::files::{LARGEST_DATA, read_at_most};
use weir_model::record::RunHeader;
use weir_model::study::Study;
use weir_record::{HEADER_FILE, RecordError, RunWriter, STUDY_FILE};

use crate::LabError;
use crate::flows::Flows;

/// Name of the file in the run folder with checksums of the files that the loads name.
const OF_LOADS: &str = "loads.sha256";

/// Name of the file in the run folder with checksums of the header's fields, and of the study as the user typed it.
const OF_HEADER: &str = "run.sha256";

/// Writes the checksums of the run's header and study, and those of the files that its loads name.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn keep(writer: &mut RunWriter, of_loads: &str) -> Result<(), LabError> {
    let of_header = sum_header(writer.dir())?;
    writer.write_file(OF_HEADER, of_header.as_bytes())?;
    if !of_loads.is_empty() {
        writer.write_file(OF_LOADS, of_loads.as_bytes())?;
    }
    Ok(())
}

/// Returns a line with a checksum for each field of the header in a run folder, for each field of its study, and for
/// the study as the user typed it.
///
/// # Errors
/// A file cannot be read.
fn sum_header(folder: &Path) -> Result<String, LabError> {
    let header: Value = serde_json::from_slice(&read_kept(folder, HEADER_FILE)?)
        .map_err(|error| LabError::Resume(format!("{HEADER_FILE}: {error}")))?;
    let mut parts = vec![(STUDY_FILE.to_owned(), read_kept(folder, STUDY_FILE)?)];
    for (name, value) in header.as_object().into_iter().flatten() {
        let within = value.as_object().filter(|_| name == "study");
        let Some(within) = within else {
            parts.push((format!("{HEADER_FILE}: {name}"), value.to_string().into_bytes()));
            continue;
        };
        parts.extend(within.iter().map(|(field, value)| {
            let name = format!("{HEADER_FILE}: {name}.{field}");
            (name, value.to_string().into_bytes())
        }));
    }
    Ok(weir_agent::sums(parts.iter().map(|(name, text)| (Path::new(name), &**text))))
}

fn read_kept(folder: &Path, name: &str) -> Result<Vec<u8>, LabError> {
    let path = folder.join(name);
    weir_files::read_text(&path)
        .map_err(|error| LabError::from(RecordError::Io { action: "read", path, error }))
}

/// Checks that header and study in a run folder are as they were when the run began.
///
/// # Errors
/// Names of the differing fields; or a file cannot be read.
pub(crate) fn must_have_same_header(folder: &Path) -> Result<(), LabError> {
    must_be_known_and_as_before(&folder.join(OF_HEADER), &sum_header(folder)?)
}

/// Returns a line with a checksum for each file that the study's loads name.
///
/// # Errors
/// A file cannot be read, or its content is not usable.
pub(crate) fn of_loads(study: &Study) -> Result<String, LabError> {
    let mut lines = Vec::new();
    for load in &study.loads {
        let flows = Flows::read(load, None)?;
        let files = flows.files.iter();
        let mut files: Vec<_> = files.map(|(name, text)| (&**name, text.0.clone())).collect();
        for name in flows.trace_files() {
            let text =
                read_at_most(Path::new(name), LARGEST_DATA).map_err(|error| LabError::Request {
                    load: load.name.clone(),
                    what: format!("cannot read {name}: {error}"),
                })?;
            files.push((name, text));
        }
        let sums = weir_agent::sums(files.iter().map(|(name, text)| (Path::new(name), &**text)));
        lines.extend(sums.lines().map(str::to_owned));
    }
    lines.sort_unstable();
    lines.dedup();
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// Checks that the files that the loads use are those with which the run in `folder` began.
///
/// # Errors
/// A file has changed or is gone.
pub(crate) fn must_have_same_loads(header: &RunHeader, folder: &Path) -> Result<(), LabError> {
    let before = folder.join(OF_LOADS);
    let same = of_loads(&header.study).and_then(|now| must_be_known_and_as_before(&before, &now));
    let is_here = std::env::current_dir().is_ok_and(|here| here == header.folder);
    match same {
        Err(error) if !is_here && header.folder.is_absolute() => Err(LabError::Resume(format!(
            "{error}; relative paths start from the folder {}, where the run was started: resume it there",
            header.folder.display()
        ))),
        same => same,
    }
}

/// Checks that the files have the checksums recorded in `file`; without `file`, nothing has begun with them.
///
/// # Errors
/// Some files have changed, or `file` cannot be read.
pub(crate) fn must_be_as_before(file: &Path, sums: &str) -> Result<(), LabError> {
    let before = match weir_files::read_text(file) {
        Ok(before) => String::from_utf8_lossy(&before).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unknown(file, &error)),
    };
    match &changed(&before, sums)[..] {
        [] => Ok(()),
        [one] => Err(LabError::Resume(format!("{one} has changed since the run started"))),
        all => Err(LabError::Resume(format!(
            "these have changed since the run started: {}",
            all.join(", ")
        ))),
    }
}

/// Checks as [`must_be_as_before`] does, but `file` must exist unless `sums` is empty: every run begins by writing it.
fn must_be_known_and_as_before(file: &Path, sums: &str) -> Result<(), LabError> {
    if !sums.is_empty()
        && let Err(error) = file.symlink_metadata()
    {
        return Err(unknown(file, &error));
    }
    must_be_as_before(file, sums)
}

fn unknown(file: &Path, error: &io::Error) -> LabError {
    LabError::Resume(format!(
        "{}: {error}; without it nobody can tell whether files have changed since the run started",
        file.display()
    ))
}

/// Returns the names with a changed checksum, and those that only one of the two lists has.
fn changed<'a>(before: &'a str, now: &'a str) -> Vec<&'a str> {
    let of_now = now.lines().filter(|line| before.lines().all(|other| other != *line));
    let of_before = before.lines().filter(|line| now.lines().all(|other| other != *line));
    let mut names: Vec<_> = of_now
        .chain(of_before)
        .map(|line| line.split_once("  ").map_or(line, |(_, file)| file))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_changed_is_named() {
        let before = "1  /etc/a b\n2  /etc/c\n";
        assert_eq!(changed(before, before), [""; 0]);
        assert_eq!(changed(before, "1  /etc/a b\n3  /etc/c\n"), ["/etc/c"]);
        let more = "1  /etc/a b\n2  /etc/c\n3  /etc/d\n";
        assert_eq!(changed(before, more), ["/etc/d"]);
        assert_eq!(changed(more, before), ["/etc/d"]);
        assert_eq!(changed(before, "4  /etc/c\n"), ["/etc/a b", "/etc/c"]);
    }
}
