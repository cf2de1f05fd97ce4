//! A run from its start to its end, and its continuation after an interruption.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use weir_agent::AgentError;
use weir_analysis::alone;
use weir_hosts::surroundings::Around;
use weir_hosts::{
    HostError, Hosts, Options, PlaceSpec, Pods, Role, cpus, left_out, network, preflight,
};
use weir_kube::PodsOf;
use weir_model::environment::Environment;
use weir_model::record::{FORMAT, Outcome, PlacesUsed, Remark, RunHeader};
use weir_model::study::{CpuRoles, LoadSpec, Study};
use weir_parameters::Catalog;
use weir_proposers::{Capacity, CheckAlone, History, MakeProposer, Observe, Plan, Proposer, Turns};
use weir_record::{Run, RunWriter, has_original_header};

use crate::controlled::{Controlled, workloads_of};
use crate::session::{Session, Summary};
use crate::{Event, LabError, settings, sums};

/// Runs a study. The calling thread is kept off the proxy's CPUs from here on, and must be one that lives as long as
/// the process: proxies die with the thread that started them.
///
/// # Errors
/// Something could not be started, or broke during the run; measurements until then are kept.
pub fn run(
    study: &Study,
    study_text: &str,
    options: &Options,
    events: &mut dyn FnMut(Event),
) -> Result<Summary, LabError> {
    ask((study, study_text), options, &mut fixed_plan(options), events)
}

/// Returns the places for the header. The sampled pods are those of a controller's proxies, or were named.
fn used(study: &Study, hosts: &Hosts, options: &Options) -> PlacesUsed {
    let workloads: Vec<String> = workloads_of(study)
        .into_iter()
        .map(|object| PodsOf::Workload(object, None).to_string())
        .collect();
    let named = options.places.pods_of_proxy();
    let pods = if workloads.is_empty() {
        named.map(|pods| pods.of.to_string())
    } else {
        Some(workloads.join(" and "))
    };
    PlacesUsed { proxy_pods: pods.filter(|_| options.samples.is_some()), ..hosts.used() }
}

/// Returns the function that makes the proposer of `weir run`.
fn fixed_plan(options: &Options) -> impl FnMut(&RunHeader, u32) -> Box<dyn Proposer> {
    move |header, session| {
        if !header.check_alone && !header.study.capacity.is_empty() {
            let rate_of_thread = options.generator_carries;
            let threads = header.generator_cpus() as f64;
            let search = Capacity::new(header, rate_of_thread.map(|rate| rate * threads));
            return Box::new(if header.study.is_in_turn() { search.in_turn() } else { search });
        }
        let folder = options.folder.clone();
        let take_look = Box::new(move |load: &LoadSpec, look| {
            let run = Run::read(&folder)?;
            Ok(weir_analysis::decide(&run, load, look))
        });
        let plan = Plan::new(&header.study, session, take_look);
        let folder = options.folder.clone();
        let proposer: Box<dyn Proposer> = if header.study.is_in_turn() {
            Box::new(Turns::new(&header.study, plan))
        } else if header.check_alone {
            let choose = Box::new(move || {
                let run = Run::read(&folder).map_err(|error| error.to_string())?;
                let loads = weir_analysis::analyze(&run).loads;
                Ok(alone::choose(&run.header.study, &loads))
            });
            Box::new(CheckAlone::new(header, session, plan, choose))
        } else {
            Box::new(plan)
        };
        if options.is_sampled() {
            Box::new(Observe::new(header, session, proposer))
        } else {
            proposer
        }
    }
}

/// Runs a study with another proposer; `study` with its text gives the arms and loads. If a proxy refuses its copy of
/// the user's configuration, its arm is left out and the run begins again.
///
/// # Errors
/// Same as [`run`].
pub fn ask(
    (study, study_text): (&Study, &str),
    options: &Options,
    proposer: MakeProposer<'_>,
    events: &mut dyn FnMut(Event),
) -> Result<Summary, LabError> {
    RunWriter::can_create(&options.folder)?;
    let (mut study, mut left_out) = (study.clone(), Vec::new());
    loop {
        let error = match ask_once((&study, study_text), options, &left_out, proposer, events) {
            Err(error) if !options.folder.exists() => error,
            done => return done,
        };
        let Some((left, remark)) = without_refused(&study, &error) else {
            return Err(error);
        };
        study = left;
        left_out.push(remark);
    }
}

/// Returns the study without the arm whose proxy has refused its configuration, and a remark about it; `None` for other
/// errors, or if the study needs the arm.
fn without_refused(study: &Study, error: &LabError) -> Option<(Study, Remark)> {
    let LabError::Host(HostError::Agent(AgentError::Failed(failure))) = error else {
        return None;
    };
    let name = failure.arm().filter(|_| error.is_refused())?.to_owned();
    let arm = study.arms.iter().find(|arm| arm.name == name)?;
    let lines = failure.evidence.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).take(REFUSAL_LINES).collect();
    let refused = BTreeMap::from([(arm.name.clone(), lines.join(" "))]);
    let (left, remarks) = left_out::without(study, refused).ok()?;
    Some((left, remarks.into_iter().next()?))
}

/// Number of lines quoted from a proxy's refusal if its arm is left out: the refused line, and the proxy's first
/// message.
const REFUSAL_LINES: usize = 3;

/// Makes one attempt to run a study; `left_out` has remarks about arms left out in earlier attempts.
fn ask_once(
    (study, study_text): (&Study, &str),
    options: &Options,
    left_out: &[Remark],
    proposer: MakeProposer<'_>,
    events: &mut dyn FnMut(Event),
) -> Result<Summary, LabError> {
    let (controlled, hosts, begun) = open(study, options, events)?;
    let (study, mut remarks) = left_out::by_host(study, &hosts, &options.catalog)?;
    remarks.splice(0..0, left_out.iter().cloned());
    let (network, mut study, network_remarks) = network::decide(&study, &hosts, &options.catalog)?;
    remarks.extend(network_remarks);
    let roles = hosts.cpu_roles(&study)?;
    hosts.place_arms(&mut study, &roles)?;
    let study = &study;
    preflight::connections(study, &roles, &hosts)?;
    preflight::disk_space(study, &options.folder, hosts.host(Role::Proxy))?;
    let environment = with_versions(study, &hosts)?;
    remarks.extend(of_roles(study, &roles, &hosts, &options.catalog));
    // What the study lacks is known before anything of the hosts, and is said first.
    remarks.splice(0..0, of_arms_that_run(&options.remarks, study));
    let of_loads = sums::of_loads(study)?;
    let around =
        Around { study, hosts: &hosts, roles: &roles, network, interrupted: &options.stop };
    let (surroundings, spoilt) = around.look();
    remarks.extend(spoilt);
    let header = RunHeader {
        format: FORMAT.to_owned(),
        run: folder_name(&options.folder),
        weir_version: options.weir_version.clone(),
        started_at: Timestamp::now().to_string(),
        folder: std::env::current_dir().unwrap_or_default(),
        study: study.clone(),
        remarks,
        check_alone: options.check_alone,
        time: options.time.clone(),
        rows: options.catalog.user_rows().to_vec(),
        cpus: roles,
        network,
        copies: network::protection(study, network),
        places: used(study, &hosts, options),
        environment,
        surroundings: Some(surroundings),
    };
    let mut writer = RunWriter::create(&options.folder, &header, study_text)?;
    sums::keep(&mut writer, &of_loads)?;
    let mut session = Session {
        header: &header,
        options,
        number: 0,
        writer,
        history: History::new(&study.arms),
        controlled,
        begun,
    };
    let result = session.run(hosts, proposer, events);
    if result.as_ref().is_err_and(LabError::is_refused) && session.history.is_empty() {
        // The same again, once it is right, is to find the folder as this one did.
        let _ = session.writer.discard();
    }
    result
}

/// Resumes a run that was interrupted, failed or was killed.
///
/// # Errors
/// There is no such run, it is complete, this is another machine, or as for [`run`].
pub fn resume(options: &Options, events: &mut dyn FnMut(Event)) -> Result<Summary, LabError> {
    ask_again(options, &mut fixed_plan(options), events)
}

/// Resumes a run with another proposer.
///
/// # Errors
/// Same as [`resume`].
pub fn ask_again(
    options: &Options,
    proposer: MakeProposer<'_>,
    events: &mut dyn FnMut(Event),
) -> Result<Summary, LabError> {
    let (writer, run) = RunWriter::resume(&options.folder)?;
    if run.outcome() == Some(Outcome::Complete) {
        return Err(LabError::Complete(options.folder.clone()));
    }
    sums::must_have_same_header(&options.folder)?;
    let header = run.header.clone();
    let mut with_rows = options.clone();
    for (file, text) in &header.rows {
        let catalog = with_rows.catalog.with_rows(file, text);
        with_rows.catalog = catalog.map_err(|error| LabError::Resume(error.to_string()))?;
    }
    let options = &with_rows;
    sums::must_have_same_loads(&header, &options.folder)?;
    let options = &Options {
        places: same_places(&header, &options.places, has_original_header(&options.folder))?,
        ..options.clone()
    };
    must_run_own_programs(&header.study, &options.places)?;
    must_have_levels(&header.study, &options.catalog)?;
    let (controlled, hosts, begun) = open(&header.study, options, events)?;
    let here = &hosts.host(Role::Proxy).is.environment;
    let then = &header.environment;
    if (&here.kernel, &here.cpu_model) != (&then.kernel, &then.cpu_model) {
        return Err(LabError::Resume(format!(
            "it started on another machine ({}, {}), and figures of two machines cannot be compared",
            then.cpu_model, then.kernel
        )));
    }
    hosts.cpu_roles(&Study { cpus: Some(header.cpus.clone()), ..header.study.clone() })?;
    network::same_as(header.network, &hosts)?;
    preflight::connections(&header.study, &header.cpus, &hosts)?;
    preflight::disk_space(&header.study, &options.folder, hosts.host(Role::Proxy))?;
    let history = History::of(&run);
    let number = history.sessions;
    Session { header: &header, options, number, writer, history, controlled, begun }
        .run(hosts, proposer, events)
}

/// Opens the controller of the proxy in a cluster, if any, and the hosts. Also returns the start of work on the run, by
/// the hosts' clock.
fn open(
    study: &Study,
    options: &Options,
    events: &mut dyn FnMut(Event),
) -> Result<(Option<Controlled>, Hosts, Duration), LabError> {
    settings::check(study, options)?;
    let controlled = Controlled::open(study, options, events)?;
    let hosts = Hosts::open(options)?;
    let begun = hosts.now();
    Ok((controlled, hosts, begun))
}

/// Returns remarks about CPUs that roles share, and about arms with more workers than CPUs.
fn of_roles(study: &Study, roles: &CpuRoles, hosts: &Hosts, catalog: &Catalog) -> Vec<Remark> {
    let shared = cpus::remarks(roles, Hosts::has_origin(study), &|one, other| {
        hosts.share_in(study, one, other)
    });
    let arm_workers = study.arms.iter().map(|arm| {
        let workers = catalog.workers(study.proxy_of(arm).kind, &arm.settings);
        (&*arm.name, arm.cpus(roles).cpus().len(), workers)
    });
    let crowded = cpus::crowded_arms(arm_workers);
    shared
        .into_iter()
        .chain(crowded)
        .map(Remark::of_run)
        .chain(hosts.pods().into_iter().flat_map(Pods::remarks))
        .collect()
}

/// Returns the environment of the proxies' host, with the versions and sums of the arms' programs.
fn with_versions(study: &Study, hosts: &Hosts) -> Result<Environment, LabError> {
    let mut environment = hosts.host(Role::Proxy).is.environment.clone();
    for arm in &study.arms {
        let program = hosts.program_of(study.proxy_of(arm))?;
        if !program.version.is_empty() {
            environment.versions.insert(program.name, program.version);
        }
        if !program.sum.is_empty() && !environment.program_sums.contains(&program.sum) {
            environment.program_sums.push(program.sum);
        }
    }
    Ok(environment)
}

/// Returns the remarks about the study, without those about arms that are left out.
fn of_arms_that_run(remarks: &[Remark], study: &Study) -> Vec<Remark> {
    let names: Vec<&String> = study.arms.iter().map(|arm| &arm.name).collect();
    remarks
        .iter()
        .filter(|remark| remark.arm.as_ref().is_none_or(|name| names.contains(&name)))
        .cloned()
        .collect()
}

/// Refuses settings that no study file could have: they go into configurations as they stand.
fn must_have_levels(study: &Study, catalog: &Catalog) -> Result<(), LabError> {
    let of_arms = study.arms.iter().flat_map(|arm| {
        let proxy = study.proxy_of(arm);
        let settings = [&proxy.settings, &arm.settings, &arm.changes];
        settings.into_iter().flatten().map(move |(id, level)| (proxy.kind, id, level))
    });
    for (kind, id, level) in of_arms {
        let row = catalog.get(kind, id);
        // Names of launchers are the study's own.
        let is_launcher = catalog.launcher().is_some_and(|row| row.id == *id);
        let is_allowed = is_launcher || row.is_none_or(|row| row.check(level).is_ok());
        if !is_allowed {
            return Err(LabError::Resume(format!(
                "`{id}` cannot be `{level}`: its folder was edited"
            )));
        }
    }
    Ok(())
}

/// Refuses a study whose programs others could have written; those on other hosts cannot be looked at from here.
fn must_run_own_programs(study: &Study, places: &PlaceSpec) -> Result<(), LabError> {
    if places.host_of(Role::Proxy).is_some() {
        return Ok(());
    }
    for program in study.programs() {
        weir_files::only_ours_file_named(program).map_err(|why| {
            LabError::Resume(format!(
                "others could have written a program that it starts: {why}; let nobody else write it (chmod go-w)"
            ))
        })?;
    }
    Ok(())
}

/// Returns the places of a resumed run: it continues where it began. Its places need not be named again, unless somebody
/// else may have named them: to reach a host, ssh runs what its configuration says for that name.
fn same_places(
    header: &RunHeader,
    asked: &PlaceSpec,
    is_original: bool,
) -> Result<PlaceSpec, LabError> {
    let pods = asked.pods.as_ref().map(Pods::cluster);
    match &header.places.cluster {
        Some(cluster) if pods.as_ref() == Some(cluster) => return Ok(asked.clone()),
        Some(cluster) => {
            return Err(LabError::Resume(format!(
                "its generators were pods: give --on kubernetes:{cluster} and --generators again"
            )));
        }
        None if pods.is_some() => {
            let words = "it started without pods, and figures of other hosts cannot be compared";
            return Err(LabError::Resume(words.to_owned()));
        }
        None => {}
    }
    let then = asked.again(&header.places);
    if *asked == then || (asked.is_here() && is_original) {
        return Ok(then);
    }
    if asked.is_here() {
        return Err(LabError::Resume(format!(
            "its folder was copied, unpacked or changed since it started, and names hosts for ssh: if they are yours, give {} again",
            then.flags().join(" ")
        )));
    }
    Err(LabError::Resume(format!(
        "it started with {then}, and figures of other hosts cannot be compared"
    )))
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use weir_model::fixture;
    use weir_model::study::ArmRole;

    use super::*;

    #[test]
    fn hosts_of_a_copied_folder_are_named_again() {
        let mut header = fixture::header(fixture::study(Vec::new()));
        header.places.proxy = Some("web1".to_owned());
        for (named, is_original, is_resumed) in [
            (None, true, true),
            (None, false, false),
            (Some("web1"), true, true),
            (Some("web1"), false, true),
            (Some("web2"), true, false),
            (Some("web2"), false, false),
        ] {
            let mut again = PlaceSpec::default();
            named.into_iter().for_each(|host| again.put(Role::Proxy, host.to_owned()));
            let places = same_places(&header, &again, is_original);
            assert_eq!(places.is_ok(), is_resumed, "{named:?}, {is_original}");
            let Err(error) = places else { continue };
            let is_told = error.to_string().contains("give --place proxy=web1 again");
            assert_eq!(is_told, named.is_none(), "{error}");
        }
        // Where no host is named, the folder may be from anywhere.
        header.places.proxy = None;
        assert!(same_places(&header, &PlaceSpec::default(), false).is_ok());
    }

    #[test]
    fn settings_that_no_study_could_have_are_refused() {
        let catalog = Catalog::builtin();
        for (id, level, is_allowed) in [
            ("gzip", "on", true),
            ("gzip", "on; access_log /tmp/log", false),
            ("worker_processes", "2", true),
            ("worker_processes", "2;", false),
            ("net.core.somaxconn", "1; reboot", false),
            ("launcher", "quiet", true),
        ] {
            let arm = fixture::arm("changed", ArmRole::Change, &[(id, level)]);
            let study = fixture::study(vec![fixture::arm("a", ArmRole::Baseline, &[]), arm]);
            assert_eq!(must_have_levels(&study, &catalog).is_ok(), is_allowed, "{id}: {level}");
        }
    }
}
