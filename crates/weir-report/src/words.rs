//! The words for metrics, verdicts and validity, the same in every output.

use std::time::Duration;

pub use weir_sentences::metric_words as metric;

use weir_analysis::findings::{Comparison, Holding, PublishedVerdict, Verdict};
use weir_model::record::{
    AskedRecord, BracketRecord, FROM_FILES, SearchStage, Validity, replaced_sentences,
};
use weir_model::study::{DelaySpec, Metric, OriginSpec, ProxyKind};

use crate::number;

/// Returns the name of a metric for the head of a column, with its unit if the figures have none.
pub fn metric_head(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "rate/s",
        Metric::ReceivedBytes => "Gbit/s",
        Metric::CpuPerRequest => "CPU/req",
        Metric::ResponseP50 => "p50",
        Metric::ResponseP99 => "p99",
    }
}

/// Formats `2026-11-21T06:17:45.123Z` as `2026-11-21 06:17 UTC`. Other text is returned as it is.
pub fn instant(rfc3339: &str) -> String {
    let parts = rfc3339
        .strip_suffix('Z')
        .and_then(|utc| utc.split_once('T'))
        .filter(|(date, _)| date.len() == 10 && date.is_ascii());
    match parts.and_then(|(date, time)| Some((date, time.get(..5)?))) {
        Some((date, time)) => format!("{date} {time} UTC"),
        None => rfc3339.to_owned(),
    }
}

/// Returns the text with a capital letter at its begin.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Returns the text with a capital letter at its begin, unless that is the name of a proxy, which has one spelling.
pub fn sentence(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    if ProxyKind::ALL.iter().any(|kind| kind.title() == first.trim_end_matches(',')) {
        text.to_owned()
    } else {
        capital(text)
    }
}

/// Joins names of loads. Of four and more, only the first and the last are named.
pub fn loads(loads: &[String]) -> String {
    match loads {
        [first, _, _, .., last] => format!("{first} to {last}"),
        few => few.join(", "),
    }
}

/// Formats the destination of loads in a user's configuration: `closed: *:80 in clear (/etc/nginx/nginx.conf:12):
/// server shop.example (…:10), location / (…:14), passes it on`.
pub fn asked(record: &AskedRecord) -> String {
    let places = record.places();
    let first = places.first().map_or("", String::as_str);
    let more = match places.len() {
        0 | 1 => String::new(),
        count => format!("; and {} more places", count - 1),
    };
    format!("{}: {}: {first}{more}", loads(&record.loads), record.at())
}

/// Describes what copies of the user's configurations replace for the requests of these loads, one sentence each. Empty
/// if weir wrote the configurations.
pub fn replaced<'r>(
    origin: &OriginSpec,
    asked: impl IntoIterator<Item = &'r AskedRecord>,
) -> Vec<String> {
    let records: Vec<&AskedRecord> = asked.into_iter().collect();
    let mut requests = records.iter().flat_map(|record| &record.requests);
    let is_asked = requests.any(|request| request.answer != FROM_FILES);
    let servers = is_asked.then(|| servers_words(origin));
    let replaced = records.iter().flat_map(|record| &record.replaced);
    servers.into_iter().chain(replaced_sentences(replaced)).collect()
}

/// Describes the server that replaces the user's servers.
fn servers_words(origin: &OriginSpec) -> String {
    if let Some(address) = origin.address {
        return format!(
            "your servers: the one at {address} answers for all (`origin` in the study)"
        );
    }
    let delay = match origin.delay {
        DelaySpec::None => "at once".to_owned(),
        DelaySpec::Fixed(time) => format!("after {}", number::length(time)),
        DelaySpec::Uniform(low, high) => {
            format!("after {} to {}", number::length(low), number::length(high))
        }
        DelaySpec::Exponential(mean) => format!("after {} on average", number::length(mean)),
    };
    format!(
        "your servers: weir's origin server answers in their place, {} of {} {delay} (`origin` in the study)",
        number::bytes(origin.size),
        origin.content_type
    )
}

/// Returns the direction in which the metric improves.
pub fn direction(metric: Metric) -> &'static str {
    if metric.higher_is_better() { "higher is better" } else { "lower is better" }
}

/// Verdict on an A/A arm that should not differ, in place of better or worse.
pub const DIFFERS: &str = "differs";

/// Verdict on an arm whose levels changed nothing as things stand, in place of equivalent.
pub const INERT: &str = "inert";

/// Verdict on an arm that has inert levels and other changes too.
pub const PARTLY_INERT: &str = "partly inert";

/// Verdict on an arm whose purpose is to change a counter that did not change.
pub const WITHOUT_EFFECT: &str = "did not take effect";

/// Sign of [`INERT`], [`PARTLY_INERT`] and [`WITHOUT_EFFECT`].
pub const INERT_SIGN: &str = "◇";

/// Returns the sign of a verdict. Each verdict has its own, so that colour is never the only sign.
pub fn verdict_sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "▲",
        Verdict::Worse => "▼",
        Verdict::Equivalent => "■",
        Verdict::Inconclusive => "○",
        Verdict::Invalid => "×",
    }
}

/// Returns the rank of a verdict in a list, the most decisive first.
pub fn verdict_rank(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Better | Verdict::Worse => 0,
        Verdict::Equivalent => 1,
        Verdict::Inconclusive => 2,
        Verdict::Invalid => 3,
    }
}

/// Returns the verdict on an arm's limit, in words.
pub fn limit(verdict: Holding) -> &'static str {
    match verdict {
        Holding::Holds => "holds",
        Holding::DoesNotHold => "does not hold",
        Holding::NotShown => "not shown to hold",
        Holding::Invalid => "invalid",
    }
}

/// Returns the comparison verdict whose sign and style represent a verdict on a limit.
pub fn limit_as_verdict(verdict: Holding) -> Verdict {
    match verdict {
        Holding::Holds => Verdict::Better,
        Holding::DoesNotHold => Verdict::Worse,
        Holding::NotShown => Verdict::Inconclusive,
        Holding::Invalid => Verdict::Invalid,
    }
}

/// Returns the verdict on a published result, in words.
pub fn published(verdict: PublishedVerdict) -> &'static str {
    match verdict {
        PublishedVerdict::Confirmed => "confirmed",
        PublishedVerdict::ConfirmedSmaller => "confirmed, but smaller here",
        PublishedVerdict::ConfirmedLarger => "confirmed, and larger here",
        PublishedVerdict::NoneEither => "confirmed: no effect",
        PublishedVerdict::NoEffectHere => "no effect here",
        PublishedVerdict::EffectHere => "an effect here that was not published",
        PublishedVerdict::Opposite => "the opposite here",
        PublishedVerdict::Inconclusive => "inconclusive",
        PublishedVerdict::Obsolete => "obsolete",
        PublishedVerdict::Inert => "inert here",
        PublishedVerdict::NotMeasured => "not measured",
    }
}

/// Lowest confidence at which an interval is shown. Below it the interval would look like knowledge.
pub(crate) const LEAST_CONFIDENCE: f64 = 0.8;

/// Formats the interval of a comparison, with its true confidence if the number of blocks is too small for the
/// confidence `asked`.
pub fn interval(comparison: &Comparison, asked: f64) -> String {
    if comparison.confidence < LEAST_CONFIDENCE {
        return number::NONE.to_owned();
    }
    let text = number::ratio_interval(comparison.ratio, comparison.interval);
    if text != number::NONE && comparison.confidence < asked - 0.0005 {
        format!("{text} at {}", number::level(comparison.confidence))
    } else {
        text
    }
}

/// Returns the validity as it is written beside a figure.
pub fn validity(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "VALID",
        Validity::Suspect => "SUSPECT",
        Validity::Invalid => "INVALID",
    }
}

/// Returns the purpose of a step of a search.
pub(crate) fn stage(stage: SearchStage) -> &'static str {
    match stage {
        SearchStage::Closed => "a closed loop",
        SearchStage::Ramp => "a wide step",
        SearchStage::Dwell => "a short trial",
        SearchStage::Hold => "a long trial",
        SearchStage::Burst => "a burst",
    }
}

/// Formats a sentence about a running search: its claim so far, or the rates between which the capacity seems to be,
/// and the remaining time of all searches.
pub fn bracket(known: &BracketRecord, left: Duration) -> String {
    let between = match (known.held, known.between) {
        (Some(held), Some((low, high))) => format!(
            "carries {} to {} requests/s so far ({}/s held for {:.0} s)",
            number::rate(low),
            number::rate(high),
            number::rate(held.rate),
            held.seconds
        ),
        (None, Some((low, high))) => {
            format!("between {} and {} requests/s", number::rate(low), number::rate(high))
        }
        (_, None) => "nothing is known yet".to_owned(),
    };
    let seconds = left.as_secs_f64().round().max(1.0) as u64;
    let remaining = number::length(Duration::from_secs(seconds));
    let step = stage(known.stage);
    format!("{}: {between}, after {step}; about {remaining} left", known.arm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_shortened_only_when_it_is_understood() {
        assert_eq!(instant("2026-11-21T06:17:45Z"), "2026-11-21 06:17 UTC");
        for other in ["2026-11-21T06:17:45+01:00", "yesterday", "Té€Z"] {
            assert_eq!(instant(other), other);
        }
    }
}
