//! Reason that most of the limits share that could not be judged.

use weir_limits::{Absent, Derivation, Quantities, Role, Unknown};

use crate::findings::LimiterFindings;

/// Name of the quantity that is given with the load.
const ORIGIN_TIME: &str = "origin_time";

/// Source of a missing quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
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
    /// All sources, the most informative first.
    const ALL: [Source; 7] = [
        Source::ProxyHost,
        Source::Proxy,
        Source::Origin,
        Source::LowLoad,
        Source::GeneratorHost,
        Source::OriginTime,
        Source::Load,
    ];

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

/// Limiters that could not be judged for the same reason, the one that most of them share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged<'f> {
    /// Names of the limiters.
    pub limiters: Vec<&'f str>,
    /// Source of the quantities that they lack.
    pub source: Source,
    /// The sampler's own reason why it could not read the source.
    pub why: Option<&'f str>,
}

/// Finds the reason that most of the limiters share that could not be judged. Of several, the first of [`Source::ALL`].
pub fn find_unjudged(found: &LimiterFindings) -> Unjudged<'_> {
    let unknown = &found.judgement.unknown;
    let shared = Source::ALL
        .into_iter()
        .rev()
        .max_by_key(|source| unknown.iter().filter(|limit| lacks(limit, *source, found)).count());
    let source = shared.unwrap_or(Source::Load);
    let lacking: Vec<&Unknown> =
        unknown.iter().filter(|limit| lacks(limit, source, found)).collect();
    Unjudged {
        limiters: lacking.iter().map(|limit| &*limit.limiter).collect(),
        source,
        why: find_why(&lacking, source, found),
    }
}

/// Returns true if a limit could not be judged because a quantity from this source is missing.
fn lacks(unknown: &Unknown, source: Source, found: &LimiterFindings) -> bool {
    let mut missing = unknown.missing.iter();
    missing.any(|name| Source::of(name, found) == source)
}

/// Returns the sampler's own reason if the proxy or its host could not be read.
fn find_why<'f>(
    lacking: &[&'f Unknown],
    source: Source,
    found: &'f LimiterFindings,
) -> Option<&'f str> {
    let mut of_source = lacking
        .iter()
        .flat_map(|limit| &limit.missing)
        .filter(|name| Source::of(name, found) == source);
    of_source.find_map(|name| match found.evidence.absent.get(name)? {
        Absent::Missing { why, .. } if [Source::ProxyHost, Source::Proxy].contains(&source) => {
            Some(why.as_str())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_reason_that_most_limits_share_is_found() {
        let connections = ("worker_connections", "log_worker_connections", None);
        let limited = ("rate_limit", "log_limit_req", None);
        let compressed = ("compression", "compression_on", None);
        let origin = ("origin", "origin_thread", None);
        let denied = Some("permission denied");
        let host = [("quota", "throttled", denied), ("softirq", "cpu_softirq_busiest", denied)];
        for (lacking, limiters, source, why) in [
            (
                &[connections, limited, compressed, origin][..],
                &["worker_connections", "rate_limit", "compression"][..],
                Source::Proxy,
                None,
            ),
            (
                &[("rate_limit", "log_limit_req", Some("no `stats socket`"))],
                &["rate_limit"],
                Source::Proxy,
                Some("no `stats socket`"),
            ),
            (&[origin], &["origin"], Source::Origin, None),
            (&[("origin", "origin_time", None)], &["origin"], Source::OriginTime, None),
            (
                &[("generator", "generator_thread", denied)],
                &["generator"],
                Source::GeneratorHost,
                None,
            ),
            (&[("origin", "origin_time_share", None)], &["origin"], Source::Load, None),
            (&host, &["quota", "softirq"], Source::ProxyHost, denied),
        ] {
            let findings = fixture::unjudged(lacking);
            assert_eq!(
                find_unjudged(&findings),
                Unjudged { limiters: limiters.to_vec(), source, why }
            );
        }
    }
}
