//! Fixture for whole studies on a simulated host, from the study to the records in its folder.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use weir_analysis::findings::Findings;
use weir_hosts::{Options, PlaceSpec};
use weir_model::fixture;
use weir_model::record::Outcome;
use weir_model::study::{Arm, ArmRole, LoadSpec, Study, StudyArrivals};
use weir_parameters::Catalog;
use weir_record::Run;
use weir_simulation::Model;
use weir_sut::Launcher;

use crate::{Event, LabError, Summary};

/// A study, a model of the host that it runs on, and a folder.
pub(crate) struct Bench {
    pub(crate) study: Study,
    pub(crate) model: Model,
    pub(crate) check_alone: bool,
    folder: TempDir,
    stop: Arc<AtomicBool>,
}

/// Makes a folder in memory if possible, where flushing to disk costs nothing.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn arm(name: &str) -> Arm {
    match name {
        "stock" => fixture::arm(name, ArmRole::Baseline, &[]),
        "same" => fixture::arm(name, ArmRole::SameAsBaseline, &[]),
        _ => fixture::arm(name, ArmRole::Change, &[]),
    }
}

/// A load of 8 connections.
pub(crate) fn load(name: &str, arrivals: StudyArrivals, seconds: u64) -> LoadSpec {
    let mut load = fixture::load(name, arrivals);
    load.connections = 8;
    load.duration = Duration::from_secs(seconds);
    load
}

impl Bench {
    /// Makes a bench with slices of 100 ms, and a closed loop of so many seconds.
    pub(crate) fn new(arms: &[&str], seconds: u64, model: Model) -> Bench {
        let mut study = fixture::study(arms.iter().map(|name| arm(name)).collect());
        study.loads = vec![load("closed", StudyArrivals::Closed, seconds)];
        study.blocks.slice = Some(Duration::from_millis(100));
        Bench { study, model, check_alone: false, folder: folder(), stop: Arc::default() }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            folder: self.folder.path().join("run"),
            launcher: Launcher::new("weir".into()),
            weir_version: "0".to_owned(),
            remarks: Vec::new(),
            catalog: Catalog::builtin(),
            places: PlaceSpec::simulated(self.model.clone()),
            allow_host_settings: false,
            node_image: None,
            check_alone: self.check_alone,
            generator_carries: None,
            samples: Some(Duration::from_secs(1)),
            where_time_goes: false,
            time: None,
            stop: Arc::clone(&self.stop),
        }
    }

    /// Runs the study from its start. `on_event` may stop it.
    pub(crate) fn run(
        &self,
        on_event: &mut dyn FnMut(&Event, &AtomicBool),
    ) -> Result<Summary, LabError> {
        crate::run(&self.study, "", &self.options(), &mut |event| on_event(&event, &self.stop))
    }

    pub(crate) fn resume(&self) -> Result<Summary, LabError> {
        self.stop.store(false, Ordering::Relaxed);
        crate::resume(&self.options(), &mut |_| {})
    }

    pub(crate) fn read(&self) -> Run {
        Run::read(&self.folder.path().join("run")).unwrap()
    }

    pub(crate) fn findings(&self) -> Findings {
        let summary = self.run(&mut |_, _| {}).unwrap();
        assert_eq!(summary.outcome, Outcome::Complete);
        weir_analysis::analyze(&self.read())
    }
}

/// Renders the report of a run: on a terminal, in Markdown, and as a page.
pub(crate) fn reports(run: &Run, findings: &Findings) -> [String; 3] {
    let input = weir_report::ReportInput {
        header: &run.header,
        study_text: &run.study_text,
        records: &run.records,
        findings,
        answer: weir_sentences::answer(&run.header.study, findings),
    };
    [
        weir_report::terminal(&input, false, 100),
        weir_report::markdown(&input),
        weir_report::html(&input),
    ]
}
