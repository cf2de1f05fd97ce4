//! `weir compare`: whether a server, a program, a configuration or a run is worse than another one.
//!
//! Two URLs become a study of two arms that weir did not start, two programs or configurations one of two that it starts
//! ([`candidate`]). The rest is a run like any other. Two runs have been made already ([`runs`]).

use std::process::ExitCode;

use weir_conditions::study::Conditions;
use weir_hosts::{Options, Role};
use weir_model::flow::FlowSpec;
use weir_model::quantity::parse_rate;
use weir_study::ServerPair;

use crate::args::{CompareArgs, FlowArgs};
use crate::commands::load::Server;
use crate::commands::run::{self, EndOutput};
use crate::commands::study::StudyFile;
use crate::commands::{can_be_written, fail_if, flag, public, server, time};
use crate::failure::Failure;
use crate::progress::Reporter;
use crate::terminal;

mod candidate;
pub(crate) mod runs;

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.output {
        can_be_written(path)?;
    }
    if let Some(folder) = runs::folder_for_baseline(args) {
        return runs::run_by_baseline(args, &folder);
    }
    if let Some(folders) = runs::folders(args) {
        return runs::run(args, folders);
    }
    refuse_idle(args)?;
    let options = run::read_options(&args.lab)?;
    let rate = args.flow.rate.as_deref().map(|text| flag("-R", parse_rate(text))).transpose()?;
    let mut read = match &args.other {
        None if args.candidate.is_given() => candidate::read(args, rate, &options)?,
        None => return Err(missing_server(args)),
        Some(other) => StudyFile {
            study: pair_of_servers(args, other, rate, &options)?.study(),
            text: server::command_line(),
        },
    };
    let conditions = Conditions::read(&args.fail_if, &read.study).map_err(fail_if::refused)?;
    if let Some(text) = &args.budget {
        read.study.budget = Some(time::budget(text)?);
    }
    let shortened = time::fit(&mut read.study, false)?;
    if !args.lab.progress.is_quiet() {
        shortened.iter().for_each(|line| terminal::tell(&format!("weir: {line}\n")));
    }
    let options = Options { folder: run::folder(&args.lab, &read.study.name), ..options };
    let reporter = Reporter::shown(&args.lab.progress)?;
    let summary = run::carry_out(&options, Some(&read), reporter)
        .map_err(|error| server::explained(error, &read.study, &options.folder))?;
    let shown = EndOutput {
        format: args.format,
        is_full: args.full,
        output: args.output.as_deref(),
        junit: args.junit.as_deref(),
        baseline: None,
    };
    run::finish(&summary, None, &shown, &args.lab, Some(&conditions))
}

/// Finds both servers, which are there already.
fn pair_of_servers(
    args: &CompareArgs,
    other: &String,
    rate: Option<f64>,
    options: &Options,
) -> Result<ServerPair, Failure> {
    let is_here = options.places.sends_from_here();
    let old = find_server(args, args.flow.url.as_ref(), is_here)?;
    let new = find_server(args, Some(other), is_here)?;
    refuse_unlike(&old, &new)?;
    refuse_held(&old.spec)?;
    if options.places.host_of(Role::Proxy).is_some() {
        return Err(Failure::input("--place proxy=HOST: weir starts neither server")
            .hint("the URLs say where they are"));
    }
    let both = old.addresses().chain(new.addresses());
    let cpus = server::choose_cpus(None, both, options)?;
    let is_of_url = args.flow.request_set.is_none();
    Ok(ServerPair {
        other_target: (is_of_url && old.target != new.target).then_some(new.target),
        servers: [old.named, new.named],
        flow: old.spec,
        rate,
        cpus,
    })
}

/// Refuses connections that get no requests: nothing of them could be compared.
fn refuse_held(flow: &FlowSpec) -> Result<(), Failure> {
    if flow.is_held() {
        return Err(Failure::input(
            "--connection hold: held connections get no requests, so nothing could be compared",
        ));
    }
    Ok(())
}

/// Returns the failure of a comparison with one URL, or with none.
fn missing_server(args: &CompareArgs) -> Failure {
    let question = match &args.flow.url {
        Some(url) => format!("what is {url} to be compared with?"),
        None => "what is to be compared?".to_owned(),
    };
    Failure::input(question).hint(
        "two servers: `weir compare OLD_URL NEW_URL`; two programs: `weir compare --program OLD --candidate-program NEW`",
    )
}

/// Finds the server of a URL, checked as for a load.
fn find_server(args: &CompareArgs, url: Option<&String>, is_here: bool) -> Result<Server, Failure> {
    let flow = FlowArgs { url: url.cloned(), rate: None, ..args.flow.clone() };
    Server::of(&flow, is_here, |_, all| public::check_permission(all, args.lab.yes_this_is_mine))
}

/// Refuses options of a load or of a study that have no effect in a comparison of two URLs.
fn refuse_idle(args: &CompareArgs) -> Result<(), Failure> {
    let (flow, lab) = (&args.flow, &args.lab);
    let of_study = "the option is for studies";
    let are_servers = !args.candidate.is_given();
    let all = [
        (
            args.other.is_some() && !are_servers,
            "--candidate-program",
            "weir starts both programs itself; one URL gives host and target of the requests",
        ),
        (
            args.history.is_some(),
            "--history",
            "earlier runs say nothing of two servers or programs",
        ),
        (
            args.kept.baseline.is_some(),
            "--baseline",
            "both are measured side by side; for one run after the other: weir run STUDY --baseline DIR",
        ),
        (flow.to.is_some(), "--to", "each URL has its own server; give the addresses as URLs"),
        (flow.trace.is_some(), "--trace", "a trace has its own rates"),
        (flow.requests.is_some(), "-n", "the time decides; --budget is the time for all of it"),
        (
            lab.pods.on.is_some(),
            "--on",
            "pods send to two servers by a study with `kind: external` (docs/study.md)",
        ),
        (
            lab.confirm && are_servers,
            "--confirm",
            "weir did not start the servers and cannot change them",
        ),
        (lab.allow_host_settings && are_servers, "--allow-host-settings", of_study),
        (lab.node_sysctls, "--node-sysctls", of_study),
        (!lab.parameters.is_empty() && are_servers, "--parameters", of_study),
        (lab.where_time_goes && are_servers, "--where-time-goes", of_study),
    ];
    match all.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, option, why)) => Err(Failure::input(format!("{option}: {why}"))),
        None => Ok(()),
    }
}

/// Refuses two servers that cannot get the same load, and a server beside itself.
fn refuse_unlike(old: &Server, new: &Server) -> Result<(), Failure> {
    if old.spec.tls.is_some() != new.spec.tls.is_some() {
        return Err(Failure::input(format!(
            "{} and {}: one speaks TLS and the other does not, so a load cannot be the same for both",
            old.named.url, new.named.url
        ))
        .hint("compare both over TLS, or both in clear"));
    }
    if (old.named.address, &old.named.authority, &old.target)
        == (new.named.address, &new.named.authority, &new.target)
    {
        return Err(Failure::input(format!("{} is compared with itself", old.named.url)).hint(
            "to see how much equal servers differ here, compare http://HOST/?1 with http://HOST/?2",
        ));
    }
    Ok(())
}
