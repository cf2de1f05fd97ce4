//! Runs that a folder keeps.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use weir_files::only_ours_named;
use weir_history::{DatedRun, LeftOutRun, RunFigures, WhyLeftOut};
use weir_model::record::{Outcome, RunHeader};
use weir_model::study::Study;
use weir_record::{HEADER_FILE, Run, read_header};

use crate::failure::Failure;

/// Runs of one study, in order of time, and runs that are left out.
pub(super) struct KeptRuns {
    pub(super) runs: Vec<DatedRun>,
    pub(super) left_out: Vec<LeftOutRun>,
}

/// A run of which only the header has been read.
pub(super) struct KeptHeader {
    pub(super) path: PathBuf,
    pub(super) header: RunHeader,
}

/// Returns the headers of all runs in a folder by the time at which they began, and the runs that are left out.
pub(super) fn read_headers(folder: &Path) -> Result<(Vec<KeptHeader>, Vec<LeftOutRun>), Failure> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| Failure::input(format!("cannot read {}: {error}", folder.display())))?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join(HEADER_FILE).symlink_metadata().is_ok())
        .collect();
    paths.sort();
    let mut left_out = Vec::new();
    let mut headers: BTreeMap<(String, String), KeptHeader> = BTreeMap::new();
    for path in paths {
        let read = match only_ours_named(&path) {
            Err(_) => Err(WhyLeftOut::Foreign),
            Ok(()) => read_header(&path)
                .map_err(|error| WhyLeftOut::Damaged { problem: error.to_string() }),
        };
        match read {
            Ok(header) => {
                let key = (header.started_at.clone(), header.run.clone());
                match headers.entry(key) {
                    Entry::Occupied(_) => left_out.push(leave_out(&path, WhyLeftOut::Copy)),
                    Entry::Vacant(entry) => {
                        entry.insert(KeptHeader { path, header });
                    }
                }
            }
            Err(why) => left_out.push(leave_out(&path, why)),
        }
    }
    Ok((headers.into_values().collect(), left_out))
}

/// Reads the runs with these headers whose study is that of `reference`.
pub(super) fn read_alike(
    headers: Vec<KeptHeader>,
    mut left_out: Vec<LeftOutRun>,
    reference: &RunHeader,
) -> KeptRuns {
    let mut runs = Vec::new();
    for kept in headers {
        let why = if is_same_study(&kept.header.study, &reference.study) {
            read_dated(&kept.path)
        } else {
            Err(WhyLeftOut::OtherStudy { study: kept.header.study.name.clone() })
        };
        match why {
            Ok(run) => runs.push(run),
            Err(why) => left_out.push(leave_out(&kept.path, why)),
        }
    }
    left_out.sort_by(|one, other| one.name.cmp(&other.name));
    KeptRuns { runs, left_out }
}

/// Reads a run with valid figures, which is called by the name of its folder.
pub(super) fn read_dated(path: &Path) -> Result<DatedRun, WhyLeftOut> {
    let run =
        Run::read(path).map_err(|error| WhyLeftOut::Damaged { problem: error.to_string() })?;
    if run.outcome() != Some(Outcome::Complete) {
        return Err(WhyLeftOut::Incomplete);
    }
    let dated = date(&run, &name_of(path))?;
    if dated.figures.figures.iter().all(|figure| figure.value.is_none()) {
        return Err(WhyLeftOut::Invalid);
    }
    Ok(dated)
}

/// Returns the figures of a run under this name.
pub(super) fn date(run: &Run, name: &str) -> Result<DatedRun, WhyLeftOut> {
    let began: jiff::Timestamp = run.header.started_at.parse().map_err(|error: jiff::Error| {
        WhyLeftOut::Damaged { problem: format!("when it began: {error}") }
    })?;
    let figures = RunFigures::of(run, &weir_analysis::analyze(run));
    Ok(DatedRun {
        header: run.header.clone(),
        figures: RunFigures { name: name.to_owned(), ..figures },
        began_s: began.as_duration().as_secs_f64(),
    })
}

fn leave_out(path: &Path, why: WhyLeftOut) -> LeftOutRun {
    LeftOutRun { name: name_of(path), why }
}

/// Returns the last part of a path.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns true if two studies have an arm with the same settings and a load with the same requests, and
/// the same objective if they search for a capacity.
pub(super) fn is_same_study(one: &Study, other: &Study) -> bool {
    let has_load = one.loads.iter().any(|load| other.loads.contains(load));
    let has_arm = one.arms.iter().any(|arm| {
        let same = other.arms.iter().find(|other| other.name == arm.name);
        same.is_some_and(|same| same.settings == arm.settings)
    });
    has_load && has_arm && one.capacity == other.capacity
}
