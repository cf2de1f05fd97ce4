//! Turns facts into findings.

use std::collections::BTreeMap;

use serde::Serialize;

use weir_kube::ClusterFacts;

use crate::commands::{self, is_edit};
use crate::facts::{Facts, LoadDemand, Reading, Unread};
use crate::finding::{Finding, Room, Severity};
use crate::rules;

/// Version of the JSON form. It changes if an older reader would misinterpret the output.
pub const FORMAT: &str = "weir-doctor/2";

/// Result of an examination.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Examination {
    /// Version of this form: [`FORMAT`].
    pub format: &'static str,
    /// The load to judge by.
    pub asked: LoadDemand,
    /// Findings, the most urgent first.
    pub findings: Vec<Finding>,
    /// Capacity that the settings allow.
    pub room: Vec<Room>,
    /// Sources that were read.
    pub looked_at: Vec<Reading>,
    /// Sources that could not be read, and why.
    pub unread: Vec<Unread>,
}

impl Examination {
    /// Returns true if the load to judge by cannot be carried with the present settings.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Returns the number of findings of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Formats the examination as JSON, in version [`FORMAT`].
    ///
    /// # Errors
    /// None in practice: all maps in these types have string keys.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// Applies all rules to the facts.
pub fn examine(facts: &Facts) -> Examination {
    let mut findings = rules::all(facts);
    findings.sort_by_key(|finding| finding.severity);
    say_once(&mut findings);
    for finding in &mut findings {
        commands::address(finding, facts);
    }
    Examination {
        format: FORMAT,
        asked: facts.asked,
        findings,
        room: rules::room(facts),
        looked_at: facts.looked_at.clone(),
        unread: facts.unread.clone(),
    }
}

/// Applies all rules to the facts read from a Kubernetes cluster.
pub fn examine_cluster(facts: &ClusterFacts, asked: LoadDemand) -> Examination {
    let mut findings = rules::cluster::all(facts, asked);
    findings.sort_by_key(|finding| finding.severity);
    let unread = facts.unread.iter();
    Examination {
        format: FORMAT,
        asked,
        findings,
        room: rules::cluster::room(facts).into_iter().collect(),
        looked_at: vec![
            Reading::Pods {
                namespace: facts.namespace.clone(),
                context: facts.context.clone(),
                pods: facts.pods.len(),
            },
            Reading::Nodes { names: facts.nodes.iter().map(|node| node.name.clone()).collect() },
        ],
        unread: unread.map(|(what, why)| Unread { what: what.clone(), why: why.clone() }).collect(),
    }
}

/// Removes commands that an earlier finding already has. A file must not be edited twice: nginx refuses a duplicate
/// directive.
fn say_once(findings: &mut [Finding]) {
    let mut finding_ids: BTreeMap<String, String> = BTreeMap::new();
    for finding in findings {
        let count = finding.change.iter().filter(|command| is_edit(command)).count();
        let mut repeated = None;
        finding.change.retain(|command| {
            let earlier = finding_ids.get(command);
            repeated = repeated.take().or(earlier.cloned());
            earlier.is_none()
        });
        let remaining = finding.change.iter().filter(|command| is_edit(command)).count();
        if count > 0 && remaining == 0 {
            finding.change.clear();
        }
        for command in finding.change.iter().filter(|command| is_edit(command)) {
            finding_ids.insert(command.clone(), finding.problem.id());
        }
        if let Some(id) = repeated {
            finding.change.insert(0, format!("# as for {id}, above"));
        }
    }
}
