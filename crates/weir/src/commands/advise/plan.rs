//! The studies that try recommendations, and the file from which a later call makes the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_advice::{Book, Installed, Recommendation, Standing, Trial, Untried, standing, trials};
use weir_hosts::Options;
use weir_model::study::{ProxyKind, Settings};
use weir_study::{AdviceStudy, CheckContext, RequestedConfiguration, Scale};

use super::selection::{Selection, find_installed};
use crate::args::AdviseArgs;
use crate::commands::study::{self, StudyFile, must_be_own};
use crate::commands::time;
use crate::failure::Failure;

/// Name of the file with the plan.
const PLAN_FILE: &str = "plan.json";
/// Name and version of its format.
const FORMAT: &str = "weir-advice-plan/1";
/// Time for a run, and for each of its arms, without a budget.
const EACH_RUN: Duration = Duration::from_secs(45);
const EACH_ARM: Duration = Duration::from_secs(30);
/// Time for each arm under a load whose slices are long.
const EACH_ARM_IN_SLICES: Duration = Duration::from_secs(60);

/// Request of a user, from which the same studies are made again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Plan {
    format: String,
    /// Time of the beginning, RFC 3339 in UTC.
    pub(super) started_at: String,
    /// Time that was spent, seconds.
    pub(super) took_s: f64,
    /// Names of the recommendations.
    ids: Vec<String>,
    /// Main file of the user's configuration.
    pub(super) configuration: Option<PathBuf>,
    /// Proxy of the configuration.
    kind: Option<ProxyKind>,
    port: Option<u16>,
    host: Option<String>,
    path: Option<String>,
    budget: Option<Duration>,
    pub(super) allows_host_settings: bool,
    /// Recommendations that broke the proxy, each with the error.
    #[serde(default)]
    pub(super) broken: BTreeMap<String, String>,
}

/// Recommendations with their standing, and the studies that try those that can be tried.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) installed: Installed,
    pub(super) recommendations: Vec<(Recommendation, Standing)>,
    pub(super) studies: Vec<PlannedStudy>,
    /// Time for all studies together.
    pub(super) budget: Duration,
}

/// A study that tries recommendations side by side.
#[derive(Debug)]
pub(super) struct PlannedStudy {
    pub(super) trial: Trial,
    pub(super) title: String,
    pub(super) read: StudyFile,
    /// Shortest time in which anything can be decided.
    pub(super) least: Duration,
    /// Time that it would have without a budget.
    pub(super) usual: Duration,
}

impl Plan {
    /// Makes the plan of a selection.
    pub(super) fn new(args: &AdviseArgs, wanted: Selection) -> Result<Plan, Failure> {
        let kind = wanted.recommendations.first().map(|advice| advice.proxy);
        let configuration = match wanted.file {
            Some(file) => Some(std::path::absolute(&file).map_err(|error| {
                Failure::input(format!("cannot find {}: {error}", file.display()))
            })?),
            None => None,
        };
        Ok(Plan {
            format: FORMAT.to_owned(),
            started_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            took_s: 0.0,
            ids: wanted.recommendations.into_iter().map(|advice| advice.id).collect(),
            kind: kind.filter(|_| configuration.is_some()),
            configuration,
            port: args.port,
            host: args.host.clone(),
            path: args.path.clone(),
            budget: args.budget.as_deref().map(time::budget).transpose()?,
            allows_host_settings: args.allow_host_settings,
            broken: BTreeMap::new(),
        })
    }

    /// Reads the plan of an earlier call from its folder.
    pub(super) fn read(folder: &Path) -> Result<Plan, Failure> {
        let path = folder.join(PLAN_FILE);
        must_be_own(&path, "a plan")?;
        let bytes = weir_files::read_text(&path).map_err(|error| {
            Failure::input(format!("cannot read {}: {error}", path.display()))
                .hint("--resume goes on with a folder that `weir advise` has made")
        })?;
        let plan: Plan = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::input(format!("{} is no plan of recommendations: {error}", path.display()))
        })?;
        if plan.format != FORMAT {
            return Err(Failure::input(format!(
                "{} is of another version of weir",
                path.display()
            )));
        }
        Ok(plan)
    }

    /// Writes the plan to its folder.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let path = folder.join(PLAN_FILE);
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        weir_files::make_folders(folder)
            .and_then(|()| weir_files::replace(&path, text.as_bytes()))
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
    }

    /// Makes the studies. Recommendations that a study refuses are not tried, for its reason.
    ///
    /// # Errors
    /// Nothing can be tried, or the budget is too short.
    pub(super) fn compose(&self, options: &Options) -> Result<Work, Failure> {
        let installed = find_installed(options.allow_host_settings, self.configuration.is_some());
        let all = Book::builtin().recommendations.iter();
        let mut recommendations: Vec<(Recommendation, Standing)> = all
            .filter(|advice| self.ids.contains(&advice.id))
            .map(|advice| {
                let proxy = self.kind.unwrap_or(advice.proxy);
                let advice = Recommendation { proxy, ..advice.clone() };
                let standing = match self.broken.get(&advice.id) {
                    Some(why) => Standing::Untried(Untried::Refused(why.clone())),
                    None => standing(&advice, &options.catalog, &installed),
                };
                (advice, standing)
            })
            .collect();
        self.check_arms(&mut recommendations, options, &study::context());
        let tried: Vec<&Recommendation> = recommendations
            .iter()
            .filter(|(_, standing)| *standing == Standing::Applies)
            .map(|(advice, _)| advice)
            .collect();
        if tried.is_empty() {
            return Err(nothing_applies(&recommendations));
        }
        let studies = trials(&tried, &options.catalog)
            .into_iter()
            .map(|trial| self.plan_study(trial, options))
            .collect::<Result<Vec<_>, _>>()?;
        let budget = self.find_budget(&studies)?;
        Ok(Work { installed, recommendations, studies, budget })
    }

    /// Checks each arm in a study of its own, so that one that is refused does not spoil the others.
    fn check_arms(
        &self,
        recommendations: &mut [(Recommendation, Standing)],
        options: &Options,
        machine: &CheckContext,
    ) {
        for (advice, standing) in recommendations {
            if *standing != Standing::Applies {
                continue;
            }
            let settings = advice.settings();
            let arms = vec![(&*advice.id, &settings)];
            let text = self.text("check", (advice.proxy, &advice.load), arms);
            if let Some(why) = study::first_error(&text, &options.catalog, machine) {
                *standing = Standing::Untried(Untried::Refused(why));
            }
        }
    }

    /// Writes the study of some arms under a load.
    fn text(
        &self,
        name: &str,
        (kind, load): (ProxyKind, &str),
        arms: Vec<(&str, &Settings)>,
    ) -> String {
        // Recommendations are checked when they are read: their load exists.
        let situation = &Book::builtin().situations[load];
        let configuration = self.configuration.as_deref().map(|file| RequestedConfiguration {
            file,
            port: self.port,
            host: self.host.as_deref(),
            path: self.path.as_deref(),
        });
        AdviceStudy {
            name,
            title: &situation.title,
            kind,
            configuration,
            file: situation.file.as_deref(),
            settings: situation.settings.get(&kind),
            origin: situation.origin.as_ref(),
            load: &situation.load,
            slice: situation.slice.as_deref(),
            metric: situation.metric,
            length: (arms.len() as u32 + 2)
                * if situation.slice.is_some() { EACH_ARM_IN_SLICES } else { EACH_ARM },
            arms,
        }
        .text()
    }

    /// Makes the study of a trial.
    pub(super) fn plan_study(
        &self,
        trial: Trial,
        options: &Options,
    ) -> Result<PlannedStudy, Failure> {
        let arms: Vec<(&str, &Settings)> =
            trial.arms.iter().map(|arm| (&*arm.name, &arm.settings)).collect();
        let text = self.text(&trial.name, (trial.kind, &trial.load), arms);
        let study =
            study::read_text(&text, "study.yaml", &options.catalog, Scale::ONE, &study::context())?;
        if self.configuration.is_some() {
            weir_hosts::asked::asked(&study, options)
                .map_err(|error| Failure::of_run(error, None))?;
        }
        let arms = study.arms.len() as u32;
        Ok(PlannedStudy {
            title: Book::builtin().situations[&trial.load].title.clone(),
            least: time::least_budget(&study),
            usual: EACH_RUN + EACH_ARM * arms,
            read: StudyFile { study, text },
            trial,
        })
    }

    /// Returns the time for all studies: the budget, or what they usually take.
    fn find_budget(&self, studies: &[PlannedStudy]) -> Result<Duration, Failure> {
        let least: Duration = studies.iter().map(|planned| planned.least).sum();
        let usual = studies.iter().map(|planned| planned.usual.max(planned.least)).sum();
        let budget = self.budget.unwrap_or(usual);
        if budget < least {
            return Err(Failure::input(format!(
                "--budget {}: {} runs need at least {} s together",
                weir_report::number::length(budget),
                studies.len(),
                least.as_secs() + 1
            ))
            .hint(format!("give --budget {}s, or fewer recommendations", least.as_secs() + 1)));
        }
        Ok(budget)
    }
}

/// Returns the failure that says why nothing can be tried.
fn nothing_applies(all: &[(Recommendation, Standing)]) -> Failure {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (advice, standing) in all {
        let why = weir_sentences::advice::describe_standing(standing);
        reasons.entry(why).or_default().push(&advice.id);
    }
    let lines = reasons.iter().map(|(why, ids)| format!("\n  {}: {why}", ids.join(", ")));
    Failure::input(format!(
        "none of these recommendations can be tried here:{}",
        lines.collect::<String>()
    ))
}
