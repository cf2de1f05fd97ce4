//! The words for metrics, verdicts and validity, the same in every output.

use std::time::Duration;

pub use weir_analysis::capacity::sentence as capacity;
pub use weir_analysis::metric_words as metric;

use weir_analysis::findings::{Comparison, Holding, PublishedVerdict, Verdict};
use weir_model::record::{
    AskedRecord, BracketRecord, FROM_FILES, SearchStage, Validity, replaced_sentences,
};
use weir_model::study::{DelaySpec, Metric, OriginSpec, ProxyKind};

use crate::number;

/// Name of a metric at the head of a column, with its unit where the figures carry none.
pub fn metric_head(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "rate/s",
        Metric::ReceivedBytes => "Gbit/s",
        Metric::CpuPerRequest => "CPU/req",
        Metric::ResponseP50 => "p50",
        Metric::ResponseP99 => "p99",
    }
}

/// The same text with a capital letter, for the start of a sentence.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// The same, but for names of proxies, which have one spelling.
pub fn sentence(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    match ProxyKind::ALL
        .iter()
        .any(|kind| kind.title() == first.trim_end_matches(','))
    {
        true => text.to_owned(),
        false => capital(text),
    }
}

/// Names of loads; of many, the first and the last.
pub fn loads(loads: &[String]) -> String {
    match loads {
        [first, _, _, .., last] => format!("{first} to {last}"),
        few => few.join(", "),
    }
}

/// What loads ask of a configuration of the user's: `closed: *:80 in clear (/etc/nginx/nginx.conf:12): server
/// shop.example (…:10), location / (…:14), passes it on`.
pub fn asked(record: &AskedRecord) -> String {
    let places = record.places();
    let first = places.first().map_or("", String::as_str);
    let more = match places.len() {
        0 | 1 => String::new(),
        count => format!("; and {} more places", count - 1),
    };
    format!("{}: {}: {first}{more}", loads(&record.loads), record.at())
}

/// Says what copies of the user's configurations replace, for what these loads ask, a sentence each; nothing where weir
/// wrote the configurations.
pub fn replaced<'r>(
    origin: &OriginSpec,
    asked: impl IntoIterator<Item = &'r AskedRecord>,
) -> Vec<String> {
    let asked: Vec<&AskedRecord> = asked.into_iter().collect();
    let mut requests = asked.iter().flat_map(|record| &record.requests);
    let is_asked = requests.any(|request| request.answer != FROM_FILES);
    let servers = is_asked.then(|| servers_words(origin));
    let others = asked.iter().flat_map(|record| &record.replaced);
    servers
        .into_iter()
        .chain(replaced_sentences(others))
        .collect()
}

/// Says who answers in place of the user's servers.
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

/// Which direction is the good one.
pub fn direction(metric: Metric) -> &'static str {
    if metric.higher_is_better() {
        "higher is better"
    } else {
        "lower is better"
    }
}

/// What an A/A arm does that should not: said in place of better or worse.
pub const DIFFERS: &str = "differs";

/// What an arm is whose levels changed nothing as things stand: said in place of equivalent.
pub const INERT: &str = "inert";

/// The same of an arm that changes other things too.
pub const PARTLY_INERT: &str = "partly inert";

/// What an arm is whose purpose shows in a counter that did not move.
pub const WITHOUT_EFFECT: &str = "did not take effect";

/// The sign of all three.
pub const INERT_SIGN: &str = "◇";

/// A sign of its own for every verdict, so that colour is never alone.
pub fn verdict_sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "▲",
        Verdict::Worse => "▼",
        Verdict::Equivalent => "■",
        Verdict::Inconclusive => "○",
        Verdict::Invalid => "×",
    }
}

/// Place of a verdict in a list: those that say most first.
pub fn verdict_rank(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Better | Verdict::Worse => 0,
        Verdict::Equivalent => 1,
        Verdict::Inconclusive => 2,
        Verdict::Invalid => 3,
    }
}

/// What an arm does with a limit, in words.
pub fn limit(verdict: Holding) -> &'static str {
    match verdict {
        Holding::Holds => "holds",
        Holding::DoesNotHold => "does not hold",
        Holding::NotShown => "not shown to hold",
        Holding::Invalid => "invalid",
    }
}

/// The verdict on a comparison that a verdict on a limit is as good as: it lends its sign and style.
pub fn limit_as_verdict(verdict: Holding) -> Verdict {
    match verdict {
        Holding::Holds => Verdict::Better,
        Holding::DoesNotHold => Verdict::Worse,
        Holding::NotShown => Verdict::Inconclusive,
        Holding::Invalid => Verdict::Invalid,
    }
}

/// A verdict on something published, in words.
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

/// An interval that is believed less than this is not shown: it would look like knowledge.
pub(crate) const LEAST_CONFIDENCE: f64 = 0.8;

/// The interval of a comparison, and its true confidence where so few blocks cannot give the one asked for.
pub fn interval(comparison: &Comparison, asked: f64) -> String {
    if comparison.confidence < LEAST_CONFIDENCE {
        return number::NONE.to_owned();
    }
    let text = number::ratio_interval(comparison.ratio, comparison.interval);
    match text != number::NONE && comparison.confidence < asked - 0.0005 {
        true => format!("{text} at {}", number::level(comparison.confidence)),
        false => text,
    }
}

/// Validity as it stands beside a figure.
pub fn validity(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "VALID",
        Validity::Suspect => "SUSPECT",
        Validity::Invalid => "INVALID",
    }
}

/// What a step of a search was for.
pub(crate) fn stage(stage: SearchStage) -> &'static str {
    match stage {
        SearchStage::Closed => "a closed loop",
        SearchStage::Ramp => "a wide step",
        SearchStage::Dwell => "a short trial",
        SearchStage::Hold => "a long trial",
        SearchStage::Burst => "a burst",
    }
}

/// Sentence about a search that goes on: its claim so far, or the rates between which the capacity seems to be, and the
/// time that all searches still take.
pub fn bracket(known: &BracketRecord, left: Duration) -> String {
    let between = match (known.held, known.between) {
        (Some(held), Some((low, high))) => format!(
            "carries {} to {} requests/s so far ({}/s held for {:.0} s)",
            number::rate(low),
            number::rate(high),
            number::rate(held.rate),
            held.seconds
        ),
        (None, Some((low, high))) => format!(
            "between {} and {} requests/s",
            number::rate(low),
            number::rate(high)
        ),
        (_, None) => "nothing is known yet".to_owned(),
    };
    let seconds = left.as_secs_f64().round().max(1.0) as u64;
    let left = number::length(Duration::from_secs(seconds));
    let step = stage(known.stage);
    format!("{}: {between}, after {step}; about {left} left", known.arm)
}
