//! Findings of the rules, and the capacity that settings allow.

use serde::Serialize;

/// Severity of a finding, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The load to judge by cannot be carried.
    Error,
    /// A setting cannot take its value, has no effect, or has already cost connections.
    Warning,
    /// Worth knowing.
    Note,
}

/// The step that has to follow before changes take effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Then {
    #[default]
    Nothing,
    /// nginx's files were edited: nginx checks and reloads them.
    Reload,
    /// nginx reads its unchanged files again.
    Again,
    /// nginx is restarted, so that it opens its listeners anew.
    Restart,
}

/// A problem or a remark that a rule found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Identifier of the rule, in words with hyphens: stable from version to version.
    pub id: &'static str,
    /// Severity of the finding.
    pub severity: Severity,
    /// Summary in one line.
    pub title: String,
    /// Figures, with the place where each was read.
    pub evidence: Vec<String>,
    /// The mechanism behind the finding.
    pub why: String,
    /// Commands that change the setting now.
    pub change: Vec<String>,
    /// Commands that keep the change after a reboot, if those in `change` do not.
    pub persist: Vec<String>,
    /// Reference that documents the mechanism.
    pub source: &'static str,
    #[serde(skip)]
    pub(crate) then: Then,
}

impl Finding {
    /// Creates a finding without evidence or remedy.
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
            then: Then::Nothing,
        }
    }

    pub(crate) fn error(id: &'static str, title: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Error, title)
    }

    pub(crate) fn warning(id: &'static str, title: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Warning, title)
    }

    pub(crate) fn note(id: &'static str, title: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Note, title)
    }

    /// Adds a line of evidence, unless it is there already: several servers may include the same file.
    pub(crate) fn evidence(mut self, line: impl Into<String>) -> Finding {
        let evidence = line.into();
        if !self.evidence.contains(&evidence) {
            self.evidence.push(evidence);
        }
        self
    }

    pub(crate) fn evidence_all(self, lines: impl IntoIterator<Item = String>) -> Finding {
        lines.into_iter().fold(self, Finding::evidence)
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

    /// Adds commands that edit nginx's files, followed by a reload, which drops no connections.
    pub(crate) fn change_nginx(self, commands: impl IntoIterator<Item = String>) -> Finding {
        let mut changed = self;
        for command in commands {
            // A line that two places take from one file is edited once.
            if !changed.change.contains(&command) {
                changed.change.push(command);
            }
        }
        changed.then(Then::Reload)
    }

    pub(crate) fn then(mut self, then: Then) -> Finding {
        self.then = then;
        self
    }

    /// Adds commands that set a sysctl now and at every boot. The file name sorts after `99-sysctl.conf`, through which
    /// Debian applies /etc/sysctl.conf.
    pub(crate) fn change_sysctl(mut self, key: &str, value: &str) -> Finding {
        self.change.push(if value.contains(' ') {
            format!("sysctl -w {key}='{value}'")
        } else {
            format!("sysctl -w {key}={value}")
        });
        self.persist.push(format!("echo '{key} = {value}' >> /etc/sysctl.d/99-tuning.conf"));
        self
    }
}

/// Capacity that the settings allow, whatever the load to judge by.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Room {
    /// The thing that is counted, for example "clients at once".
    pub what: &'static str,
    /// Number or rate that the settings allow.
    pub amount: f64,
    /// Calculation of the amount.
    pub because: String,
}
