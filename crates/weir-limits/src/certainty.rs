//! How often a finding is right, in a word: `limits/reliability.yaml`, which the example `planted` fits on simulated hosts.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::error::{DataError, read};
use crate::judge::Finding;

/// Normal quantile of a one-sided bound of 95 %.
const ONE_SIDED: f64 = 1.645;

/// How sure a finding is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Findings like it were wrong too often, or have not come up.
    #[default]
    Weak,
    /// Findings like it were right more often than not.
    Likely,
    /// Findings like it were right nearly always.
    Strong,
}

impl Certainty {
    /// Its name in JSON and in sentences: `strong`.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Strong => "strong",
            Certainty::Likely => "likely",
            Certainty::Weak => "weak",
        }
    }
}

/// First findings of one limiter with scores next to each other, over all hosts of the fit.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Limiter that they named.
    pub limiter: String,
    /// Whether every limiter could be judged that is taken for it where it cannot.
    pub all_judged: bool,
    /// Least score of the band.
    pub from: f64,
    /// How many there were.
    pub named: u32,
    /// How many of them named the planted limit.
    pub right: u32,
}

impl Band {
    /// Lower one-sided 95 % bound of the share that is right (Wilson, JASA 22, 1927).
    pub fn at_least(&self) -> f64 {
        let (named, z) = (f64::from(self.named), ONE_SIDED);
        if named == 0.0 {
            return 0.0;
        }
        let share = f64::from(self.right) / named;
        let centre = share + z * z / (2.0 * named);
        let half = z * (share * (1.0 - share) / named + z * z / (4.0 * named * named)).sqrt();
        ((centre - half) / (1.0 + z * z / named)).max(0.0)
    }
}

/// Shares of right findings, and the words for them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reliability {
    /// Least share of right ones, by its lower bound, of what is called strong.
    strong: f64,
    /// The same of what is called likely.
    likely: f64,
    /// By limiter those that were planted where it was named.
    taken_for: BTreeMap<String, Vec<String>>,
    bands: Vec<Band>,
}

impl Reliability {
    /// The fit that comes with weir.
    pub fn builtin() -> &'static Reliability {
        static BUILTIN: OnceLock<Reliability> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let text = include_str!("../../../limits/reliability.yaml");
            Reliability::parse("limits/reliability.yaml", text)
                .expect("embedded data, which the tests of this crate read")
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The text is no such file.
    pub fn parse(file: &str, text: &str) -> Result<Reliability, DataError> {
        read(file, text)
    }

    /// All bands, in the order of the file.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// The word for a band.
    pub fn word(&self, band: &Band) -> Certainty {
        let share = band.at_least();
        if share >= self.strong {
            Certainty::Strong
        } else if share >= self.likely {
            Certainty::Likely
        } else {
            Certainty::Weak
        }
    }

    /// Limiters that could not be judged, and that have been taken for this one.
    pub fn doubts<'f>(&self, finding: &'f Finding) -> Vec<&'f str> {
        let others = self.taken_for.get(&finding.limiter);
        let unjudged = finding.unjudged.iter().map(String::as_str);
        unjudged
            .filter(|name| others.is_some_and(|others| others.iter().any(|other| other == name)))
            .collect()
    }

    /// How sure a finding is: by the band that has its score. One that is below every band is weak.
    pub(crate) fn certainty(&self, finding: &Finding) -> Certainty {
        let all_judged = self.doubts(finding).is_empty();
        let highest = self
            .bands
            .iter()
            .filter(|band| {
                band.limiter == finding.limiter
                    && band.all_judged == all_judged
                    && band.from <= finding.score
            })
            .max_by(|a, b| a.from.total_cmp(&b.from));
        highest.map_or(Certainty::Weak, |band| self.word(band))
    }
}
