//! Commands to continue with after a run, each with its purpose. They can be pasted into a shell.

use weir_analysis::findings::{Findings, Verdict};
use weir_host::journal::quoted;
use weir_model::record::Outcome;
use weir_record::Run;

use super::patch::choice::best_arm;

/// Returns the commands after a run. A message of the run itself says how to continue an interrupted one.
pub(crate) fn of_run(run: &Run, findings: &Findings) -> Vec<(String, String)> {
    let all = (
        format!("weir report {} --full", folder(run)),
        "the whole report on this terminal".to_owned(),
    );
    patch(run, findings).into_iter().chain([all]).collect()
}

/// Returns the commands after the report of a run, which may have been interrupted.
pub(crate) fn of_report(run: &Run, findings: &Findings) -> Vec<(String, String)> {
    let resume = (run.outcome() != Some(Outcome::Complete)).then(|| {
        let command = format!("weir {} --resume {}", subcommand(run), folder(run));
        (command, "goes on with the run".to_owned())
    });
    resume.into_iter().chain(of_run(run, findings)).collect()
}

/// Returns the subcommand of weir that goes on with the run: only `weir capacity` makes a search of a server's URL.
fn subcommand(run: &Run) -> &'static str {
    let study = &run.header.study;
    if study.capacity.is_empty() {
        return "run";
    }
    let mut external = study.arms.iter().filter_map(|arm| study.proxy_of(arm).external.as_ref());
    if external.any(|external| external.named.is_some()) { "capacity" } else { "run" }
}

/// Returns the run's folder, quoted for the shell.
fn folder(run: &Run) -> String {
    quoted(&run.dir.display().to_string()).into_owned()
}

/// Returns the command that prints the changes of the best arm; `None` if no arm is better, or weir has no changes of
/// it to print.
fn patch(run: &Run, findings: &Findings) -> Option<(String, String)> {
    let study = &run.header.study;
    let Some(found) = &findings.capacity else {
        let best = best_arm(study, findings)?;
        let command = format!("weir patch {}", folder(run));
        return Some((command, format!("what {best} changes")));
    };
    let better = found.ratios.iter().filter(|ratio| {
        let arm = study.arms.iter().find(|arm| arm.name == ratio.arm);
        let is_started = arm.is_some_and(|arm| study.proxy_of(arm).is_started());
        is_started && ratio.verdict == Verdict::Better
    });
    let best = better.max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    let command = format!("weir patch {} --arm {}", folder(run), quoted(&best.arm));
    Some((command, format!("what {} changes", best.arm)))
}
