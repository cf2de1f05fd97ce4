//! Runs the studies that try recommendations, one after the other, and judges what they found.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weir_advice::{
    AdviceFinding, AdviceFindings, ArmResult, Installed, Recommendation, Standing, TrialRun,
    Untried, judge,
};
use weir_analysis::findings::Findings;
use weir_hosts::Options;
use weir_model::record::Outcome;
use weir_record::{HEADER_FILE, Run};

use super::plan::{Plan, PlannedStudy, Work};
use crate::args::ProgressArgs;
use crate::commands::{report, run, time};
use crate::failure::Failure;
use crate::progress::Reporter;
use crate::progress::phrases::whole_seconds;
use crate::terminal;

/// A run with its findings, or the reason why there is none.
enum TrialEnd {
    Measured(Box<(Run, Findings)>),
    Refused(String),
    /// An arm broke the run.
    Broken {
        arm: String,
        why: String,
    },
    /// The user stopped it before anything was measured.
    Stopped,
}

impl TrialEnd {
    /// Returns true if everything was measured that can be.
    fn is_complete(&self) -> bool {
        match self {
            TrialEnd::Measured(measured) => measured.1.complete,
            TrialEnd::Refused(_) | TrialEnd::Broken { .. } => true,
            TrialEnd::Stopped => false,
        }
    }
}

/// Runs all studies, and returns what was found, and whether the user has stopped it.
pub(super) fn carry_out(
    folder: &Path,
    mut plan: Plan,
    mut work: Work,
    options: &Options,
    progress: &ProgressArgs,
) -> Result<(AdviceFindings, bool), Failure> {
    let is_quiet = progress.is_quiet();
    plan.write(folder)?;
    let mut ends: Vec<TrialEnd> = Vec::new();
    let mut time_left = work.budget.saturating_sub(Duration::from_secs_f64(plan.took_s));
    let count = work.studies.len();
    for index in 0..count {
        if is_stopped(options) {
            ends.push(TrialEnd::Stopped);
            continue;
        }
        let budget = share(time_left, &work.studies[index..]);
        let planned = &mut work.studies[index];
        if !is_quiet {
            terminal::tell(&format!(
                "weir: run {} of {count}: {}, {}; changes: {}; up to {}\n",
                index + 1,
                planned.trial.kind.name(),
                planned.title,
                planned.trial.arms.len(),
                weir_report::number::length(whole_seconds(budget))
            ));
        }
        let begun = Instant::now();
        ends.push(run_without_broken(folder, &mut plan, (planned, budget), options, progress)?);
        time_left = time_left.saturating_sub(begun.elapsed());
        plan.took_s += begun.elapsed().as_secs_f64();
        plan.write(folder)?;
    }
    Ok((conclude(folder, &plan, &work, &ends), is_stopped(options)))
}

fn is_stopped(options: &Options) -> bool {
    options.stop.load(Ordering::Relaxed)
}

/// Returns the share of the first of the remaining studies in the time that is left: by what studies usually take, and
/// no less than each needs.
fn share(left: Duration, remaining: &[PlannedStudy]) -> Duration {
    let Some(planned) = remaining.first() else {
        return left;
    };
    let needed: Duration = remaining.iter().map(|planned| planned.least).sum();
    let usual: Duration = remaining.iter().map(|planned| planned.usual).sum();
    let spare = left.saturating_sub(needed);
    planned.least + spare.mul_f64(planned.usual.as_secs_f64() / usual.as_secs_f64())
}

/// Runs a study, and again without an arm that broke it.
fn run_without_broken(
    folder: &Path,
    plan: &mut Plan,
    (planned, budget): (&mut PlannedStudy, Duration),
    options: &Options,
    progress: &ProgressArgs,
) -> Result<TrialEnd, Failure> {
    loop {
        let (arm, why) = match run_study(folder, planned, budget, options, progress)? {
            TrialEnd::Broken { arm, why } => (arm, why),
            end => return Ok(end),
        };
        terminal::tell(&format!("weir: without {arm}: {why}\n"));
        let mut trial = planned.trial.clone();
        for broken in trial.arms.iter().filter(|one| one.name == arm) {
            plan.broken.extend(broken.ids.iter().map(|id| (id.clone(), why.clone())));
        }
        trial.arms.retain(|one| one.name != arm);
        plan.write(folder)?;
        let begun = folder.join(&trial.name);
        let aside = folder.join(format!("{}-with-{arm}", trial.name));
        if begun.exists() {
            std::fs::rename(&begun, &aside).map_err(|error| {
                Failure::failed(format!("cannot rename {}: {error}", begun.display()))
            })?;
        }
        if trial.arms.is_empty() {
            return Ok(TrialEnd::Refused(why));
        }
        *planned = plan.plan_study(trial, options)?;
    }
}

/// Runs a study, goes on with an interrupted run of it, or reads one that is complete.
fn run_study(
    folder: &Path,
    planned: &PlannedStudy,
    budget: Duration,
    options: &Options,
    progress: &ProgressArgs,
) -> Result<TrialEnd, Failure> {
    let options = Options { folder: folder.join(&planned.trial.name), ..options.clone() };
    let is_begun = options.folder.join(HEADER_FILE).exists();
    let is_complete =
        is_begun && report::read(&options.folder)?.outcome() == Some(Outcome::Complete);
    if !is_complete {
        let mut read = planned.read.clone();
        read.study.budget = Some(budget);
        time::fit(&mut read.study, false)?;
        let reporter = Reporter::shown(progress)?;
        let begun = (!is_begun).then_some(&read);
        match run::carry_out(&options, begun, reporter) {
            Err(_) if is_stopped(&options) && !options.folder.join(HEADER_FILE).exists() => {
                return Ok(TrialEnd::Stopped);
            }
            // What goes wrong with one run does not take the others away.
            Err(error) if !is_stopped(&options) => {
                let changes = &planned.trial.arms;
                let broken =
                    error.broken_arm().filter(|arm| changes.iter().any(|one| one.name == *arm));
                let why = error.to_string().lines().collect::<Vec<_>>().join(" ");
                return Ok(match broken {
                    Some(arm) => TrialEnd::Broken { arm: arm.to_owned(), why },
                    None => TrialEnd::Refused(why),
                });
            }
            _ => {}
        }
    }
    let run = report::read(&options.folder)?;
    let findings = weir_analysis::analyze(&run);
    report::keep_all(&run, &findings)?;
    Ok(TrialEnd::Measured(Box::new((run, findings))))
}

/// Judges each recommendation by the run that tried it.
fn conclude(folder: &Path, plan: &Plan, work: &Work, ends: &[TrialEnd]) -> AdviceFindings {
    let mut runs = Vec::new();
    let mut by_id: BTreeMap<&str, AdviceFinding> = BTreeMap::new();
    for (planned, end) in work.studies.iter().zip(ends) {
        for arm in &planned.trial.arms {
            let of_arm = work.recommendations.iter().filter(|(one, _)| arm.ids.contains(&one.id));
            let judged = of_arm.map(|(advice, _)| {
                let mut finding = judge_end(advice, &arm.name, end, &work.installed);
                let is_measured = matches!(end, TrialEnd::Measured(_));
                finding.arm = is_measured.then(|| (runs.len(), arm.name.clone()));
                (&*advice.id, finding)
            });
            by_id.extend(judged);
        }
        if let TrialEnd::Measured(measured) = end {
            runs.push(describe_run(folder, planned, &measured.1));
        }
    }
    let findings = work.recommendations.iter().map(|(advice, standing)| {
        let broken = plan.broken.get(&advice.id).cloned();
        let standing =
            broken.map_or_else(|| standing.clone(), |why| Standing::Untried(Untried::Refused(why)));
        let tried = by_id.remove(&*advice.id);
        tried.unwrap_or_else(|| judge(advice, &standing, None, &work.installed))
    });
    AdviceFindings {
        started_at: plan.started_at.clone(),
        took_s: plan.took_s,
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        kernel: work.installed.kernel.clone(),
        programs: work.installed.programs.clone(),
        configuration: plan.configuration.as_ref().map(|file| file.display().to_string()),
        complete: ends.iter().all(TrialEnd::is_complete),
        found: findings.collect(),
        runs,
    }
}

/// Judges a recommendation by the end of the run that tried it.
fn judge_end(
    advice: &Recommendation,
    arm: &str,
    end: &TrialEnd,
    installed: &Installed,
) -> AdviceFinding {
    match end {
        TrialEnd::Measured(measured) => {
            let (run, findings) = &**measured;
            let result = ArmResult::read(run, findings, arm, advice.metric);
            judge(advice, &Standing::Applies, Some(&result), installed)
        }
        TrialEnd::Refused(why) | TrialEnd::Broken { why, .. } => {
            judge(advice, &Standing::Untried(Untried::Refused(why.clone())), None, installed)
        }
        TrialEnd::Stopped => {
            judge(advice, &Standing::Untried(Untried::NotReached), None, installed)
        }
    }
}

fn describe_run(folder: &Path, planned: &PlannedStudy, findings: &Findings) -> TrialRun {
    let unchanged = planned.read.study.arms.first().map_or("", |arm| &arm.name);
    let limiter = findings.limiters.iter().find(|found| found.arm == unchanged);
    TrialRun {
        name: planned.trial.name.clone(),
        folder: folder.join(&planned.trial.name).display().to_string(),
        title: planned.title.clone(),
        limiter: limiter
            .and_then(|found| found.judgement.findings.first())
            .map(|finding| finding.limiter.clone()),
    }
}
