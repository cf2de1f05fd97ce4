//! The grammars of levels: each function takes a text and returns its canonical spelling, or `None` if the text does
//! not fit.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_model::quantity::{parse_bytes, parse_duration};

use crate::level::{Bounds, write_duration};

/// Parses a whole number of digits only, without sign, blank or separator, so that the proxy reads the text alike.
pub(crate) fn integer(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns the first whole number of a level.
pub(crate) fn first_number(level: &str) -> Option<u64> {
    integer(level.split_whitespace().next()?)
}

/// Returns the last whole number of a level.
pub(crate) fn last_number(level: &str) -> Option<u64> {
    integer(level.split_whitespace().next_back()?)
}

/// Returns true if the text can be a name that a study gives.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Spells a number of CPUs like the API server of Kubernetes: whole CPUs, else thousandths.
pub(crate) fn cpus(text: &str) -> Option<String> {
    let milli = match text.strip_suffix('m') {
        Some(milli) => integer(milli)?,
        None => {
            let milli = text.parse::<f64>().ok()? * 1000.0;
            ((milli - milli.round()).abs() < 1e-6).then(|| milli.round() as u64)?
        }
    };
    (10..=1_000_000).contains(&milli).then(|| match milli % 1000 {
        0 => (milli / 1000).to_string(),
        _ => format!("{milli}m"),
    })
}

/// Spells an amount of memory like the API server of Kubernetes, with the largest binary unit that divides it.
pub(crate) fn memory(text: &str) -> Option<String> {
    let parsed = match text.strip_suffix('i') {
        Some(_) => parse_bytes(&format!("{text}B")),
        None => parse_bytes(text),
    };
    let bytes = parsed.ok().filter(|bytes| *bytes >= 1 << 20)?;
    let mut fitting = [("Gi", 30), ("Mi", 20), ("Ki", 10)]
        .into_iter()
        .filter(|(_, bits)| bytes % (1 << bits) == 0);
    Some(match fitting.next() {
        Some((unit, bits)) => format!("{}{unit}", bytes >> bits),
        None => bytes.to_string(),
    })
}

/// Spells `count` numbers in ascending order, each from `min` to `max`.
pub(crate) fn integers(text: &str, count: usize, min: u64, max: u64) -> Option<String> {
    let parsed: Option<Vec<u64>> = text.split_whitespace().map(integer).collect();
    let numbers = parsed.filter(|numbers| numbers.len() == count && numbers.is_sorted())?;
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.iter().all(|number| (min..=max).contains(number)).then(|| words.join(" "))
}

/// Spells ports in ascending order, with neighbours and overlaps merged into ranges, as the kernel shows them after
/// reading.
pub(crate) fn ports(text: &str) -> Option<String> {
    let mut ranges: Vec<(u64, u64)> = text
        .split(',')
        .map(|item| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last) = (integer(first)?, integer(last)?);
            (first <= last && last <= u64::from(u16::MAX)).then_some((first, last))
        })
        .collect::<Option<_>>()?;
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    let words = merged.into_iter().map(|(first, last)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    });
    Some(words.collect::<Vec<_>>().join(","))
}

/// Parses a duration that is a whole number of steps.
pub(crate) fn stepped(text: &str, step: Duration) -> Option<Duration> {
    let duration = parse_duration(text).ok()?;
    (duration.as_nanos() % step.as_nanos().max(1) == 0).then_some(duration)
}

/// Spells pairs such as `max=1024 inactive=10s`: required keys first, in the order of their names.
pub(crate) fn pairs(
    text: &str,
    required: &BTreeMap<String, Bounds>,
    durations: &BTreeMap<String, Duration>,
) -> Option<String> {
    let mut written = BTreeMap::new();
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=')?;
        let value = match (required.get(key), durations.get(key)) {
            (Some(range), _) => integer(value)
                .filter(|number| (range.min..=range.max).contains(number))?
                .to_string(),
            (None, Some(step)) => write_duration(stepped(value, *step).filter(|d| !d.is_zero())?),
            (None, None) => return None,
        };
        if written.insert(key, format!("{key}={value}")).is_some() {
            return None;
        }
    }
    let mut words = Vec::new();
    for key in required.keys() {
        words.push(written.remove(key.as_str())?);
    }
    words.extend(written.into_values());
    Some(words.join(" "))
}

pub(crate) fn pairs_allowed(
    required: &BTreeMap<String, Bounds>,
    durations: &BTreeMap<String, Duration>,
) -> String {
    let required = required
        .iter()
        .map(|(key, range)| format!("{key}=N (N from {} to {})", range.min, range.max));
    let durations = durations
        .iter()
        .map(|(key, step)| format!("[{key}=DURATION in steps of {}]", write_duration(*step)));
    required.chain(durations).collect::<Vec<_>>().join(" ")
}

/// Spells a list of media types (RFC 9110 §8.3.1) without parameters: sorted, each once.
pub(crate) fn media_types(text: &str) -> Option<String> {
    let mut types: Vec<&str> = text.split_whitespace().collect();
    types.sort_unstable();
    types.dedup();
    let all_valid = types.iter().all(|media_type| {
        media_type
            .split_once('/')
            .is_some_and(|(kind, subtype)| is_media_name(kind) && is_media_name(subtype))
    });
    (all_valid && !types.is_empty()).then(|| types.join(" "))
}

/// Spells a selection of `words` in their order there. Returns `None` for repeated or unknown words.
pub(crate) fn set(text: &str, words: &[String]) -> Option<String> {
    let chosen: Vec<&str> = text.split_whitespace().collect();
    let ordered: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| chosen.contains(word)).collect();
    (!ordered.is_empty() && ordered.len() == chosen.len()).then(|| ordered.join(" "))
}

/// Returns true if the text holds only characters that names and operators of openssl-ciphers(1) are made of.
pub(crate) fn is_cipher_list(text: &str) -> bool {
    text.len() <= 1024
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_+!@=:".contains(&b))
        && text.split(':').all(|item| item.bytes().any(|b| b.is_ascii_alphanumeric()))
}

/// Returns true if the text is a restricted name (RFC 6838 §4.2), as every registered type is.
fn is_media_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#&-^_.+".contains(&b))
}
