//! Quantities as an engineer reads them.

/// A time with three digits in the unit that suits it: `876 ns`, `12.3 µs`, `1.05 ms`, `2.10 s`.
pub(super) fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        n if n < 999.5 => return format!("{n:.0} ns"),
        n if n < 999.5e3 => (n / 1e3, "µs"),
        n if n < 999.5e6 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Bytes per second, in powers of 1024.
pub(super) fn bytes_per_second(bytes: f64) -> String {
    let (value, unit) = match bytes {
        n if n < 1000.0 => return format!("{n:.0} B/s"),
        n if n < 1024.0 * 999.5 => (n / 1024.0, "KiB/s"),
        n if n < 1024.0 * 1024.0 * 999.5 => (n / (1024.0 * 1024.0), "MiB/s"),
        n => (n / (1024.0 * 1024.0 * 1024.0), "GiB/s"),
    };
    format!("{} {unit}", three_digits(value))
}

fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// A whole number in groups of three: `12,345`.
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate with one decimal, in groups of three: `12,345.6`.
pub(super) fn rate(per_second: f64) -> String {
    let tenths = (per_second * 10.0).round() as u64;
    format!("{}.{}", count(tenths / 10), tenths % 10)
}

/// A count with its noun, which takes an `s` but for one.
pub(super) fn counted(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_change_unit_where_they_round_up() {
        let cases = [
            (0.0, "0 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (9_996.0, "10.0 µs"),
            (99_960.0, "100 µs"),
            (999_600.0, "1.00 ms"),
            (1_050_000.0, "1.05 ms"),
            (2_104_000_000.0, "2.10 s"),
            (3_600e9, "3600 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(time(ns), text, "{ns}");
        }
    }

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!(bytes_per_second(999.0), "999 B/s");
        assert_eq!(bytes_per_second(1024.0), "1.00 KiB/s");
        assert_eq!(bytes_per_second(1_230_000.5), "1.17 MiB/s");
        assert_eq!(bytes_per_second(5e9), "4.66 GiB/s");
    }

    #[test]
    fn numbers_are_grouped() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, text) in cases {
            assert_eq!(count(number), text);
        }
        assert_eq!(rate(12_345.67), "12,345.7");
        assert_eq!(rate(999.96), "1,000.0");
        assert_eq!(counted(1, "request"), "1 request");
        assert_eq!(counted(1_000, "request"), "1,000 requests");
    }
}
