//! Certainty of findings: `limits/reliability.yaml`, which the example `planted` fits on simulated hosts.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::error::{DataError, read};
use crate::judge::Finding;

/// Normal quantile of a one-sided 95 % bound.
const ONE_SIDED: f64 = 1.645;

/// Certainty of a finding.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Similar findings were wrong too often, or did not occur.
    #[default]
    Weak,
    /// Similar findings were right more often than not.
    Likely,
    /// Similar findings were nearly always right.
    Strong,
}

impl Certainty {
    /// Returns the name used in JSON: `strong`.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Strong => "strong",
            Certainty::Likely => "likely",
            Certainty::Weak => "weak",
        }
    }
}

/// First findings of one limiter with neighbouring scores, over all hosts of the fit.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Limiter that the findings named.
    pub limiter: String,
    /// True if every limiter could be judged for which this one is commonly mistaken.
    pub all_judged: bool,
    /// Lowest score of the band.
    pub from: f64,
    /// Number of findings.
    pub named: u32,
    /// Number of findings that named the planted limit.
    pub right: u32,
}

impl Band {
    /// Returns the lower one-sided 95 % bound of the share of right findings (Wilson, JASA 22, 1927).
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

/// Shares of right findings, and the thresholds of [`Certainty`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reliability {
    /// Minimum share of right findings, by its lower bound, for [`Certainty::Strong`].
    strong: f64,
    /// Minimum share of right findings, by its lower bound, for [`Certainty::Likely`].
    likely: f64,
    /// For each limiter, the planted limiters for which it was wrongly named.
    taken_for: BTreeMap<String, Vec<String>>,
    bands: Vec<Band>,
}

impl Reliability {
    /// Returns the fit that is built into weir.
    pub fn builtin() -> &'static Reliability {
        static BUILTIN: OnceLock<Reliability> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let text = include_str!("../../../limits/reliability.yaml");
            Reliability::parse("limits/reliability.yaml", text)
                .expect("embedded data, which the tests of this crate read")
        })
    }

    /// Parses a file.
    ///
    /// # Errors
    /// Fails if the text is not such a file.
    pub fn parse(file: &str, text: &str) -> Result<Reliability, DataError> {
        read(file, text)
    }

    /// Returns all bands, in the order of the file.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// Returns the certainty of a band.
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

    /// Returns the limiters that could not be judged and for which this one is commonly mistaken.
    pub fn doubts<'f>(&self, finding: &'f Finding) -> Vec<&'f str> {
        let confused = self.taken_for.get(&finding.limiter);
        finding
            .unjudged
            .iter()
            .map(String::as_str)
            .filter(|name| confused.is_some_and(|names| names.iter().any(|other| other == name)))
            .collect()
    }

    /// Returns the certainty of a finding: that of the band with its score. A score below every band is weak.
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
