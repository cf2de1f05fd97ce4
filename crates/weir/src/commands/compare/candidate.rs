//! `weir compare --candidate-program` and `--candidate-configuration`: two proxies that weir starts.

use std::path::Path;

use weir_hosts::Options;
use weir_model::nearest::nearest;
use weir_model::study::ProxyKind;
use weir_study::{CandidatePair, ProgramFiles, Scale};

use crate::args::{CandidateArgs, CompareArgs, FlowArgs};
use crate::commands::load::describe_requests;
use crate::commands::run;
use crate::commands::study::{self, StudyFile};
use crate::failure::Failure;

/// URL of the requests if none is given: the copies answer to any name.
const ANY_URL: &str = "http://localhost/";

/// Makes the study of a program or configuration and its candidate.
pub(super) fn read(
    args: &CompareArgs,
    rate: Option<f64>,
    options: &Options,
) -> Result<StudyFile, Failure> {
    let candidate = &args.candidate;
    let files = pair_files(candidate)?;
    let url = args.flow.url.clone().unwrap_or_else(|| ANY_URL.to_owned());
    let flow = FlowArgs { url: Some(url), rate: None, ..args.flow.clone() };
    let flow = describe_requests(&flow, args.flow.url.is_some())?;
    super::refuse_held(&flow)?;
    let pair = CandidatePair { kind: find_kind(candidate)?, files };
    let text = pair.text(&flow, rate, &options.catalog);
    let machine = run::machine(options)?;
    let study = study::read_text(&text, "study.yaml", &options.catalog, Scale::ONE, &machine)?;
    Ok(StudyFile { study: CandidatePair::with_flow(study, &flow), text })
}

/// Returns the files of both proxies, which must differ.
fn pair_files(candidate: &CandidateArgs) -> Result<[ProgramFiles; 2], Failure> {
    let CandidateArgs {
        program, configuration, candidate_program, candidate_configuration, ..
    } = candidate;
    let old = ProgramFiles { program: program.clone(), configuration: configuration.clone() };
    let new = ProgramFiles {
        program: candidate_program.as_ref().or(program.as_ref()).cloned(),
        configuration: candidate_configuration.as_ref().or(configuration.as_ref()).cloned(),
    };
    if old == new {
        return Err(Failure::input("there is no candidate that differs").hint(
            "give --candidate-program or --candidate-configuration; both are compared with the other one's",
        ));
    }
    if candidate_configuration.is_some() && configuration.is_none() {
        return Err(Failure::input(
            "--candidate-configuration: with which configuration is it compared?",
        )
        .hint("give --configuration"));
    }
    Ok([old, new])
}

/// Returns the names of all kinds.
fn kind_names() -> Vec<&'static str> {
    ProxyKind::ALL.iter().map(|kind| kind.name()).collect()
}

/// Returns the kind that was given, or the one that the name of a program or of a file says.
fn find_kind(candidate: &CandidateArgs) -> Result<ProxyKind, Failure> {
    if let Some(name) = &candidate.proxy {
        let names = kind_names();
        return ProxyKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            Failure::input(format!("--proxy: `{name}` is none of {}", names.join(", ")))
                .maybe_hint(nearest(name, &names).map(|near| format!("did you mean `{near}`?")))
        });
    }
    let CandidateArgs {
        program, configuration, candidate_program, candidate_configuration, ..
    } = candidate;
    [candidate_program, program, candidate_configuration, configuration]
        .into_iter()
        .flatten()
        .find_map(|path| kind_by_name(path))
        .ok_or_else(|| {
            Failure::input("which proxy is it? The names of the files do not say")
                .hint(format!("give --proxy {}", kind_names().join(", ")))
        })
}

/// Returns the kind that the last part of a path says, or else any part before it.
fn kind_by_name(path: &Path) -> Option<ProxyKind> {
    path.ancestors()
        .filter_map(Path::file_name)
        .find_map(|name| weir_proxies::kind_by_name(&name.to_string_lossy()))
}
