//! Sums of users' files, by which a run that goes on knows them again: blocks that were measured with other
//! files do not mix.

use std::fs;
use std::path::Path;

use weir_load::files::{LARGEST_DATA, read_at_most};
use weir_model::record::RunHeader;
use weir_model::study::Study;

use crate::LabError;
use crate::flows::Flows;

/// The file in the run folder with the sums of what the loads name.
pub(crate) const OF_LOADS: &str = "loads.sha256";

/// A line for each file that the study's loads name.
///
/// # Errors
/// One cannot be read, or what it is for cannot be made of it.
pub(crate) fn of_loads(study: &Study) -> Result<String, LabError> {
    let mut lines = Vec::new();
    for load in &study.loads {
        let flows = Flows::read(load, None)?;
        let files = flows.files.iter();
        let mut files: Vec<_> = files
            .map(|(name, text)| (&**name, text.0.clone()))
            .collect();
        for name in flows.trace_files() {
            let text =
                read_at_most(Path::new(name), LARGEST_DATA).map_err(|error| LabError::Request {
                    load: load.name.clone(),
                    what: format!("cannot read {name}: {error}"),
                })?;
            files.push((name, text));
        }
        let files = files.iter().map(|(name, text)| (Path::new(name), &**text));
        lines.extend(weir_agent::sums(files).lines().map(str::to_owned));
    }
    lines.sort_unstable();
    lines.dedup();
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// What the loads send comes from the files that the run in `folder` was begun with.
///
/// # Errors
/// A file has changed or is gone.
pub(crate) fn must_have_same_loads(header: &RunHeader, folder: &Path) -> Result<(), LabError> {
    let before = folder.join(OF_LOADS);
    let same = of_loads(&header.study).and_then(|now| must_be_as_before(&before, &now));
    let is_here = std::env::current_dir().is_ok_and(|here| here == header.folder);
    match same {
        Err(error) if !is_here && header.folder.is_absolute() => Err(LabError::Resume(format!(
            "{error}; relative paths start from the folder {}, where the run was started: resume it there",
            header.folder.display()
        ))),
        same => same,
    }
}

/// The files are those that the run was begun with. A run of before there were sums has none.
///
/// # Errors
/// One has changed.
pub(crate) fn must_be_as_before(file: &Path, sums: &str) -> Result<(), LabError> {
    let before = fs::read_to_string(file).unwrap_or_else(|_| sums.to_owned());
    match changed(&before, sums) {
        Some(file) => Err(LabError::Resume(format!(
            "{file} has changed since the run started"
        ))),
        None => Ok(()),
    }
}

/// The first file that has another sum than before, or is not among them any more.
fn changed<'a>(before: &'a str, now: &'a str) -> Option<&'a str> {
    let not_in = |sums: &'a str| move |line: &&str| !sums.lines().any(|known| known == *line);
    let line = now.lines().find(not_in(before));
    let line = line.or_else(|| before.lines().find(not_in(now)))?;
    Some(line.split_once("  ").map_or(line, |(_, file)| file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_changed_is_named() {
        let before = "1  /etc/a b\n2  /etc/c\n";
        assert_eq!(changed(before, before), None);
        assert_eq!(changed(before, "1  /etc/a b\n3  /etc/c\n"), Some("/etc/c"));
        let more = "1  /etc/a b\n2  /etc/c\n3  /etc/d\n";
        assert_eq!(changed(before, more), Some("/etc/d"));
        assert_eq!(changed(more, before), Some("/etc/d"));
    }
}
