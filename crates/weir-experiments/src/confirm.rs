//! Confirmation of limiters: the limiter of an arm is changed in a paired trial of its own; the effect is the proof.
//!
//! The trial is a run of a study that is made from the arm: the arm as it is, the same again, and an arm for each
//! parameter that the finding names. It keeps the arm's own load if that leaves requests unanswered or late, or comes
//! in bursts: its queues and failures need not appear under another load. Otherwise the load is a closed loop of the
//! same connections.
//!
//! A resource without a parameter, CPU time above all, is taken away instead: an arm has the same CPUs, and a quarter
//! less of their time while it has the load. If that resource is the limit, the arm carries about a quarter less. The
//! trial goes to a folder within the run's own, and its result is a record of the run, so that the run's report is made
//! from its folder as before.

use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_analysis::findings::{Comparison, Findings, LimiterFindings, LoadFindings, Verdict};
use weir_hosts::Options;
use weir_lab::Summary;
use weir_limits::{Finding, Role, Rules, TurnDirection};
use weir_model::record::{ConfirmationRecord, Observation, Record, SearchStage};
use weir_model::study::{
    Arm, ArmRole, LoadSpec, Metric, ProxyKind, Reduction, Settings, Study, TakenFrom,
};
use weir_parameters::{Scope, Severity, Unsaid};
use weir_record::{RecordError, Run, RunWriter};
use weir_sentences::limiter::limiter_name;
use weir_study::Confirmation;

/// Most parameters to change, each in an arm of its own.
const TURNED: usize = 2;
/// Share that is taken away, per cent: more than noise, and not so much that something else becomes the limit.
const TAKEN: u32 = 25;
/// Least number of response times per slice: a fifth of a slice is not measured, and some responses take twice as long.
const RESPONSES: f64 = 10.0;
/// Longest time of a trial: it ends as soon as it is decided.
pub const LENGTH: Duration = Duration::from_secs(30);
/// Longest time of a trial for a limit that only appears in a long one: twice as long as the kernel remembers ended
/// connections.
pub const LONG: Duration = Duration::from_secs(120);
/// Least number of blocks in such a trial: the exact test of two parameters needs as many.
const BLOCKS: u32 = 8;
/// Mean response time, seconds, above which slices are so long that a short trial has too few of them.
const LATE_S: f64 = 0.05;
/// Name of the quantity for the time that a response takes.
const SERVICE_TIME: &str = "service_time";

/// Reason why limiters could not be confirmed.
#[derive(Debug)]
pub enum ConfirmError<E> {
    /// A trial could not be made, or not to its end.
    Trial(E),
    /// The run's folder, or a trial's, cannot be read or written.
    Record(RecordError),
}

impl<E> From<RecordError> for ConfirmError<E> {
    fn from(error: RecordError) -> ConfirmError<E> {
        ConfirmError::Record(error)
    }
}

/// End of a trial.
#[derive(Debug)]
pub enum TrialEnd {
    /// It was carried out, to its end or until it was interrupted.
    Carried(Summary),
    /// The arms could not be started, or could not be sent requests; the text says why.
    Refused(String),
}

/// Carries out trials, and is told of each before it begins.
pub trait TrialRunner {
    /// Reason why a trial could not be made, or not to its end.
    type Error;

    /// Announces the trial that confirms what limits an arm.
    fn announce(&mut self, arm: &str, study: &Study);

    /// Carries a study out in the folder of `options`. `text` stands in the folder in place of a study file.
    ///
    /// # Errors
    /// Something broke. That the arms are refused is a [`TrialEnd`].
    fn run(
        &mut self,
        study: &Study,
        text: &str,
        options: &Options,
    ) -> Result<TrialEnd, Self::Error>;
}

/// Confirms the limiter of each arm of a run that none of its records is about, and appends the results to its records.
/// `options` are those of the run.
///
/// # Errors
/// A trial could not be made, or a record cannot be written. A trial that is refused is a result.
pub fn run_confirmations<R: TrialRunner>(
    run: &Run,
    findings: &Findings,
    options: &Options,
    runner: &mut R,
) -> Result<(), ConfirmError<R::Error>> {
    for (found, number) in findings.limiters.iter().zip(1..) {
        let first = found.judgement.findings.first();
        let Some(first) = first.filter(|_| found.confirmations.is_empty()) else {
            continue;
        };
        let trial = Trial { run, found, first, options };
        let records = trial.carry_out(&free_name(run, number), runner)?;
        if options.stop.load(Ordering::Relaxed) {
            break;
        }
        let (mut writer, _) = RunWriter::resume(&run.dir)?;
        for record in records {
            writer.append(&Record::Confirmation(record))?;
        }
    }
    Ok(())
}

/// Returns the name of a new folder within the run's own. An interrupted attempt may have left earlier ones.
fn free_name(run: &Run, number: usize) -> String {
    let first = format!("confirm-{number}");
    let retries = (2..).map(|again| format!("confirm-{number}-{again}"));
    let mut names = std::iter::once(first).chain(retries);
    names.find(|name| !run.dir.join(name).exists()).unwrap_or_default()
}

/// Returns the comparison that decides about an arm. It is the rate if that is compared, unless the limit mainly makes
/// answers late; otherwise the p99 if there are requests enough for it, or the p50.
fn find_decision<'a>(load: &'a LoadFindings, arm: &str, is_late: bool) -> Option<&'a Comparison> {
    let p99 = load.comparison(arm, Metric::ResponseP99).filter(|comparison| comparison.n >= BLOCKS);
    let rate = load.comparison(arm, Metric::Rate);
    let preferred = if is_late { p99.or(rate) } else { rate.or(p99) };
    preferred.or_else(|| load.comparison(arm, Metric::ResponseP50))
}

/// Returns true if the ratio and its interval are finite, so that JSON can hold them.
fn is_finite(found: &Comparison) -> bool {
    let (low, high) = found.interval;
    [found.ratio, low, high].into_iter().all(f64::is_finite)
}

/// A trial that confirms the limiter of one arm.
struct Trial<'r> {
    run: &'r Run,
    found: &'r LimiterFindings,
    first: &'r Finding,
    options: &'r Options,
}

impl Trial<'_> {
    fn nothing(&self, why: String) -> ConfirmationRecord {
        ConfirmationRecord {
            arm: self.found.arm.clone(),
            load: self.found.load.clone(),
            limiter: self.first.limiter.clone(),
            turned: Settings::new(),
            taken: None,
            metric: Metric::Rate,
            ratio: None,
            confirmed: false,
            why_not: why,
            run: String::new(),
        }
    }

    /// Makes the study of the arm against itself with each parameter changed; an error says why there is nothing to
    /// change.
    fn study(&self) -> Result<Study, String> {
        let study = &self.run.header.study;
        let arm = study.arms.iter().find(|arm| arm.name == self.found.arm);
        let load = study.loads.iter().find(|load| load.name == self.found.load);
        let (Some(arm), Some(load)) = (arm, load) else {
            return Err("the study has no such arm".to_owned());
        };
        let kind = study.proxy_of(arm).kind;
        if kind == ProxyKind::External {
            return Err("weir did not start the proxy and cannot change it".to_owned());
        }
        let changes = match self.first.role {
            Role::Proxy => self.choose_turns(arm, kind),
            Role::Generator | Role::Origin => Vec::new(),
        };
        let reduction = self.choose_resource();
        if changes.is_empty() && reduction.is_none() {
            return Err(
                "none of its parameters can be changed any further here, and it has no resource that can be taken away"
                    .to_owned(),
            );
        }
        let keeps_load = reduction.is_none() && self.shows_only_here(load);
        let length = self.length(keeps_load);
        let confirmation = Confirmation {
            study,
            arm,
            load,
            question: format!("Does {} limit {}?", limiter_name(&self.first.limiter), arm.name),
            changes,
            taken: reduction,
            keeps_load,
            metric: if self.is_late() { Metric::ResponseP99 } else { Metric::Rate },
            length,
            least_slice: Duration::ZERO,
            least_blocks: BLOCKS,
        };
        // Arrivals that change begin anew in every slice, so slices of another length would have others.
        let is_longer = reduction.is_some() || keeps_load && !load.main.changes();
        let least_slice =
            if is_longer { self.slice(confirmation.arms(), length) } else { Duration::ZERO };
        Ok(Confirmation { least_slice, ..confirmation }.study())
    }

    /// Returns true if the arm's own load shows the limit and a closed loop need not: the load demands more than is
    /// answered in time, or comes in bursts, which a closed loop of the same connections has only at its start.
    fn shows_only_here(&self, load: &LoadSpec) -> bool {
        let stretch = &self.found.stretch;
        let shows = stretch.saturated || load.main.changes();
        load.is_open() && shows && stretch.stage.is_none()
    }

    /// Returns true if the limit makes answers late, and hardly any missing.
    fn is_late(&self) -> bool {
        Rules::builtin().is_late(&self.first.limiter)
    }

    /// Returns the longest time of the trial. `keeps`: the arm's own load is kept.
    fn length(&self, keeps: bool) -> Duration {
        let builds_up = self.found.stretch.stage == Some(SearchStage::Hold);
        if builds_up || self.is_late() || keeps && self.service_s() > LATE_S {
            LONG
        } else {
            LENGTH
        }
    }

    /// Mean time that a response took, seconds.
    fn service_s(&self) -> f64 {
        let response = self.found.evidence.quantities.get(SERVICE_TIME);
        response.map_or(0.0, |response| response.value)
    }

    /// Returns the length of a slice, as far as there is time for it. Requests in flight at the end of an arm's slice
    /// are answered in the first part of the next slice, which is not measured.
    fn slice(&self, arms: usize, length: Duration) -> Duration {
        // Each arm has two slices in each block.
        let slices = 2 * arms as u32 * BLOCKS;
        let most = length / slices;
        Duration::from_secs_f64((RESPONSES * self.service_s()).clamp(0.0, most.as_secs_f64()))
    }

    /// Returns the resource to take away: CPU time of the role that the limiter is about. `None` if the limiter has no
    /// such resource.
    fn choose_resource(&self) -> Option<Reduction> {
        let from = match self.first.role {
            Role::Generator => TakenFrom::Generator,
            Role::Proxy => TakenFrom::Proxy,
            Role::Origin => TakenFrom::Origin,
        };
        let is_taken = Rules::builtin().takes_away(&self.first.limiter);
        is_taken.then_some(Reduction { from, percent: TAKEN })
    }

    /// Returns the changes to try, each a parameter by itself with its new level. Changes that conflict with the arm's
    /// other settings are left out, and so are settings of the whole host unless they are allowed.
    fn choose_turns(&self, arm: &Arm, kind: ProxyKind) -> Vec<Settings> {
        let catalog = &self.options.catalog;
        let newest = self.run.records.iter().rev().find_map(|record| match record {
            Record::Proxy(proxy) if proxy.arm == arm.name => Some(&proxy.effective),
            _ => None,
        });
        let all = catalog.complete_arm(kind, &arm.settings);
        let turns = self.first.turn.iter().zip(&self.first.ways);
        let turned = turns.filter_map(|(id, way)| {
            let row = catalog.get(kind, id)?;
            if row.scope == Scope::KernelHost && !self.options.allow_host_settings {
                return None;
            }
            let now = newest.and_then(|read| read.get(id)).or(all.get(id))?;
            // One step, or two.
            let further = |up| {
                let once = row.level.further(now, up)?;
                let twice = self.is_late().then(|| row.level.further(&once, up));
                Some(twice.flatten().unwrap_or(once))
            };
            let level = match way {
                TurnDirection::Up => further(true)?,
                TurnDirection::Down => further(false)?,
                TurnDirection::To(level) => row.check(level).ok()?,
                TurnDirection::Either => return None,
            };
            let mut settings = arm.settings.clone();
            settings.insert(id.clone(), level.clone());
            let role = &self.run.header.study.proxy.role;
            let conflicts = catalog.conflicts(
                kind,
                &settings,
                role,
                Unsaid::Defaults { descriptor_limit: u64::MAX },
            );
            let is_fit = conflicts.iter().all(|conflict| conflict.severity != Severity::Error);
            is_fit.then(|| Settings::from([(id.clone(), level)]))
        });
        turned.take(TURNED).collect()
    }

    /// Carries the study out in a folder within the run's own, and returns a record of the result for each change.
    fn carry_out<R: TrialRunner>(
        &self,
        name: &str,
        runner: &mut R,
    ) -> Result<Vec<ConfirmationRecord>, ConfirmError<R::Error>> {
        let study = match self.study() {
            Err(why) => return Ok(vec![self.nothing(why)]),
            Ok(study) => study,
        };
        runner.announce(&self.found.arm, &study);
        let text = format!("# {}\n", study.question);
        let options = Options {
            folder: self.run.dir.join(name),
            samples: None,
            where_time_goes: false,
            ..self.options.clone()
        };
        let end = runner.run(&study, &text, &options).map_err(ConfirmError::Trial)?;
        let summary = match end {
            TrialEnd::Carried(summary) => summary,
            TrialEnd::Refused(why) => return Ok(vec![self.nothing(why)]),
        };
        let findings = weir_analysis::analyze(&Run::read(&summary.folder)?);
        let arms = study.arms.iter().filter(|arm| arm.role == ArmRole::Change);
        let records = arms.map(|arm| self.judge(arm, &findings, name));
        Ok(records.collect())
    }

    /// Returns the record of what a change has proven.
    fn judge(&self, arm: &Arm, findings: &Findings, name: &str) -> ConfirmationRecord {
        let mut comparisons = findings.loads.iter().filter_map(|load| {
            let comparison = find_decision(load, &arm.name, self.is_late())?;
            Some((comparison, describe_sharing(load, arm.taken, &comparison.against)))
        });
        let record = ConfirmationRecord {
            turned: arm.changes.clone(),
            taken: arm.taken,
            run: name.to_owned(),
            ..self.nothing(String::new())
        };
        match comparisons.next() {
            Some((_, Some(others))) => ConfirmationRecord {
                why_not: format!("{others}, so taking more of them proves nothing"),
                ..record
            },
            Some((comparison, None)) if comparison.verdict != Verdict::Invalid => {
                ConfirmationRecord {
                    metric: comparison.metric,
                    ratio: is_finite(comparison).then_some((comparison.ratio, comparison.interval)),
                    confirmed: weir_analysis::limiter::is_proof(arm.taken, comparison),
                    ..record
                }
            }
            _ => ConfirmationRecord { why_not: "the trial is not valid".to_owned(), ..record },
        }
    }
}

/// Describes the use of the proxy's CPUs by others, if it is large and CPU time of the proxy was taken away. An arm
/// that waits for others at each step is slower with less of their time, whatever its limit is: up to a third was
/// observed for one that waited for its origin.
fn describe_sharing(
    load: &LoadFindings,
    taken: Option<Reduction>,
    baseline: &str,
) -> Option<String> {
    taken.filter(|taken| taken.from == TakenFrom::Proxy)?;
    let crowding = load.reasons.iter().find(|counted| {
        matches!(counted.reason.observation, Observation::ProxyCrowded { .. })
            && counted.arms.iter().any(|arm| arm == baseline)
    })?;
    Some(weir_sentences::validity::describe(&crowding.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantity_that_slices_rest_on_is_known() {
        assert!(weir_limits::Quantities::builtin().get(SERVICE_TIME).is_some());
    }
}
