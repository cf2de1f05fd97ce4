//! `weir runs`: the runs of a folder, listed, found, tagged and removed.

mod delete;
mod keep;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use weir_model::foreign::in_a_line;
use weir_notebook::{Filter, RunEntry, RunState, keep_summary, list_runs, read_entry};
use weir_record::{HEADER_FILE, Run};
use weir_report::secrets::masked;
use weir_report::{number, words};

use crate::args::{self, ListArgs, RunsArgs, RunsCommand, TextOrJson};
use crate::commands::report;
use crate::failure::Failure;
use crate::terminal;

/// Name and version of the JSON output's format.
pub(crate) const FORMAT: &str = "weir-run-list/1";

/// The runs of a folder, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// `weir-run-list/1`.
    format: &'static str,
    /// Folder that was listed.
    folder: &'a Path,
    /// Runs, the newest first.
    runs: &'a [RunEntry],
}

pub(crate) fn run(args: &RunsArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        None => list(&args.folder, &args.shown, None),
        Some(RunsCommand::Find(find)) => list(&find.folder, &find.shown, Some(&find.text)),
        Some(RunsCommand::Tag(tag)) => keep::tag(tag),
        Some(RunsCommand::Note(note)) => keep::note(note),
        Some(RunsCommand::Delete(delete)) => delete::run(delete),
    }
}

fn list(folder: &Path, args: &ListArgs, text: Option<&str>) -> Result<ExitCode, Failure> {
    let filter = Filter {
        text: text.map(str::to_owned),
        study: args.study.clone(),
        tags: args.tag.clone(),
        since: args.since.as_deref().map(parse_since).transpose()?,
        proxy: args.proxy.clone(),
    };
    if folder.join(HEADER_FILE).is_file() {
        return Err(Failure::input(format!("{} is a single run", folder.display()))
            .hint(format!("weir report {}", folder.display())));
    }
    let mut runs = list_runs(folder, args::version()).map_err(|error| {
        Failure::input(format!("cannot read {}: {error}", folder.display()))
            .hint("give the folder that has the folders of runs, such as runs/")
    })?;
    runs.retain(|run| filter.accepts(run));
    if args.update {
        runs.iter_mut().for_each(update);
    }
    let text = match args.format {
        TextOrJson::Text => describe_list(folder, &runs),
        TextOrJson::Json => {
            let document = Document { format: FORMAT, folder, runs: &runs };
            serde_json::to_string_pretty(&document)
                .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?
                + "\n"
        }
    };
    terminal::print(&masked(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Analyzes a run that has no summary, and keeps one in its folder.
fn update(entry: &mut RunEntry) {
    let can_be_analyzed = entry.problems.is_empty() && entry.state != RunState::Running;
    if entry.validity.is_some() || !can_be_analyzed {
        return;
    }
    match summarize(&entry.path) {
        Ok(()) => *entry = read_entry(&entry.path, args::version()),
        Err(why) => terminal::tell(&format!("weir: {}: {why}\n", in_a_line(&entry.name))),
    }
}

fn summarize(dir: &Path) -> Result<(), String> {
    let run = Run::read(dir).map_err(|error| error.to_string())?;
    let findings = weir_analysis::analyze(&run);
    keep_summary(&run, &findings, args::version()).map(drop).map_err(|error| error.to_string())
}

/// Formats a list: two or more lines for each run.
fn describe_list(folder: &Path, runs: &[RunEntry]) -> String {
    if runs.is_empty() {
        return format!("No such runs in {}.\n", in_a_line(&folder.display().to_string()));
    }
    let names: Vec<String> = runs.iter().map(|run| in_a_line(&run.name)).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(60);
    let mut text = String::new();
    for (run, name) in runs.iter().zip(&names) {
        describe_run(&mut text, run, &format!("{name:widest$}"));
    }
    let count = number::plural(runs.len() as u64, "run");
    let size = number::bytes(runs.iter().map(|run| run.size_bytes).sum());
    let _ = writeln!(text, "\n{count}, {size}");
    let unknown = runs.iter().filter(|run| is_unsummarized(run)).count();
    if unknown > 0 {
        let _ = writeln!(
            text,
            "Without a verdict of this weir: {unknown}. `weir runs --update` analyzes them."
        );
    }
    text
}

/// Returns true if the run could be analyzed, and was not.
fn is_unsummarized(run: &RunEntry) -> bool {
    run.validity.is_none() && run.problems.is_empty() && run.state != RunState::Running
}

fn describe_run(text: &mut String, run: &RunEntry, name: &str) {
    let validity = run.validity.map_or("", words::validity);
    let size = number::bytes(run.size_bytes);
    let tags: String = run.tags.iter().map(|tag| format!("  #{}", in_a_line(tag))).collect();
    let _ = writeln!(
        text,
        "{name}  {:20}  {:11}  {validity:7}  {size:>9}{tags}",
        words::instant(&run.started_at),
        run.state.word()
    );
    if !run.study.is_empty() {
        let question = in_a_line(&run.question);
        let colon = if question.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "    {}{colon}{question}", in_a_line(&run.study));
        let _ = writeln!(text, "    arms: {}", in_a_line(&describe_arms(&run.arms)));
    }
    if !run.verdict.is_empty() {
        let _ = writeln!(text, "    {}", in_a_line(&run.verdict));
    }
    if !run.note.is_empty() {
        let _ = writeln!(text, "    note: {}", in_a_line(&run.note));
    }
    for problem in &run.problems {
        let _ = writeln!(text, "    problem: {}", in_a_line(&problem.to_string()));
    }
}

/// Names the first arms and counts the others.
fn describe_arms(arms: &[String]) -> String {
    const NAMED: usize = 6;
    let named = arms.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match arms.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}, and {more} more"),
    }
}

/// Returns the path of a run that was given as a path, or as its name in the default folder.
pub(super) fn find_run(named: &Path) -> PathBuf {
    let in_default_folder = Path::new(report::RUNS).join(named);
    let is_name = named.components().count() == 1 && !named.exists();
    if is_name && in_default_folder.join(HEADER_FILE).exists() {
        in_default_folder
    } else {
        named.to_owned()
    }
}

/// Reads a time: a date, an instant, or an age.
fn parse_since(text: &str) -> Result<Timestamp, Failure> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    if let Ok(time) = format!("{text}T00:00:00Z").parse() {
        return Ok(time);
    }
    parse_age(text).ok_or_else(|| {
        Failure::input(format!(
            "--since: `{text}` is neither a date (2026-11-30), a time (2026-11-30T08:00:00Z) nor an age (12h, 7d)"
        ))
    })
}

/// Returns the instant that long ago; days are written as `30d`.
fn parse_age(text: &str) -> Option<Timestamp> {
    let age = match text.trim().strip_suffix('d') {
        Some(days) => {
            std::time::Duration::try_from_secs_f64(days.parse::<f64>().ok()? * 86_400.0).ok()?
        }
        None => weir_model::quantity::parse_duration(text).ok()?,
    };
    Timestamp::now().checked_sub(jiff::SignedDuration::try_from(age).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_an_instant_or_an_age() {
        for (text, is_time) in [
            ("2026-11-30", true),
            ("2026-11-30T08:00:00Z", true),
            ("7d", true),
            ("0.5d", true),
            ("12h", true),
            ("yesterday", false),
            ("-3d", false),
            ("1e99d", false),
            ("2026-13-01", false),
        ] {
            assert_eq!(parse_since(text).is_ok(), is_time, "{text}");
        }
        assert!(parse_age("2d") < parse_age("1d"));
    }
}
