//! Clause about limits that could not be judged: which, why, and the remedy.

use weir_analysis::findings::LimiterFindings;
use weir_analysis::limiter::{Source, find_unjudged};

use super::limiter_name;

/// Explains why no limiter is named although limits are unjudged: which limits, why, and the remedy.
pub(super) fn clause(found: &LimiterFindings) -> String {
    let unjudged = find_unjudged(found);
    let why = unjudged.why.map_or_else(String::new, |why| format!(" ({why})"));
    format!(
        "{} could not be judged, because {} {}{why}; {}",
        list_limiters(&unjudged.limiters),
        if unjudged.limiters.len() == 1 { "it shows only in" } else { "they show only in" },
        not_read(unjudged.source),
        help(unjudged.source)
    )
}

/// Lists two names and the number of the others.
fn list_limiters(limiters: &[&str]) -> String {
    let names: Vec<String> = limiters.iter().map(|limiter| limiter_name(limiter)).collect();
    match &names[..] {
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [one, other, _] => format!("{one}, {other} and one more limit"),
        [one, other, ..] => format!("{one}, {other} and {} more limits", names.len() - 2),
        [] => "nothing".to_owned(),
    }
}

/// Returns a clause about what could not be read.
fn not_read(source: Source) -> &'static str {
    match source {
        Source::Proxy => "the server's own counters and settings, which could not be read",
        Source::Origin => "the origin server, of which nothing could be read",
        Source::ProxyHost => "the server's processes and host, which could not be read",
        Source::GeneratorHost => "the generator's host, which could not be read",
        Source::LowLoad => "a time at a low load, and there was none",
        Source::OriginTime => "the time of the origin's responses, which was not measured",
        Source::Load => "figures of the load that are not known",
    }
}

/// Returns a clause about how to have it read.
fn help(source: Source) -> &'static str {
    match source {
        Source::Proxy => {
            "`weir run STUDY` or `weir capacity STUDY` with its configuration reads them of a copy that weir starts"
        }
        Source::Origin => "a study in which weir starts proxy and origin reads it",
        Source::ProxyHost => {
            "run weir as root on the server's host, or name that host with `--place proxy=HOST`"
        }
        Source::GeneratorHost => "run weir as root there",
        Source::LowLoad => "a longer run has one",
        Source::OriginTime => {
            "a load at that rate, in a study in which weir starts proxy and origin, measures it"
        }
        Source::Load => "the report names them",
    }
}
