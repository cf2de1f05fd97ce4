//! Formats values and sentences for display.

use crate::evidence::Evidence;

/// Returns the names in braces of a sentence.
pub(crate) fn slots(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name))
}

/// Replaces the names in braces of a sentence by values.
pub(crate) fn filled(sentence: &str, evidence: &Evidence) -> String {
    let mut text = sentence.to_owned();
    for slot in slots(sentence) {
        let words = match evidence.quantities.get(slot) {
            Some(fact) => shown(fact.value, &fact.unit),
            None => "?".to_owned(),
        };
        text = text.replace(&format!("{{{slot}}}"), &words);
    }
    text
}

/// Formats a value with its unit, to three digits: `93 %`, `1.2 ms`, `340/s`, `2.1 MB`.
pub fn shown(value: f64, unit: &str) -> String {
    match unit {
        // A ratio to something that is no bound: nobody thinks of 1,461 %.
        "share" if value >= 10.0 => format!("{} times", digits(value)),
        "share" => format!("{} %", digits(100.0 * value)),
        "s" => {
            let (scale, name) =
                step(value, &[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]);
            format!("{} {name}", digits(value / scale))
        }
        "bytes" | "bytes/s" => {
            let (scale, name) =
                step(value, &[(1.0, "bytes"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")]);
            format!("{} {name}{}", digits(value / scale), &unit["bytes".len()..])
        }
        "/s" => format!("{}/s", digits(value)),
        "" => digits(value),
        unit => format!("{} {unit}", digits(value)),
    }
}

/// Returns the largest step that the value reaches, or else the first.
fn step<'a>(value: f64, steps: &[(f64, &'a str)]) -> (f64, &'a str) {
    let reached = steps.iter().rev().find(|(scale, _)| value.abs() >= *scale);
    reached.or(steps.first()).copied().unwrap_or((1.0, ""))
}

/// Formats a number with three digits, no exponent, and thousands separators.
fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let order = value.abs().log10().floor();
    let places = (2.0 - order).clamp(0.0, 6.0);
    let text = format!("{value:.*}", places as usize);
    let short =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (sign, number) = match short.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", short),
    };
    let integer = number.split('.').next().unwrap_or(number);
    if integer.len() < 4 {
        return short.to_owned();
    }
    let mut grouped = String::new();
    for (place, digit) in integer.chars().enumerate() {
        if place > 0 && (integer.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_their_unit() {
        for (number, unit, shown) in [
            (0.9312, "share", "93.1 %"),
            (1.0, "share", "100 %"),
            (14.61, "share", "14.6 times"),
            (0.00123, "s", "1.23 ms"),
            (2.5e-7, "s", "250 ns"),
            (3.0, "s", "3 s"),
            (0.0, "s", "0 ns"),
            (4216.0, "/s", "4,216/s"),
            (30_941.7, "/s", "30,942/s"),
            (4.0, "/s", "4/s"),
            (2_100_000.0, "bytes/s", "2.1 MB/s"),
            (120.0, "bytes", "120 bytes"),
            (0.98, "CPUs", "0.98 CPUs"),
            (1_234_567.0, "", "1,234,567"),
        ] {
            assert_eq!(super::shown(number, unit), shown);
        }
    }

    #[test]
    fn what_is_not_known_is_not_shown_as_zero() {
        let text = filled("{a} of {b}", &Evidence::default());
        assert_eq!(text, "? of ?");
    }
}
