//! Figures in sentences.

/// Formats requests per second: `4,310`, `84.2`.
pub(crate) fn rate(value: f64) -> String {
    if value < 99.95 {
        return format!("{value:.1}").trim_end_matches(".0").to_owned();
    }
    grouped(&format!("{value:.0}"))
}

/// Formats a rate with one decimal below 10, otherwise as a whole number: `0.2`, `470`.
pub(crate) fn rounded_rate(per_second: f64) -> String {
    if per_second >= 10.0 { count(per_second.round() as u64) } else { format!("{per_second:.1}") }
}

/// Formats a count with its noun: `1 worker`, `2 addresses`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = match number {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", count(number))
}

/// Formats a limit, of which `u64::MAX` means none: `1,024`, `unlimited`.
pub(crate) fn limit(number: u64) -> String {
    match number {
        u64::MAX => "unlimited".to_owned(),
        number => count(number),
    }
}

/// Formats a count: `12,310`.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Formats milliseconds with about three significant digits: `30`, `2.1`, `0.094`.
pub(crate) fn ms(ns: f64) -> String {
    let ms = ns / 1e6;
    let text = match ms {
        ms if ms >= 100.0 => return format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms if ms >= 1.0 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a time given in nanoseconds with about three digits: `58 µs`, `2.34 ms`, `1,134 ms`.
pub(crate) fn time(ns: f64) -> String {
    match ns.max(0.0) {
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 99.5e6 => format!("{} ms", ms(ns)),
        ns => format!("{} ms", grouped(&format!("{:.0}", ns / 1e6))),
    }
}

/// Formats a share in percent: `0.25 %`, `2.5 %`, `45 %`.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p < 1.0 => format!("{p:.2} %"),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

fn grouped(digits: &str) -> String {
    let (mut text, count) = (String::new(), digits.len());
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (count - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a ratio: `1.02`, `∞`.
pub(crate) fn ratio(value: f64) -> String {
    if value.is_infinite() { "∞".to_owned() } else { format!("{value:.2}") }
}

/// Formats an interval of ratios: `1.02 to 1.05`, `0.98 to ∞`.
pub(crate) fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", ratio(low), ratio(high))
}

/// Formats a confidence or a band in percent, without superfluous digits: `95 %`, `99.5 %`.
pub(crate) fn level(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

/// Formats a value with its unit, to three digits: `93 %`, `1.2 ms`, `340/s`, `2.1 MB`.
pub fn with_unit(value: f64, unit: &str) -> String {
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
    format!("{sign}{}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_their_unit() {
        for (number, unit, text) in [
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
            assert_eq!(with_unit(number, unit), text);
        }
    }

    #[test]
    fn counts_have_separators_and_nouns_a_plural() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_048_576), "1,048,576");
        assert_eq!(limit(u64::MAX), "unlimited");
        assert_eq!(rounded_rate(0.25), "0.2");
        assert_eq!(rounded_rate(470.4), "470");
        assert_eq!(counted(1, "worker"), "1 worker");
        assert_eq!(counted(2, "worker"), "2 workers");
        assert_eq!(counted(2, "address"), "2 addresses");
    }
}
