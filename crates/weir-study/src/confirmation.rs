//! Studies that confirm a limiter: an arm as it is, the same again, and an arm for each change that is tried on it.

use std::time::Duration;

use weir_model::flow::ArrivalsSpec;
use weir_model::study::{
    Arm, ArmRole, BlockSpec, Compare, LoadSpec, Metric, Objective, Reduction, Settings, Study,
    Until,
};

/// Names of the unchanged arm and of its repetition.
const AS_IT_IS: &str = "as-it-is";
const AGAIN: &str = "as-it-is-again";
/// Name of the arm from which a resource is taken away.
const LACKING: &str = "with-less";

/// An arm of a study under one of its loads, and the changes to try on it.
#[derive(Debug)]
pub struct Confirmation<'a> {
    /// The study that the arm belongs to.
    pub study: &'a Study,
    /// The arm.
    pub arm: &'a Arm,
    /// The load.
    pub load: &'a LoadSpec,
    /// Question that the study answers; also its title.
    pub question: String,
    /// Changes, each tried in an arm of its own.
    pub changes: Vec<Settings>,
    /// Resource of which one more arm has less; `None`: there is no such arm.
    pub taken: Option<Reduction>,
    /// True if the arm's own load is kept; else it becomes a closed loop of the same connections, which demands more
    /// than is carried.
    pub keeps_load: bool,
    /// Metric that decides.
    pub metric: Metric,
    /// Longest time of the load: it ends as soon as everything is decided.
    pub length: Duration,
    /// Least length of a slice, if the study gives slices a length.
    pub least_slice: Duration,
    /// Least number of blocks.
    pub least_blocks: u32,
}

impl Confirmation<'_> {
    /// Returns the number of arms of the study.
    pub fn arms(&self) -> usize {
        2 + self.changes.len() + usize::from(self.taken.is_some())
    }

    /// Makes the study.
    pub fn study(self) -> Study {
        let study = self.study;
        let mut load = self.load.clone();
        load.duration = self.length;
        load.cell = None;
        if !self.keeps_load {
            load.main.arrivals = ArrivalsSpec::Closed;
        }
        Study {
            name: format!("{}-confirm", study.name),
            title: self.question.clone(),
            question: self.question,
            proxy: study.proxy_of(self.arm).clone(),
            loads: vec![load],
            arms: pair_arms(self.arm, self.changes, self.taken),
            compare: Compare::Against,
            blocks: BlockSpec {
                slice: study.blocks.slice.map(|length| length.max(self.least_slice)),
                at_least: self.least_blocks,
                ..BlockSpec::default()
            },
            until: Until::Decided,
            budget: None,
            objective: Objective { metric: self.metric, within: None, ..study.objective },
            capacity: Vec::new(),
            published: None,
            left_out: Vec::new(),
            ..study.clone()
        }
    }
}

/// Returns the arm as it is, the same again, an arm for each change, and one that lacks something.
fn pair_arms(arm: &Arm, changes: Vec<Settings>, taken: Option<Reduction>) -> Vec<Arm> {
    let mut arms = vec![
        derive_arm(arm, AS_IT_IS.to_owned(), ArmRole::Baseline, Settings::new()),
        derive_arm(arm, AGAIN.to_owned(), ArmRole::SameAsBaseline, Settings::new()),
    ];
    let turned = changes.into_iter().zip(1..).map(|(change, number)| {
        derive_arm(arm, format!("turned-{number}"), ArmRole::Change, change)
    });
    arms.extend(turned);
    let lacking = taken.map(|taken| Arm {
        taken: Some(taken),
        ..derive_arm(arm, LACKING.to_owned(), ArmRole::Change, Settings::new())
    });
    arms.extend(lacking);
    arms
}

/// Returns an arm with changes in addition to the settings of `arm`.
fn derive_arm(arm: &Arm, name: String, role: ArmRole, changes: Settings) -> Arm {
    Arm {
        settings: arm.settings.clone().into_iter().chain(changes.clone()).collect(),
        name,
        role,
        changes,
        against: 0,
        proxy: None,
        cpus: arm.cpus.clone(),
        taken: None,
    }
}
