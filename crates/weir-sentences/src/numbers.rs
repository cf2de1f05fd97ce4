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

/// Formats an interval of ratios: `1.02 to 1.05`, `0.98 to ∞`.
pub(crate) fn interval((low, high): (f64, f64)) -> String {
    let [low, high] =
        [low, high].map(|end| if end.is_infinite() { "∞".to_owned() } else { format!("{end:.2}") });
    format!("{low} to {high}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
