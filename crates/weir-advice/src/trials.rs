//! Recommendations side by side: in as few runs as there are proxies and loads.

use weir_model::study::{ProxyKind, Settings};
use weir_parameters::{Catalog, Scope};

use crate::book::Recommendation;

/// Most changes in one run. Each takes its share of the time, so intervals widen with their number.
const MOST_ARMS: usize = 12;

/// Recommendations for one proxy under one load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Name of the study, also that of its folder.
    pub name: String,
    /// The proxy.
    pub kind: ProxyKind,
    /// Name of the situation.
    pub load: String,
    /// An arm for each different change.
    pub arms: Vec<TrialArm>,
    /// True if the arms bypass the kernel's TCP, which not every host allows.
    bypasses: bool,
}

/// A change, and the recommendations that ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialArm {
    /// Name of the arm: that of the first recommendation.
    pub name: String,
    /// Recommended levels.
    pub settings: Settings,
    /// Names of the recommendations.
    pub ids: Vec<String>,
}

/// Puts recommendations into trials.
pub fn trials(all: &[&Recommendation], catalog: &Catalog) -> Vec<Trial> {
    let mut trials: Vec<Trial> = Vec::new();
    for advice in all {
        let kind = advice.proxy;
        let bypasses =
            advice.changes.keys().any(|id| catalog.scope(kind, id) == Some(Scope::Transport));
        let settings = advice.settings();
        let open_trial = trials.iter().position(|trial| {
            let is_same = trial.arms.iter().any(|arm| arm.settings == settings);
            (trial.kind, &*trial.load, trial.bypasses) == (kind, &*advice.load, bypasses)
                && (is_same || trial.arms.len() < MOST_ARMS)
        });
        let at = open_trial.unwrap_or_else(|| {
            trials.push(Trial {
                name: String::new(),
                kind,
                load: advice.load.clone(),
                arms: Vec::new(),
                bypasses,
            });
            trials.len() - 1
        });
        trials[at].add(advice, settings);
    }
    for (index, trial) in trials.iter_mut().enumerate() {
        trial.name = format!("{:02}-{}-{}", index + 1, trial.kind.name(), trial.load);
    }
    trials
}

impl Trial {
    fn add(&mut self, advice: &Recommendation, settings: Settings) {
        match self.arms.iter_mut().find(|arm| arm.settings == settings) {
            Some(arm) => arm.ids.push(advice.id.clone()),
            None => self.arms.push(TrialArm {
                name: advice.id.clone(),
                settings,
                ids: vec![advice.id.clone()],
            }),
        }
    }
}
