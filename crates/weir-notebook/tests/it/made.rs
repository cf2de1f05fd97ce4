//! Made-up run folders.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_model::fixture;
use weir_model::record::{EndRecord, Outcome, Record, RunHeader, SessionRecord};
use weir_model::study::{ArmRole, StudyArrivals};
use weir_record::RunWriter;

pub(crate) const VERSION: &str = "0.0.0-test";

/// A folder of runs that only this user can write.
pub(crate) struct Notebook {
    folder: TempDir,
}

impl Notebook {
    pub(crate) fn new() -> Notebook {
        Notebook { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a run that began on a day of January and ended like this.
    pub(crate) fn add(&self, name: &str, day: u32, outcome: Option<Outcome>) -> PathBuf {
        let mut header = make_header(name);
        header.started_at = format!("2026-01-{day:02}T08:00:00Z");
        self.add_with(&header, outcome)
    }

    pub(crate) fn add_with(&self, header: &RunHeader, outcome: Option<Outcome>) -> PathBuf {
        let dir = self.path(&header.run);
        let mut writer = RunWriter::create(&dir, header, "weir: 1\n").unwrap();
        let at = header.started_at.clone();
        writer.append(&Record::Session(SessionRecord { session: 0, at: at.clone() })).unwrap();
        if let Some(outcome) = outcome {
            writer.append(&Record::End(EndRecord::new(at, outcome))).unwrap();
        }
        dir
    }
}

pub(crate) fn make_header(name: &str) -> RunHeader {
    let arms = vec![
        fixture::arm("stock", ArmRole::Baseline, &[]),
        fixture::arm("tuned", ArmRole::Change, &[("gzip", "off")]),
    ];
    let mut study = fixture::study(arms);
    study.loads = vec![fixture::load("closed", StudyArrivals::Closed)];
    RunHeader { run: name.to_owned(), ..fixture::header(study) }
}

pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
