//! A run from its begin to its end, and on again after an interruption.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use weir_model::record::{FORMAT, Outcome, RunHeader};
use weir_model::study::{Arm, Study};
use weir_parameters::Catalog;
use weir_record::RunWriter;
use weir_sut::Launcher;

use crate::done::Done;
use crate::places::{PlaceSpec, Places, Role};
use crate::session::Session;
use crate::{Event, LabError, cpus, left_out, network, preflight, settings};

/// What a run needs to know beside its study.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run's folder: not there yet for a new run.
    pub folder: PathBuf,
    /// Starts processes; see `weir_sut::launch`.
    pub launcher: Launcher,
    /// Exact version of weir.
    pub weir_version: String,
    /// What is worth saying about the study itself (see `weir_study::remarks`).
    pub remarks: Vec<String>,
    /// Every parameter that the study may name.
    pub catalog: Catalog,
    /// Which host each role is on.
    pub places: PlaceSpec,
    /// Whether settings of a whole host may be changed while the run lasts.
    pub allow_host_settings: bool,
    /// Set it to end the run in order: what was measured is kept.
    pub stop: Arc<AtomicBool>,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The run's folder.
    pub folder: PathBuf,
    /// Complete or interrupted.
    pub outcome: Outcome,
}

/// Runs a study. The calling thread is kept off the proxy's CPUs from here on, and must be one that
/// lives as long as the process: proxies die with the thread that started them.
///
/// # Errors
/// Something could not be started, or broke on the way; what was measured until then is kept.
pub fn run(
    study: &Study,
    study_text: &str,
    options: &Options,
    events: &mut dyn FnMut(Event),
) -> Result<Summary, LabError> {
    let places = Places::open(options)?;
    settings::check(study, options)?;
    let (study, mut remarks) = left_out::by_host(study, &places, &options.catalog)?;
    let (network, study, of_network) = network::decide(&study, &places, &options.catalog)?;
    remarks.extend(of_network);
    let study = &study;
    let roles = places.cpu_roles(study)?;
    preflight::connections(study, &roles, &places)?;
    preflight::disk_space(study, &options.folder, places.host(Role::Proxy))?;
    let mut environment = places.host(Role::Proxy).is.environment.clone();
    for arm in &study.arms {
        let program = places.program_of(study.proxy_of(arm))?;
        if !program.version.is_empty() {
            environment.versions.insert(program.name, program.version);
        }
    }
    let has_origin = Places::has_origin(study);
    let share = |one, other| places.share(one, other);
    remarks.extend(cpus::remarks(&roles, has_origin, &share));
    let catalog = &options.catalog;
    let workers = |arm: &Arm| catalog.workers(study.proxy_of(arm).kind, &arm.settings);
    let of_arms = study.arms.iter().map(|arm| (&*arm.name, workers(arm)));
    remarks.extend(cpus::crowded_arms(&roles.proxy, of_arms));
    remarks.extend(of_arms_that_run(&options.remarks, study));
    let header = RunHeader {
        format: FORMAT.to_owned(),
        run: folder_name(&options.folder),
        weir_version: options.weir_version.clone(),
        started_at: Timestamp::now().to_string(),
        study: study.clone(),
        remarks,
        rows: options.catalog.user_rows().to_vec(),
        cpus: roles,
        network,
        places: places.used(),
        environment,
    };
    let writer = RunWriter::create(&options.folder, &header, study_text)?;
    let mut session = Session {
        header: &header,
        options,
        number: 0,
        writer,
        done: Done::default(),
    };
    let result = session.run(places, events);
    let is_refused = result.as_ref().is_err_and(LabError::is_bad_input);
    if is_refused && session.done.totals.is_empty() {
        // The same again, once it is right, is to find the folder as this one did. Why it was refused is
        // what matters, not what could not be removed.
        let _ = session.writer.discard();
    }
    result
}

/// Goes on with a run that was interrupted, failed or was killed.
///
/// # Errors
/// There is no such run, it is complete, this is another machine, or as for [`run`].
pub fn resume(options: &Options, events: &mut dyn FnMut(Event)) -> Result<Summary, LabError> {
    let (writer, run) = RunWriter::resume(&options.folder)?;
    if run.outcome() == Some(Outcome::Complete) {
        return Err(LabError::Resume("it is complete".to_owned()));
    }
    let header = run.header.clone();
    let mut options = options.clone();
    for (file, text) in &header.rows {
        let catalog = options.catalog.with_rows(file, text);
        options.catalog = catalog.map_err(|error| LabError::Resume(error.to_string()))?;
    }
    let options = &options;
    settings::check(&header.study, options)?;
    let options = &Options {
        places: same_places(&header, &options.places)?,
        ..options.clone()
    };
    let places = Places::open(options)?;
    let here = &places.host(Role::Proxy).is.environment;
    let then = &header.environment;
    if (&here.kernel, &here.cpu_model) != (&then.kernel, &then.cpu_model) {
        return Err(LabError::Resume(format!(
            "it was begun on another machine ({}, {}), and figures of two machines do not mix",
            then.cpu_model, then.kernel
        )));
    }
    places.cpu_roles(&Study {
        cpus: Some(header.cpus.clone()),
        ..header.study.clone()
    })?;
    network::same_as(header.network, &places)?;
    preflight::connections(&header.study, &header.cpus, &places)?;
    preflight::disk_space(&header.study, &options.folder, places.host(Role::Proxy))?;
    let done = Done::of(&run);
    let number = done.sessions;
    Session {
        header: &header,
        options,
        number,
        writer,
        done,
    }
    .run(places, events)
}

/// Remarks about the study, without those about arms that are left out.
fn of_arms_that_run(remarks: &[String], study: &Study) -> Vec<String> {
    let is_left_out = |remark: &&String| {
        let named = remark
            .strip_prefix("arm `")
            .and_then(|rest| rest.split_once('`'));
        named.is_some_and(|(name, _)| !study.arms.iter().any(|arm| arm.name == name))
    };
    let (_, left): (Vec<_>, Vec<_>) = remarks.iter().partition(is_left_out);
    left.into_iter().cloned().collect()
}

/// A run goes on where it was begun; its places need not be named again.
fn same_places(header: &RunHeader, asked: &PlaceSpec) -> Result<PlaceSpec, LabError> {
    let then = asked.again(&header.places);
    if asked.is_here() || *asked == then {
        return Ok(then);
    }
    Err(LabError::Resume(format!(
        "it was begun with {then}, and figures of other hosts do not mix with its own"
    )))
}

fn folder_name(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
