//! What a rule finds, and what settings leave room for.

use serde::Serialize;

/// How much a finding matters. The order is that of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It keeps the load asked for from being carried.
    Error,
    /// A setting cannot be what it says, has no effect, or has already cost connections.
    Warning,
    /// Worth knowing.
    Note,
}

/// What has to follow so that changes come into force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Then {
    #[default]
    Nothing,
    /// nginx's files were edited: it checks them, and reads them again.
    Reload,
    /// nginx reads the files again that it has.
    Again,
    /// nginx opens its listeners anew.
    Restart,
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    #[serde(skip)]
    pub(crate) then: Then,
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

    /// A line of evidence; one of a file that several servers include is told once.
    pub(crate) fn evidence(mut self, line: impl Into<String>) -> Finding {
        let line = line.into();
        if !self.evidence.contains(&line) {
            self.evidence.push(line);
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

    /// A change of nginx's files, which it takes over without dropping connections.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Room {
    /// Of what.
    pub what: &'static str,
    /// How much.
    pub amount: f64,
    /// The reckoning.
    pub because: String,
}
