//! `weir doctor`: the settings that would limit a load. Reads, and changes nothing.

use std::process::ExitCode;

use weir_doctor::{GatherError, LoadDemand, Request};
use weir_kube::ClusterFacts;
use weir_model::quantity::parse_rate;
use weir_report::secrets::masked;

use crate::args::{DoctorArgs, DoctorFormat};
use crate::commands::{flag, kube};
use crate::failure::{FAILED, Failure};
use crate::terminal;

pub(crate) fn run(args: DoctorArgs) -> Result<ExitCode, Failure> {
    let demand = read_demand(&args)?;
    let format = args.format;
    let examination = match &args.on {
        Some(on) => {
            let facts = facts_of(on, args.selector.as_deref())?;
            weir_doctor::examine_cluster(&facts, demand)
        }
        None => {
            let facts = weir_doctor::gather(&Request {
                asked: demand,
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
            let text = weir_report::doctor::text(&examination, width, color);
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
    let labels = selector.map(|text| kube::read("--selector", text)).transpose()?;
    let cluster = kube::connect(on)?;
    let facts = cluster.facts(labels.as_ref()).map_err(kube::refused)?;
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

fn read_demand(args: &DoctorArgs) -> Result<LoadDemand, Failure> {
    Ok(LoadDemand {
        connections: args.connections,
        rate: read_rate("--rate", args.rate.as_deref())?,
        connections_per_second: read_rate(
            "--connections-per-second",
            args.connections_per_second.as_deref(),
        )?,
    })
}

fn read_rate(name: &str, text: Option<&str>) -> Result<Option<f64>, Failure> {
    text.map(|text| flag(name, parse_rate(text))).transpose()
}

fn refused(error: &GatherError) -> Failure {
    Failure::input(error).hint(error.hint())
}
