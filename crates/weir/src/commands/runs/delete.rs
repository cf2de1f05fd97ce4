//! `weir runs delete`.

use std::io::{IsTerminal as _, stdin};
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use weir_host::journal::{self, Journal};
use weir_model::foreign::in_a_line;
use weir_notebook::{Refusal, Removable, check_removal, remove};
use weir_report::number;

use super::{find_run, parse_age};
use crate::args::{self, DeleteArgs};
use crate::failure::Failure;
use crate::terminal;

pub(super) fn run(args: &DeleteArgs) -> Result<ExitCode, Failure> {
    let before = args.older_than.as_deref().map(parse_older_than).transpose()?;
    let (runs, refused) = check(args, before);
    let failure = Failure::all(refused);
    if runs.is_empty() {
        return match failure {
            Some(failure) => Err(failure),
            None => {
                terminal::print("No run is that old; nothing was removed.\n")?;
                Ok(ExitCode::SUCCESS)
            }
        };
    }
    // Nothing is removed if a part of what was named cannot be.
    if let Some(failure) = failure {
        return Err(failure.hint("nothing was removed; leave these out"));
    }
    for run in &runs {
        terminal::print(&describe(run))?;
    }
    if args.dry_run {
        terminal::print("Nothing was removed (--dry-run).\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !is_agreed(runs.len())? {
        terminal::print("Nothing was removed.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let failures = runs.iter().filter_map(|run| {
        let error = remove(run).err()?;
        Some(Failure::failed(format!("cannot remove {}: {error}", run.entry.path.display())))
    });
    if let Some(failure) = Failure::all(failures.collect::<Vec<_>>()) {
        return Err(failure);
    }
    terminal::print(&format!("Removed {}.\n", number::plural(runs.len() as u64, "run")))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks the runs that began before an instant, and returns those that may be removed and the reasons against others.
fn check(args: &DeleteArgs, before: Option<Timestamp>) -> (Vec<Removable>, Vec<Failure>) {
    let awaits_restore = has_unrestored();
    let (mut runs, mut refused) = (Vec::new(), Vec::new());
    for named in &args.runs {
        let path = find_run(named);
        match check_removal(&path, args::version(), awaits_restore) {
            Ok(run) if is_before(&run, before) => runs.push(run),
            Ok(_) => {}
            Err(why) => refused.push(refuse(&path, &why)),
        }
    }
    (runs, refused)
}

fn refuse(path: &Path, why: &Refusal) -> Failure {
    Failure::input(format!("{} is not removed: {why}", path.display()))
}

/// Returns true if settings or objects of a cluster wait to be restored, or nobody can tell.
fn has_unrestored() -> bool {
    let folder = Journal::default_folder();
    let settings = journal::pending(&folder)
        .map_or(true, |pending| pending.settings.iter().any(|one| !is_settled(&one.outcome)));
    settings || !weir_objects::left_by_the_dead(&folder).is_empty()
}

fn is_settled(outcome: &journal::Outcome) -> bool {
    use journal::Outcome::{Already, Gone, OtherBoot};
    matches!(outcome, Already | Gone | OtherBoot)
}

fn parse_older_than(text: &str) -> Result<Timestamp, Failure> {
    parse_age(text).ok_or_else(|| {
        Failure::input(format!("--older-than: `{text}` is no age such as 30d or 12h"))
    })
}

/// Returns true if a run began before an instant; false if nobody knows when it began.
fn is_before(run: &Removable, instant: Option<Timestamp>) -> bool {
    let began = run.entry.started_at.parse::<Timestamp>();
    instant.is_none_or(|instant| began.is_ok_and(|began| began < instant))
}

fn describe(run: &Removable) -> String {
    let entry = &run.entry;
    format!(
        "{}  {}  {}  {}\n",
        in_a_line(&entry.path.display().to_string()),
        in_a_line(&entry.started_at),
        in_a_line(&entry.study),
        number::bytes(entry.size_bytes)
    )
}

/// Asks the user at the terminal.
fn is_agreed(count: usize) -> Result<bool, Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::input("nobody can be asked: standard input is no terminal")
            .hint("--yes removes them without a question, --dry-run shows them"));
    }
    terminal::tell(&format!("Remove {}? [y/N] ", number::plural(count as u64, "run")));
    let mut answer = String::new();
    stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::failed(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
