//! Commands to go on with after a run, each with its purpose: they can be pasted.

use weir_analysis::findings::{Findings, Verdict};
use weir_host::journal::quoted;
use weir_model::record::Outcome;
use weir_record::Run;

use super::patch::choice::best_arm;

/// After a run, whose own messages say how an interrupted one goes on.
pub(crate) fn of_run(run: &Run, findings: &Findings) -> Vec<(String, String)> {
    let all = (
        format!("weir report {} --full", folder(run)),
        "the whole report on this terminal".to_owned(),
    );
    patch(run, findings).into_iter().chain([all]).collect()
}

/// After a look at the report of a run, which may have been cut short.
pub(crate) fn of_report(run: &Run, findings: &Findings) -> Vec<(String, String)> {
    let resume = (run.outcome() != Some(Outcome::Complete)).then(|| {
        let command = format!("weir {} --resume {}", subcommand(run), folder(run));
        (command, "goes on with the run".to_owned())
    });
    resume.into_iter().chain(of_run(run, findings)).collect()
}

/// Subcommand of weir that made the run: only `weir capacity` asks servers by their URL.
fn subcommand(run: &Run) -> &'static str {
    let study = &run.header.study;
    let mut external = study
        .arms
        .iter()
        .filter_map(|arm| study.proxy_of(arm).external.as_ref());
    if external.any(|external| external.named.is_some()) {
        "capacity"
    } else {
        "run"
    }
}

/// The run's folder as a word of the shell.
fn folder(run: &Run) -> String {
    quoted(&run.dir.display().to_string()).into_owned()
}

/// Prints what the best arm changes; `None` where no arm is better, or weir has nothing to print of it.
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
