//! `weir doctor`: the settings that would limit a load. Reads, and changes nothing.

use std::process::ExitCode;

use weir_doctor::{Asked, GatherError, Request};
use weir_kube::ClusterFacts;
use weir_model::quantity::parse_rate;
use weir_report::foreign::masked;

use crate::args::{DoctorArgs, DoctorFormat};
use crate::commands::{flag, kube};
use crate::failure::{FAILED, Failure};
use crate::terminal;

pub(crate) fn run(args: DoctorArgs) -> Result<ExitCode, Failure> {
    let asked = asked(&args)?;
    let format = args.format;
    let examination = match &args.on {
        Some(on) => {
            let facts = facts_of(on, args.selector.as_deref())?;
            weir_doctor::examine_cluster(&facts, asked)
        }
        None => {
            let facts = weir_doctor::gather(&Request {
                asked,
                nginx: args.nginx.or(args.file),
                pid: args.pid,
                root: args.root,
            });
            weir_doctor::examine(&facts.map_err(|error| refused(&error))?)
        }
    };
    match format {
        DoctorFormat::Text => {
            let (width, color) = (terminal::width(), terminal::color_on_stdout());
            let text = weir_doctor::text(&examination, width, color);
            terminal::print_painted(&masked(&text))?;
        }
        DoctorFormat::Json => {
            let json = examination.json().map_err(Failure::failed)?;
            terminal::print(&masked(&json))?;
        }
    }
    Ok(if examination.has_errors() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Reads facts about the pods of a cluster that match the selector. An error if there are no such pods.
fn facts_of(on: &str, selector: Option<&str>) -> Result<ClusterFacts, Failure> {
    let selector = selector.map(|text| kube::read("--selector", text)).transpose()?;
    let cluster = kube::connect(on)?;
    let facts = cluster.facts(selector.as_ref()).map_err(kube::refused)?;
    if facts.pods.is_empty() {
        let (context, namespace) = (&facts.context, &facts.namespace);
        let message =
            format!("there are no such pods in namespace {namespace} of context {context}");
        return Err(Failure::input(message).hint(format!(
            "see them with: kubectl --context {context} get pods --all-namespaces --show-labels"
        )));
    }
    Ok(facts)
}

fn asked(args: &DoctorArgs) -> Result<Asked, Failure> {
    let rate = |name: &str, text: &Option<String>| {
        text.as_deref().map(|text| flag(name, parse_rate(text))).transpose()
    };
    Ok(Asked {
        connections: args.connections,
        rate: rate("--rate", &args.rate)?,
        connections_per_second: rate("--connections-per-second", &args.connections_per_second)?,
    })
}

fn refused(error: &GatherError) -> Failure {
    Failure::input(error).hint(error.hint())
}
