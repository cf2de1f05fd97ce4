//! Limit of a response at the highest levels, by the limiters that the samples name there.

use weir_limits::{Answer, Finding, Role};
use weir_stats::scaling::{Form, Parameter};

use crate::findings::{
    Ceiling, CeilingCause, CeilingEvidence, LimiterFindings, ScalingFactor, ScalingFindings,
};

/// Limiters that are outside of the proxy although the rule counts them among its resources: others use the CPUs or the
/// link as well.
const SHARED: [&str; 3] = ["network", "crowded", "steal"];

/// Returns the limit of the response; `None` if it grows in proportion, or nothing is known about its growth.
pub(super) fn find(found: &ScalingFindings, limiters: &[LimiterFindings]) -> Option<Ceiling> {
    let best = found.measured.best()?;
    if best.form == Form::Linear {
        return None;
    }
    let knee = best.parameter(Parameter::Knee).and_then(|knee| knee.value);
    let highest = found.measured.levels.last()?.x;
    let from = knee.unwrap_or(highest).min(highest);
    let names: Vec<String> = found
        .measured
        .levels
        .iter()
        .filter(|level| level.x >= from)
        .map(|level| level.name.clone())
        .collect();
    let named: Vec<(String, &Finding)> = names
        .iter()
        .filter_map(|name| Some((name.clone(), limiter_of(found, name, limiters)?)))
        .collect();
    Some(Ceiling { cause: cause(&named, names.len()), names })
}

/// Returns the limiter of a level, if its samples name one.
fn limiter_of<'a>(
    found: &ScalingFindings,
    name: &str,
    limiters: &'a [LimiterFindings],
) -> Option<&'a Finding> {
    let (load, arm) = match &found.factor {
        ScalingFactor::Parameter { .. } => (&*found.load, name),
        ScalingFactor::Connections { arm } => (name, &**arm),
    };
    let limiter = limiters.iter().find(|limiter| limiter.load == load && limiter.arm == arm)?;
    let judgement = &limiter.judgement;
    judgement.findings.first().filter(|_| judgement.answer == Answer::Named)
}

/// Returns the cause if the samples of all levels name the same limiter.
fn cause(named: &[(String, &Finding)], levels: usize) -> CeilingCause {
    let Some((_, highest)) = named.last().filter(|_| named.len() == levels) else {
        return CeilingCause::Unknown;
    };
    if named.iter().any(|(_, finding)| finding.limiter != highest.limiter) {
        let all = named.iter().map(|(name, finding)| (name.clone(), finding.limiter.clone()));
        return CeilingCause::Different(all.collect());
    }
    let evidence = CeilingEvidence {
        limiter: highest.limiter.clone(),
        role: highest.role,
        evidence: highest.evidence.clone(),
    };
    if highest.role != Role::Proxy || SHARED.contains(&&*highest.limiter) {
        CeilingCause::Shared(evidence)
    } else {
        CeilingCause::Proxy(evidence)
    }
}
