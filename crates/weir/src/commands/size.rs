//! `weir size`: which machines a workload needs, from runs that measured smaller ones.

use std::process::ExitCode;

use serde::Serialize;
use weir_analysis::findings::{Findings, SizeFindings, Workload};
use weir_analysis::size::size;
use weir_history::differences;
use weir_model::quantity::{parse_count, parse_rate};
use weir_model::study::{Arm, ArmRole};
use weir_record::Run;
use weir_report::secrets::masked;

use crate::args::{SizeArgs, SizeFormat};
use crate::commands::{can_be_written, deliver, flag, report};
use crate::failure::Failure;
use crate::terminal;

/// Name and version of the JSON output's format.
pub(crate) const FORMAT: &str = "weir-size/1";

/// The findings, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// `weir-size/1`.
    format: &'static str,
    #[serde(flatten)]
    findings: &'a SizeFindings,
}

pub(crate) fn run(args: &SizeArgs) -> Result<ExitCode, Failure> {
    let connections =
        args.connections.as_deref().map(|text| flag("--connections", parse_count(text)));
    let workload = Workload {
        rate: flag("--rate", parse_rate(&args.rate))?,
        connections: connections.transpose()?.map(|count| count as f64),
    };
    if workload.connections == Some(0.0) {
        return Err(Failure::input("--connections: no connection takes no requests"));
    }
    if let Some(path) = &args.output {
        can_be_written(path)?;
    }
    let mut runs: Vec<(Run, Findings)> = Vec::new();
    for folder in &args.runs {
        let run = report::read(folder)?;
        let findings = weir_analysis::analyze(&run);
        runs.push((run, findings));
    }
    refuse_other_machines(&runs)?;
    let arm = match &args.arm {
        Some(arm) => arm.clone(),
        None => choose_arm(&runs),
    };
    refuse_other_settings(&runs, &arm)?;
    let findings = size(&runs, &arm, workload).map_err(|error| {
        Failure::input(error).hint("`weir report RUN` shows the arms and loads of a run")
    })?;
    let text = format(&findings, args)?;
    deliver(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses runs of several machines, or of several versions of the proxy.
fn refuse_other_machines(runs: &[(Run, Findings)]) -> Result<(), Failure> {
    let Some(((first, _), others)) = runs.split_first() else {
        return Ok(());
    };
    for (other, _) in others {
        let proxy = first.header.study.proxy.kind.name();
        let difference = differences(&first.header, &other.header)
            .into_iter()
            .find(|one| one.is_of_machine || one.what == proxy);
        if let Some(one) = difference {
            return Err(Failure::input(format!(
                "{} and {} cannot be put together: {} is {} in one and {} in the other",
                first.header.run, other.header.run, one.what, one.old, one.new
            ))
            .hint("give runs of one proxy on one machine"));
        }
    }
    Ok(())
}

/// Refuses runs in which the arm has other settings.
fn refuse_other_settings(runs: &[(Run, Findings)], name: &str) -> Result<(), Failure> {
    let arms: Vec<(&str, &Arm)> = runs
        .iter()
        .filter_map(|(run, _)| {
            let arm = run.header.study.arms.iter().find(|arm| arm.name == name)?;
            Some((run.header.run.as_str(), arm))
        })
        .collect();
    match arms.iter().find(|(_, arm)| arm.settings != arms[0].1.settings) {
        None => Ok(()),
        Some((run, _)) => Err(Failure::input(format!(
            "`{name}` has other settings in {run} than in {}",
            arms[0].0
        ))
        .hint("give runs of the same settings, or one run")),
    }
}

/// Returns the arm with the highest capacity, or the baseline of the first run.
fn choose_arm(runs: &[(Run, Findings)]) -> String {
    let capacities = runs.iter().filter_map(|(_, findings)| findings.capacity.as_ref());
    let best = capacities
        .flat_map(|capacity| &capacity.arms)
        .filter(|capacity| capacity.claimed)
        .max_by(|one, other| one.answer.low.total_cmp(&other.answer.low));
    if let Some(best) = best {
        return best.answer.arm.clone();
    }
    let arms = runs.iter().flat_map(|(run, _)| &run.header.study.arms);
    let baseline = arms.clone().find(|arm| arm.role == ArmRole::Baseline);
    baseline.or(arms.into_iter().next()).map_or_else(String::new, |arm| arm.name.clone())
}

fn format(found: &SizeFindings, args: &SizeArgs) -> Result<String, Failure> {
    Ok(match args.format {
        SizeFormat::Terminal => {
            let color = args.output.is_none() && terminal::color_on_stdout();
            weir_report::size::terminal(found, color, terminal::width())
        }
        SizeFormat::Markdown => weir_report::size::markdown(found),
        SizeFormat::Html => weir_report::size::html(found),
        SizeFormat::Json => {
            let json = serde_json::to_string_pretty(&Document { format: FORMAT, findings: found })
                .map_err(|error| Failure::failed(format!("cannot write findings: {error}")))?;
            masked(&json).into_owned() + "\n"
        }
        SizeFormat::Kubernetes => weir_report::size::kubernetes(found).ok_or_else(|| {
            Failure::failed(weir_sentences::size::describe_size(found))
                .hint("--format terminal says what is known")
        })?,
    })
}
