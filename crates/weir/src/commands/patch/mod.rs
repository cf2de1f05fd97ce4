//! `weir patch`: an arm's changes, as a diff of the user's own configuration.
//!
//! Nothing is applied: a person reads the diff, and decides. If weir wrote the configuration itself, the user has no
//! file to compare, and the changed directives are printed instead.

pub(crate) mod choice;
mod commands;
mod controller;
mod directives;
mod kubectl;

use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use weir_model::record::Record;
use weir_model::study::{Arm, ProxyKind, Study, is_arm_name};
use weir_parameters::{Catalog, Parameter};
use weir_record::Run;
use weir_report::secrets::masked;

use self::choice::Choice;
use crate::args::PatchArgs;
use crate::commands::report;
use crate::failure::Failure;
use crate::terminal;

pub(crate) fn run(args: &PatchArgs) -> Result<ExitCode, Failure> {
    let run = report::read(&args.run)?;
    let findings = weir_analysis::analyze(&run);
    let study = &run.header.study;
    let choice = match &args.arm {
        Some(name) => Choice::named(study, &findings, name)?,
        None => Choice::best(study, &findings)?,
    };
    let proxy = study.proxy_of(choice.arm);
    if proxy.kind == ProxyKind::External {
        return Err(Failure::failed(format!(
            "{} is a proxy that weir did not start, and it changed nothing in it",
            choice.arm.name
        )));
    }
    let catalog = read_catalog(&run, choice.arm)?;
    if controller::print(&run, &catalog, &choice, args)? {
        return Ok(ExitCode::SUCCESS);
    }
    if args.values.is_some() {
        return Err(Failure::input(
            "--values is for a run whose proxy has a controller in a cluster",
        ));
    }
    match &proxy.configuration {
        Some(own) => print_own_diff(&run, &choice, args.revert, &own.file)?,
        None => print_written_diff(study, &catalog, &choice, args.revert)?,
    }
    tell(&beside(study, &catalog, choice.arm));
    Ok(ExitCode::SUCCESS)
}

/// Returns the catalog of the run, with the defaults of the version that the arm ran.
fn read_catalog(run: &Run, arm: &Arm) -> Result<Catalog, Failure> {
    let mut rows = run.header.rows.iter();
    let catalog = rows
        .try_fold(Catalog::builtin(), |catalog, (file, text)| catalog.with_rows(file, text))
        .map_err(Failure::failed)?;
    let program = run.records.iter().find_map(|record| match record {
        Record::Proxy(proxy) if proxy.arm == arm.name => Some(&*proxy.program),
        _ => None,
    });
    let kind = run.header.study.proxy_of(arm).kind;
    Ok(match program {
        Some(program) if !program.is_empty() => catalog.for_proxy(kind, program),
        _ => catalog,
    })
}

/// Refuses a run that others could have written: its patch is meant to be applied to a system.
fn must_be_ours(run: &Run) -> Result<(), Failure> {
    weir_files::only_ours_named(&run.dir).map_err(|why| {
        Failure::input(format!("others could have written this patch: {why}"))
            .hint("move the run to a folder of yours that nobody else may write to (chmod go-w), if you trust it")
    })
}

/// Prints the diff that the lab kept, and the command to apply it.
fn print_own_diff(
    run: &Run,
    choice: &Choice<'_>,
    revert: bool,
    file: &Path,
) -> Result<(), Failure> {
    let arm = &choice.arm.name;
    let name = if revert { weir_lab::REVERT } else { weir_lab::PATCH };
    if !is_arm_name(arm) {
        return Err(Failure::input(format!("`{arm}` is not a valid name for an arm")));
    }
    must_be_ours(run)?;
    let path = run.dir.join("arms").join(arm).join(name);
    let diff = weir_files::read_text(&path)
        .and_then(|diff| String::from_utf8(diff).map_err(io::Error::other))
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::failed(format!(
                "{} is not there: the run has not started the arm {arm}",
                path.display()
            ))
            .hint("`weir run --resume` goes on with a run that was stopped"),
            _ => Failure::failed(format!("cannot read {}: {error}", path.display())),
        })?;
    tell(&[format!("{arm}: {}", choice.verdict)]);
    if diff.is_empty() {
        tell(&[format!("{arm} changes nothing in {}: there is nothing to apply", file.display())]);
        return Ok(());
    }
    show(&diff)?;
    let effect = if revert { "takes it back" } else { "applies it" };
    tell(&[
        format!(
            "`patch -d / -p1 < FILE` {effect}, with this output in FILE; --dry-run first shows whether it fits"
        ),
        format!(
            "the diff is of {} and the files that it includes, as they were when the run began",
            file.display()
        ),
    ]);
    Ok(())
}

/// Prints a diff. A terminal shows it without the secrets in the lines around a change, which somebody may see over a
/// shoulder; any other output gets it whole, since it may be applied.
fn show(diff: &str) -> Result<(), Failure> {
    if !terminal::is_on_stdout() {
        return terminal::print_as_it_is(diff);
    }
    let shown = masked(diff);
    terminal::print(&shown)?;
    if shown != diff {
        tell(&[
            "secrets are masked here; `weir patch … > FILE` writes what can be applied".to_owned()
        ]);
    }
    Ok(())
}

/// Prints the changed directives of a configuration that weir wrote.
fn print_written_diff(
    study: &Study,
    catalog: &Catalog,
    choice: &Choice<'_>,
    revert: bool,
) -> Result<(), Failure> {
    let (arm, kind) = (choice.arm, study.proxy_of(choice.arm).kind);
    tell(&[
        format!("{}: {}", arm.name, choice.verdict),
        format!("this run has no configuration of yours: weir wrote the one of {}", arm.name),
    ]);
    if revert && arm.proxy.is_some() {
        tell(&["it is another proxy than the baseline: there is nothing to go back to".to_owned()]);
        return Ok(());
    }
    let lines = directives::lines(study, catalog, arm, revert);
    if lines.is_empty() {
        let no = if arm.changes.is_empty() {
            "it changes no setting"
        } else {
            "what it changes is no part of the configuration"
        };
        tell(&[no.to_owned()]);
        return Ok(());
    }
    let content = match (revert, &arm.proxy) {
        (true, _) => "the same directives as the baseline has them",
        (false, None) => "the directives that it changes, to be copied by hand",
        (false, Some(_)) => "the directives that the study sets, to be copied by hand",
    };
    let remark = format!("{content}, each with its place in a configuration of {}:", kind.title());
    tell(&[remark]);
    if lines.iter().any(|line| line.contains("{logs}")) {
        tell(&["{logs} stands for the folder of its logs".to_owned()]);
    }
    terminal::print(&(lines.join("\n") + "\n"))
}

/// Lists an arm's settings outside its configuration, which a diff cannot contain. Settings that are the baseline's are
/// left out, unless the arm has another proxy.
fn beside(study: &Study, catalog: &Catalog, arm: &Arm) -> Vec<String> {
    let proxy = study.proxy_of(arm);
    let base = study.arms.first().filter(|_| arm.proxy.is_none()).map(|arm| &arm.settings);
    let elsewhere = arm.settings.iter().filter(|(id, level)| {
        let row = catalog.get(proxy.kind, id);
        let is_printed = row.is_none_or(|row| match proxy.configuration {
            Some(_) => is_in_file(row),
            None => row.scope.is_configuration(),
        });
        let is_baselines = base.and_then(|base| base.get(*id)) == Some(*level);
        !is_printed && !is_baselines
    });
    let elsewhere: Vec<String> = elsewhere.map(|(id, level)| format!("{id} = {level}")).collect();
    if elsewhere.is_empty() {
        Vec::new()
    } else {
        vec![format!("the arm also has, outside of configuration files: {}", elsewhere.join(", "))]
    }
}

/// Returns true if a parameter is written to a file, not only to the program's arguments or environment.
fn is_in_file(row: &Parameter) -> bool {
    let mut contexts = row.writes.iter().map(|write| write.context.name());
    row.scope.is_configuration() && contexts.any(|it| !matches!(it, "arguments" | "environment"))
}

fn tell(lines: &[String]) {
    for line in lines {
        terminal::tell(&format!("{line}\n"));
    }
}
