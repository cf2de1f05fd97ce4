//! `weir advise`: published recommendations, tried on a proxy of the distribution or on a configuration of one's own.
//!
//! [`selection`] finds what is meant, [`plan`] makes studies of it and keeps what a later call needs to go on, [`carry`]
//! runs them one after the other. What was found is shown and kept here.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weir_advice::{AdviceFindings, AdviceVerdict, Recommendation, Standing};
use weir_host::journal::quoted;
use weir_hosts::{Options, PlaceSpec};
use weir_parameters::Catalog;
use weir_report::advice::Advice;
use weir_report::secrets::masked;

use crate::args::{AdviseArgs, ReportFormat};
use crate::commands::{can_be_written, deliver, run};
use crate::failure::{Failure, INTERRUPTED};
use crate::terminal;

mod carry;
mod plan;
mod selection;

use self::plan::Plan;

/// Name and version of the formats of JSON output.
pub(crate) const FORMAT: &str = "weir-advice/1";
pub(crate) const FORMAT_OF_LIST: &str = "weir-advice-list/1";

/// The findings, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// `weir-advice/1`.
    format: &'static str,
    #[serde(flatten)]
    findings: &'a AdviceFindings,
}

/// The list of recommendations, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Listing<'a> {
    /// `weir-advice-list/1`.
    format: &'static str,
    recommendations: Vec<Listed<'a>>,
}

/// A recommendation in the list.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Listed<'a> {
    #[serde(flatten)]
    recommendation: &'a Recommendation,
    /// Standing here: applies, or the reason why it cannot be tried.
    applies: &'a Standing,
}

pub(crate) fn run(args: &AdviseArgs) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.output {
        can_be_written(path)?;
    }
    if args.format == Some(ReportFormat::Csv) {
        return Err(Failure::input("--format csv: recommendations have no table of that kind")
            .hint("--format json has all figures"));
    }
    let catalog = Catalog::builtin();
    let (folder, plan) = match &args.resume {
        Some(folder) => (folder.clone(), Plan::read(folder)?),
        None => {
            let wanted = selection::read(args)?;
            if args.what.is_empty() {
                return list(args, &wanted, &catalog);
            }
            let folder = args.out.clone().unwrap_or_else(|| run::default_folder("advice"));
            if folder.exists() {
                return Err(Failure::input(format!("{} exists already", folder.display()))
                    .hint("--resume goes on with an earlier call; --out names another folder"));
            }
            (folder, Plan::new(args, wanted)?)
        }
    };
    let options = Options {
        allow_host_settings: plan.allows_host_settings || args.allow_host_settings,
        samples: Some(std::time::Duration::from_secs(1)),
        ..run::options_at(PlaceSpec::default())?
    };
    let work = plan.compose(&options)?;
    let (found, is_stopped) = carry::carry_out(&folder, plan, work, &options, &args.progress)?;
    keep(&folder, &found)?;
    show(args, &found)?;
    if is_stopped {
        terminal::tell(&format!(
            "\nInterrupted. Continue with: weir advise --resume {}\n",
            quoted(&folder.display().to_string())
        ));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists recommendations, with the reason if one cannot be tried here.
fn list(
    args: &AdviseArgs,
    wanted: &selection::Selection,
    catalog: &Catalog,
) -> Result<ExitCode, Failure> {
    let installed = selection::find_installed(args.allow_host_settings, false);
    let all: Vec<(Recommendation, Standing)> = wanted
        .recommendations
        .iter()
        .map(|advice| (advice.clone(), weir_advice::standing(advice, catalog, &installed)))
        .collect();
    let text = match args.format {
        Some(ReportFormat::Json) => {
            let recommendations = all
                .iter()
                .map(|(recommendation, applies)| Listed { recommendation, applies })
                .collect();
            as_json(&Listing { format: FORMAT_OF_LIST, recommendations })?
        }
        format => draw(Advice::List(&all), format, args.output.is_none()),
    };
    deliver(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Formats advice for people.
fn draw(advice: Advice<'_>, format: Option<ReportFormat>, is_printed: bool) -> String {
    match format {
        Some(ReportFormat::Markdown) => advice.markdown(),
        Some(ReportFormat::Html) => advice.html(),
        _ => advice.terminal(is_printed && terminal::color_on_stdout(), terminal::width()),
    }
}

fn as_json(document: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::failed(format!("cannot write findings: {error}")))?;
    Ok(masked(&json).into_owned() + "\n")
}

fn show(args: &AdviseArgs, found: &AdviceFindings) -> Result<(), Failure> {
    let text = match args.format {
        Some(ReportFormat::Json) => as_json(&Document { format: FORMAT, findings: found })?,
        format => {
            draw(Advice::Findings(found, &list_commands(found)), format, args.output.is_none())
        }
    };
    deliver(&text, args.output.as_deref())
}

/// Writes the findings next to the runs, in every format.
fn keep(folder: &Path, found: &AdviceFindings) -> Result<(), Failure> {
    let commands = list_commands(found);
    let advice = Advice::Findings(found, &commands);
    let json = as_json(&Document { format: FORMAT, findings: found })?;
    for (name, text) in
        [("advice.html", advice.html()), ("advice.md", advice.markdown()), ("advice.json", json)]
    {
        let path = folder.join(name);
        weir_files::replace(&path, text.as_bytes()).map_err(|error| {
            Failure::failed(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    let page = folder.join("advice.html");
    terminal::tell(&format!("Report: {}\n", page.display()));
    Ok(())
}

/// Returns commands that apply each confirmed change to the user's own configuration and take it back, with their
/// purpose.
fn list_commands(found: &AdviceFindings) -> Vec<(String, String)> {
    if found.configuration.is_none() {
        return Vec::new();
    }
    let confirmed = found
        .found
        .iter()
        .filter(|one| matches!(one.verdict, AdviceVerdict::Confirmed | AdviceVerdict::Smaller));
    confirmed
        .filter_map(|one| {
            let (run, arm) = one.arm.as_ref()?;
            let patch = format!(
                "weir patch {} --arm {}",
                quoted(&found.runs.get(*run)?.folder),
                quoted(arm)
            );
            let id = &one.recommendation.id;
            Some([
                (format!("{patch} | patch -d / -p1"), format!("apply {id}")),
                (format!("{patch} --revert | patch -d / -p1"), format!("take {id} back")),
            ])
        })
        .flatten()
        .collect()
}
