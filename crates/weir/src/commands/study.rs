//! Reading of studies by name or file, with checks.

use std::path::Path;

use weir_hosts::Facts;
use weir_load::files::{LARGEST_DESCRIPTION, read_at_most};
use weir_model::flow::ArrivalsSpec;
use weir_model::nearest::nearest;
use weir_model::record::Remark;
use weir_model::room::STOCK_NOFILE;
use weir_model::study::{LoadSpec, ProxyKind, Study};
use weir_parameters::Catalog;
use weir_study::{CheckContext, ReadyMade, Scale, StudyErrors, utf8};

use crate::args::LabArgs;
use crate::commands::parameters;
use crate::engine::{self, ENGINE};
use crate::failure::Failure;
use crate::terminal;

/// A study and the text that it was read from.
#[derive(Debug, Clone)]
pub(crate) struct StudyFile {
    pub(crate) study: Study,
    pub(crate) text: String,
}

/// Reads the study of `weir run`: a ready-made study's name, or a file.
pub(crate) fn read(
    study: &str,
    catalog: &Catalog,
    scale: Scale,
    machine: &CheckContext,
) -> Result<StudyFile, Failure> {
    let path = Path::new(study);
    let looks_like_a_name = !study.contains(['/', '.']);
    let (text, name) = if looks_like_a_name && !path.exists() {
        let ready = ready_made(study)?;
        (ready.text.to_owned(), format!("{}.yaml", ready.name))
    } else {
        must_be_own(path, "a study")?;
        let bytes = read_at_most(path, LARGEST_DESCRIPTION).map_err(|error| {
                Failure::input(format!("cannot read {study}: {error}")).hint(
                    "give the path of a study file; `weir studies` lists the ready-made ones, and `weir studies NAME` \
                     prints one to begin with",
                )
            })?;
        (utf8(bytes, study).map_err(refused)?, study.to_owned())
    };
    Ok(StudyFile { study: read_text(&text, &name, catalog, scale, machine)?, text })
}

/// Refuses a file that others could have written. Who writes a study or a set of requests chooses programs that are
/// started and files that are sent, with the rights of this user.
pub(crate) fn must_be_own(path: &Path, what: &str) -> Result<(), Failure> {
    // One that is missing, and a pipe that this user's shell has made, are told by whoever reads it.
    if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(());
    }
    weir_files::only_ours_file_to_read(path).map_err(|why| {
        Failure::input(format!("others could have written {}: {why}", path.display())).hint(format!(
            "{what} chooses programs to start and files to send: read it, and use a copy of your own, `cp {} mine`",
            path.display()
        ))
    })
}

/// Refuses a study with mistakes before a cluster is contacted. Properties of its hosts are not known yet.
pub(super) fn is_right_before_cluster(
    study: &str,
    lab: &LabArgs,
    scale: Scale,
) -> Result<(), Failure> {
    if lab.pods.on.is_none() {
        return Ok(());
    }
    let anywhere = CheckContext {
        most_descriptors: 1 << 30,
        own_tables: true,
        local_ports: 65_535,
        one_machine: false,
        ..context()
    };
    read(study, &parameters::read_catalog(&lab.parameters)?, scale, &anywhere).map(drop)
}

/// Returns the catalog with the defaults of the study's proxies, as far as they are installed here. If a study has two
/// proxies of one kind, its defaults stay open: each proxy may have its own.
fn with_defaults_here(catalog: &Catalog, text: &str) -> Catalog {
    let programs = weir_study::programs(text);
    ProxyKind::ALL.into_iter().fold(catalog.clone(), |catalog, kind| {
        let mut of_kind = programs.iter().filter(|(of, _)| *of == kind);
        let (Some((_, executable)), None) = (of_kind.next(), of_kind.next()) else {
            return catalog;
        };
        match weir_proxies::find(kind, executable.as_deref()) {
            Ok(program) => catalog.for_proxy(kind, program.version()),
            Err(_) => catalog,
        }
    })
}

/// Returns a ready-made study by name.
pub(crate) fn ready_made(name: &str) -> Result<&'static ReadyMade, Failure> {
    let studies = weir_study::studies();
    studies.iter().find(|study| study.name == name).ok_or_else(|| {
        let names: Vec<_> = studies.iter().map(|study| study.name).collect();
        let failure =
            Failure::input(format!("there is no study called `{name}`, and no such file"));
        failure.hint(match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`? `weir studies` lists all of them"),
            None => format!("ready-made studies: {}", names.join(", ")),
        })
    })
}

/// Returns a ready-made study, or one sentence that says why it does not fit this machine.
pub(crate) fn fit(ready: &ReadyMade) -> Result<Study, String> {
    weir_study::parse(ready.text, ready.name, &Catalog::builtin(), &context()).map_err(|errors| {
        let first = errors.errors().first();
        first.map_or_else(String::new, |error| error.message.clone())
    })
}

/// Returns the first error in the text of a study; `None` if it is valid on this host.
pub(crate) fn first_error(text: &str, catalog: &Catalog, machine: &CheckContext) -> Option<String> {
    let catalog = with_defaults_here(catalog, text);
    let errors = weir_study::parse(text, "study.yaml", &catalog, machine).err()?;
    Some(errors.errors().first().map_or_else(String::new, |error| error.message.clone()))
}

/// Returns remarks about a study before it is run.
pub(crate) fn remarks(study: &Study, catalog: &Catalog, machine: &CheckContext) -> Vec<Remark> {
    let mut remarks = weir_study::remarks(study, catalog, machine);
    for flow in study.loads.iter().flat_map(LoadSpec::flows) {
        // One that cannot be read any more is an error where it is read to be sent.
        if let (ArrivalsSpec::Trace(named), Ok(Some(trace))) = (&flow.arrivals, engine::trace(flow))
        {
            let sentences = engine::left_out(&named.file, &trace);
            remarks.extend(sentences.into_iter().map(Remark::of_run));
        }
    }
    // Several loads may replay one file.
    remarks.dedup();
    remarks
}

/// Returns the context for checking studies if some role is on another host.
pub(crate) fn elsewhere(facts: Facts) -> CheckContext {
    CheckContext {
        descriptor_limit: STOCK_NOFILE,
        most_descriptors: facts.most_descriptors,
        own_tables: facts.own_tables,
        local_ports: facts.local_ports,
        cpus_available: Some(facts.cpus),
        one_machine: facts.one_machine,
        node_sysctls: true,
        engine: ENGINE,
    }
}

/// Returns the context for checking studies on this host.
pub(crate) fn context() -> CheckContext {
    CheckContext {
        descriptor_limit: STOCK_NOFILE,
        most_descriptors: weir_probe::host::own_nofile().1,
        own_tables: weir_load::descriptors::tables_can_be_own(),
        local_ports: weir_probe::local_ports(),
        cpus_available: weir_probe::allowed_cpus().ok(),
        one_machine: true,
        node_sysctls: true,
        engine: ENGINE,
    }
}

/// Reads the text of a study, with the defaults of the proxies that are installed here.
pub(crate) fn read_text(
    text: &str,
    name: &str,
    catalog: &Catalog,
    scale: Scale,
    machine: &CheckContext,
) -> Result<Study, Failure> {
    parse_here(text, name, catalog, scale, machine).map_err(refused)
}

/// Reads the text of a study as [`read_text`] does.
///
/// # Errors
/// All mistakes in the study.
pub(crate) fn parse_here(
    text: &str,
    name: &str,
    catalog: &Catalog,
    scale: Scale,
    machine: &CheckContext,
) -> Result<Study, StudyErrors> {
    let catalog = if machine.one_machine { &with_defaults_here(catalog, text) } else { catalog };
    weir_study::parse_scaled(text, name, catalog, machine, scale)
}

fn refused(errors: StudyErrors) -> Failure {
    Failure::described(errors.render(terminal::color_on_stderr()))
}
