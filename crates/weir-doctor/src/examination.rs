//! From facts to findings.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::facts::{Asked, Facts, Unread};
use crate::rules;

/// The version of the JSON form. It moves when an old reader would be misled.
pub const FORMAT: &str = "weir-doctor/1";

/// How much a finding matters. The order is that of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It keeps the load asked for from being carried.
    Error,
    /// A setting cannot be what it says, has no effect, or has already cost connections.
    Warning,
    /// Worth knowing.
    Note,
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Which rule, in words with hyphens: stable from version to version.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What, in a line.
    pub title: String,
    /// Figures, with where they were read.
    pub evidence: Vec<String>,
    /// The mechanism.
    pub why: String,
    /// Commands that change it now.
    pub change: Vec<String>,
    /// Commands that keep it changed after a reboot, where the first do not.
    pub persist: Vec<String>,
    /// Where the mechanism is documented.
    pub source: &'static str,
}

impl Finding {
    /// A finding without evidence or remedy yet.
    pub(crate) fn new(id: &'static str, severity: Severity, title: impl Into<String>) -> Finding {
        Finding {
            id,
            severity,
            title: title.into(),
            evidence: Vec::new(),
            why: String::new(),
            change: Vec::new(),
            persist: Vec::new(),
            source: "",
        }
    }

    pub(crate) fn evidence(mut self, line: impl Into<String>) -> Finding {
        self.evidence.push(line.into());
        self
    }

    pub(crate) fn evidence_all(mut self, lines: impl IntoIterator<Item = String>) -> Finding {
        self.evidence.extend(lines);
        self
    }

    pub(crate) fn why(mut self, why: impl Into<String>, source: &'static str) -> Finding {
        self.why = why.into();
        self.source = source;
        self
    }

    pub(crate) fn change(mut self, command: impl Into<String>) -> Finding {
        self.change.push(command.into());
        self
    }

    /// A change of nginx's files, which it takes over without dropping connections.
    pub(crate) fn change_nginx(self, commands: impl IntoIterator<Item = String>) -> Finding {
        let mut changed = self;
        changed.change.extend(commands);
        changed.change("nginx -t && nginx -s reload")
    }

    /// A sysctl, now and at every boot. The name of the file sorts behind `99-sysctl.conf`, by
    /// which Debian has /etc/sysctl.conf read.
    pub(crate) fn change_sysctl(mut self, key: &str, value: &str) -> Finding {
        self.change.push(match value.contains(' ') {
            true => format!("sysctl -w {key}='{value}'"),
            false => format!("sysctl -w {key}={value}"),
        });
        self.persist.push(format!(
            "echo '{key} = {value}' >> /etc/sysctl.d/99-tuning.conf"
        ));
        self
    }
}

/// How much the settings leave room for, whatever was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Room {
    /// Of what.
    pub what: &'static str,
    /// How much.
    pub amount: f64,
    /// The reckoning.
    pub because: String,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Examination {
    /// [`FORMAT`].
    pub format: &'static str,
    /// The load asked for.
    pub asked: Asked,
    /// Findings, the most urgent first.
    pub findings: Vec<Finding>,
    /// What the settings leave room for.
    pub room: Vec<Room>,
    /// What was looked at.
    pub looked_at: Vec<String>,
    /// What could not be, and why.
    pub unread: Vec<Unread>,
}

impl Examination {
    /// Whether the load asked for cannot be carried as things are.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// How many findings have this severity.
    pub fn count(&self, severity: Severity) -> usize {
        let same = |finding: &&Finding| finding.severity == severity;
        self.findings.iter().filter(same).count()
    }

    /// As JSON, [`FORMAT`].
    ///
    /// # Errors
    /// None in practice: the types have no maps with keys that are no strings.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// Judges facts by all rules.
pub fn examine(facts: &Facts) -> Examination {
    let mut findings = rules::all(facts);
    findings.sort_by_key(|finding| finding.severity);
    say_once(&mut findings);
    Examination {
        format: FORMAT,
        asked: facts.asked,
        findings,
        room: rules::room(facts),
        looked_at: facts.looked_at.clone(),
        unread: facts.unread.clone(),
    }
}

/// Several findings may have the same remedy. A file must not be edited twice: nginx refuses a
/// directive that is there two times.
fn say_once(findings: &mut [Finding]) {
    let mut said: BTreeMap<String, &'static str> = BTreeMap::new();
    for finding in findings {
        let edits = |command: &&String| command.starts_with("sed ");
        let count = finding.change.iter().filter(edits).count();
        let mut repeated = None;
        finding.change.retain(|command| {
            let earlier = said.get(command).copied();
            repeated = repeated.or(earlier);
            earlier.is_none()
        });
        let left = finding.change.iter().filter(edits).count();
        if count > 0 && left == 0 {
            finding.change.clear();
        }
        for command in finding.change.iter().filter(edits) {
            said.insert(command.clone(), finding.id);
        }
        if let Some(id) = repeated {
            finding.change.insert(0, format!("# as for {id}, above"));
        }
    }
}
