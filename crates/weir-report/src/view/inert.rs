//! Levels that were asked for and are not in force.

use weir_analysis::findings::Findings;

/// One inert level of one arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InertView {
    /// The arm.
    pub arm: String,
    /// The parameter.
    pub id: String,
    /// The level that was asked for.
    pub requested: String,
    /// What is in force.
    pub effective: String,
    /// Why.
    pub why: String,
}

pub(super) fn all(findings: &Findings) -> Vec<InertView> {
    let arms = findings.inert.iter();
    let levels = arms.flat_map(|arm| arm.levels.iter().map(move |level| (arm, level)));
    levels
        .map(|(arm, level)| InertView {
            arm: arm.arm.clone(),
            id: level.id.clone(),
            requested: level.requested.clone(),
            effective: level.effective.clone(),
            why: level.why.clone(),
        })
        .collect()
}
