//! Sentences about published recommendations.

use weir_advice::{
    About, AdviceFinding, AdviceFindings, AdviceVerdict, Because, InForce, Recommendation,
    Standing, Untried,
};
use weir_model::study::Metric;

use crate::names::join_names;
use crate::numbers;

/// Returns the verdict in a word or two.
pub fn name_advice_verdict(verdict: AdviceVerdict) -> &'static str {
    match verdict {
        AdviceVerdict::Confirmed => "confirmed",
        AdviceVerdict::Smaller => "smaller",
        AdviceVerdict::NoEffect => "no effect",
        AdviceVerdict::Harmful => "harmful",
        AdviceVerdict::Inert => "inert",
        AdviceVerdict::Obsolete => "obsolete",
        AdviceVerdict::NotTried => "not tried",
        AdviceVerdict::Undecided => "undecided",
    }
}

/// All verdicts, in the order in which they are counted.
const VERDICTS: [AdviceVerdict; 8] = [
    AdviceVerdict::Confirmed,
    AdviceVerdict::Smaller,
    AdviceVerdict::NoEffect,
    AdviceVerdict::Harmful,
    AdviceVerdict::Inert,
    AdviceVerdict::Obsolete,
    AdviceVerdict::NotTried,
    AdviceVerdict::Undecided,
];

/// Returns the answer: "Of 12 recommendations, 3 are confirmed, 2 show no effect and 7 are not tried."
pub fn describe_advice(found: &AdviceFindings) -> String {
    let all = &found.found;
    let counts = VERDICTS.iter().filter_map(|verdict| {
        let count = all.iter().filter(|one| one.verdict == *verdict).count() as u64;
        let verb = match (verdict, count) {
            (_, 0) => return None,
            (AdviceVerdict::NoEffect, 1) => "shows",
            (AdviceVerdict::NoEffect, _) => "show",
            (_, 1) => "is",
            _ => "are",
        };
        Some(format!("{} {verb} {}", numbers::count(count), name_advice_verdict(*verdict)))
    });
    let counts: Vec<String> = counts.collect();
    format!("Of {}, {}.", numbers::counted(all.len() as u64, "recommendation"), join_names(&counts))
}

/// Names the subject: `nginx`, `kernel`.
pub fn name_subject(about: About) -> &'static str {
    match about {
        About::Kernel => "kernel",
        About::Proxy(kind) => kind.name(),
    }
}

/// Describes the changes: `gzip stock → off`.
pub fn describe_advised_changes(advice: &Recommendation) -> String {
    let changes = advice.changes.iter().map(|(id, (from, to))| format!("{id} {from} → {to}"));
    changes.collect::<Vec<String>>().join(", ")
}

/// Describes the levels that were read back: `backlog 511 → 4096`; empty if none was.
pub fn describe_in_force(found: &AdviceFinding) -> String {
    let read =
        found.in_force.iter().filter(|level| level.before.is_some() || level.after.is_some());
    read.map(describe_level).collect::<Vec<String>>().join(", ")
}

fn describe_level(level: &InForce) -> String {
    let [before, after] =
        [&level.before, &level.after].map(|level| level.as_deref().unwrap_or("?"));
    if before == after {
        format!("{} {before}, unchanged", level.id)
    } else {
        format!("{} {before} → {after}", level.id)
    }
}

/// Explains the verdict on a recommendation.
pub fn explain_advice(found: &AdviceFinding) -> String {
    let metric = match found.metric {
        Metric::ResponseP50 => "p50",
        Metric::ResponseP99 => "p99",
        _ => "rate",
    };
    let measured = match (found.ratio, found.interval) {
        (Some(ratio), Some(interval)) => format!(
            "the {metric} is {} times that without it ({})",
            numbers::ratio(ratio),
            numbers::interval(interval)
        ),
        _ => "there are no valid figures".to_owned(),
    };
    match &found.because {
        Because::Measured => measured,
        Because::BelowPublished => match found.recommendation.figure {
            Some((lowest, _)) => format!("{measured}; {} was published", numbers::ratio(lowest)),
            None => measured,
        },
        Because::TooLittleTime => format!("{measured}, which tells nothing in this time"),
        Because::NoFigures => "there are no valid figures".to_owned(),
        Because::NotInForce(levels) => {
            let reasons: Vec<&str> = levels.iter().map(|level| &*level.why).collect();
            reasons.join("; ")
        }
        Because::Stock => "the distribution's configuration has it already".to_owned(),
        Because::Since(obsolete) => format!(
            "since {} {}: {}",
            name_subject(found.recommendation.about),
            obsolete.since,
            obsolete.because
        ),
        Because::Untried(why) => explain_untried(why),
    }
}

/// Explains why a recommendation was not tried.
pub fn explain_untried(why: &Untried) -> String {
    match why {
        Untried::NotInstalled => "the proxy is not installed here".to_owned(),
        Untried::HostSettings => {
            "it changes the whole host; --allow-host-settings allows that".to_owned()
        }
        Untried::Kubernetes => "it changes pods of a Kubernetes cluster".to_owned(),
        Untried::Network => {
            "it needs a network card or a long path; loopback has nothing for it to act on"
                .to_owned()
        }
        Untried::Load => "its load needs a configuration of weir's own".to_owned(),
        Untried::Refused(why) => format!("refused: {why}"),
        Untried::NotReached => "the run ended before it".to_owned(),
    }
}

/// Says whether a recommendation can be tried here.
pub fn describe_standing(standing: &Standing) -> String {
    match standing {
        Standing::Applies => "yes".to_owned(),
        Standing::Stock => "no: the distribution's configuration has it already".to_owned(),
        Standing::Untried(why) => format!("no: {}", explain_untried(why)),
    }
}
