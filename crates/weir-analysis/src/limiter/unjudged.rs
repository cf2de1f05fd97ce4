//! Explanation if limits could not be judged: the reason that most of them share, and the remedy.

use weir_limits::{Absent, Derivation, Quantities, Role, Unknown};

use super::words::limiter_name;
use crate::findings::LimiterFindings;

/// Name of the quantity that is given with the load.
const ORIGIN_TIME: &str = "origin_time";

/// Source of a missing quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Counters, error log and settings of the proxy itself.
    Proxy,
    /// Host and processes of the origin server.
    Origin,
    /// Host and processes of the proxy.
    ProxyHost,
    /// Host and threads of the generator.
    GeneratorHost,
    /// A time at a low load, for comparison.
    LowLoad,
    /// Response time of the origin.
    OriginTime,
    /// Figures of the load.
    Load,
}

impl Source {
    const ALL: [Source; 7] = [
        Source::ProxyHost,
        Source::Proxy,
        Source::Origin,
        Source::LowLoad,
        Source::GeneratorHost,
        Source::OriginTime,
        Source::Load,
    ];

    fn reads(self) -> &'static str {
        match self {
            Source::Proxy => "the server's own counters and settings, which could not be read",
            Source::Origin => "the origin server, of which nothing could be read",
            Source::ProxyHost => "the server's processes and host, which could not be read",
            Source::GeneratorHost => "the generator's host, which could not be read",
            Source::LowLoad => "a time at a low load, and there was none",
            Source::OriginTime => "the time of the origin's responses, which was not measured",
            Source::Load => "figures of the load that are not known",
        }
    }

    fn help(self) -> &'static str {
        match self {
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

    /// Returns the source of a quantity; for a ratio, the source of its missing part.
    fn of(quantity: &str, found: &LimiterFindings) -> Source {
        if found.evidence.quantities.contains_key(quantity) {
            return Source::LowLoad;
        }
        if quantity == ORIGIN_TIME {
            return Source::OriginTime;
        }
        match Quantities::builtin().get(quantity).map(|quantity| &quantity.from) {
            Some(Derivation::Setting(_)) => Source::Proxy,
            Some(Derivation::Samples(columns)) => match columns.role {
                _ if columns.table == "proxy" => Source::Proxy,
                Some(Role::Origin) => Source::Origin,
                Some(Role::Generator) => Source::GeneratorHost,
                Some(Role::Proxy) | None => Source::ProxyHost,
            },
            Some(Derivation::Ratio { of, by }) => {
                let missing =
                    [of, by].into_iter().find(|name| found.evidence.absent.contains_key(*name));
                missing.map_or(Source::Load, |name| Source::of(name, found))
            }
            _ => Source::Load,
        }
    }
}

/// Explains why no limiter is named although limits are unjudged: which limits, why, and the remedy.
pub(super) fn clause(found: &LimiterFindings) -> String {
    let unknown = &found.judgement.unknown;
    // The first of those that most limits share.
    let shared = Source::ALL
        .into_iter()
        .rev()
        .max_by_key(|source| unknown.iter().filter(|limit| lacks(limit, *source, found)).count());
    let source = shared.unwrap_or(Source::Load);
    let lacking: Vec<&Unknown> =
        unknown.iter().filter(|limit| lacks(limit, source, found)).collect();
    let why =
        sampler_said(&lacking, source, found).map_or_else(String::new, |why| format!(" ({why})"));
    format!(
        "{} could not be judged, because {} {}{why}; {}",
        listed(&lacking),
        if lacking.len() == 1 { "it shows only in" } else { "they show only in" },
        source.reads(),
        source.help()
    )
}

/// Returns true if a limit could not be judged because a quantity from this source is missing.
fn lacks(unknown: &Unknown, source: Source, found: &LimiterFindings) -> bool {
    let mut missing = unknown.missing.iter();
    missing.any(|name| Source::of(name, found) == source)
}

/// Returns the sampler's own reason if a host could not be read.
fn sampler_said(lacking: &[&Unknown], source: Source, found: &LimiterFindings) -> Option<String> {
    let mut of_source = lacking
        .iter()
        .flat_map(|limit| &limit.missing)
        .filter(|name| Source::of(name, found) == source);
    of_source.find_map(|name| match found.evidence.absent.get(name)? {
        Absent::Missing { why, .. } if [Source::ProxyHost, Source::Proxy].contains(&source) => {
            Some(why.clone())
        }
        _ => None,
    })
}

/// Lists two names and the number of the others.
fn listed(lacking: &[&Unknown]) -> String {
    let names: Vec<String> = lacking.iter().map(|limit| limiter_name(&limit.limiter)).collect();
    match &names[..] {
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [one, other, _] => format!("{one}, {other} and one more limit"),
        [one, other, ..] => format!("{one}, {other} and {} more limits", names.len() - 2),
        [] => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_limits::{Answer, Evidence, Judgement};

    use super::*;
    use crate::findings::Stretch;
    use crate::limiter::sentence;

    /// Findings about a server whose limits could not be judged, each because a quantity is missing.
    fn found(lacking: &[(&str, &str, Option<&str>)]) -> LimiterFindings {
        let unknown = lacking.iter().map(|(limiter, quantity, _)| Unknown {
            limiter: (*limiter).to_owned(),
            missing: vec![(*quantity).to_owned()],
        });
        let absent = lacking.iter().map(|(_, quantity, why)| {
            let absent = match why {
                Some(why) => {
                    Absent::Missing { column: "processes".to_owned(), why: (*why).to_owned() }
                }
                None => Absent::NotSampled("proxy".to_owned()),
            };
            ((*quantity).to_owned(), absent)
        });
        LimiterFindings {
            load: String::new(),
            arm: "shop".to_owned(),
            pods: None,
            stretch: Stretch {
                from_s: 0.0,
                until_s: 5.0,
                rate: None,
                saturated: true,
                stage: None,
            },
            low: None,
            judged: (1, 1),
            confirmations: Vec::new(),
            judgement: Judgement {
                answer: Answer::DoNotKnow,
                findings: Vec::new(),
                ruled_out: Vec::new(),
                unknown: unknown.collect(),
                seen: Vec::new(),
            },
            evidence: Evidence { quantities: BTreeMap::new(), absent: absent.collect() },
            series: Vec::new(),
            workers: Vec::new(),
        }
    }

    #[test]
    fn the_reason_that_most_limits_share_is_told_with_what_helps() {
        let connections = ("worker_connections", "log_worker_connections", None);
        let limited = ("rate_limit", "log_limit_req", None);
        let compressed = ("compression", "compression_on", None);
        let origin = ("origin", "origin_thread", None);
        let denied = Some("permission denied");
        for (lacking, told) in [
            (
                &[connections, limited, compressed, origin][..],
                "What limits shop is not known: worker connections, rate limit and one more limit could not be judged, because \
                 they show only in the server's own counters and settings, which could not be read; \
                 `weir run STUDY` or `weir capacity STUDY` with its configuration reads them of a copy that weir starts.",
            ),
            (
                &[("rate_limit", "log_limit_req", Some("no `stats socket`"))],
                "What limits shop is not known: rate limit could not be judged, because it shows only in the server's own \
                 counters and settings, which could not be read (no `stats socket`); `weir run STUDY` or `weir capacity STUDY` \
                 with its configuration reads them of a copy that weir starts.",
            ),
            (
                &[origin],
                "What limits shop is not known: origin could not be judged, because it shows only in the origin server, of \
                 which nothing could be read; a study in which weir starts proxy and origin reads it.",
            ),
            (
                &[("origin", "origin_time", None)],
                "What limits shop is not known: origin could not be judged, because it shows only in the time of the origin's \
                 responses, which was not measured; a load at that rate, in a study in which weir starts proxy and origin, \
                 measures it.",
            ),
            (
                &[("quota", "throttled", denied), ("softirq", "cpu_softirq_busiest", denied)],
                "What limits shop is not known: quota and softirq could not be judged, because they show only in the server's \
                 processes and host, which could not be read (permission denied); run weir as root on the server's host, or \
                 name that host with `--place proxy=HOST`.",
            ),
        ] {
            assert_eq!(sentence(&found(lacking)), told);
        }
    }
}
