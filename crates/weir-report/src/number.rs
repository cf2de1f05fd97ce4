//! Formatting of numbers with sensible digits, units and signs.
//!
//! NaN is written as [`NONE`], because a figure that does not exist must not look like one that does. An infinite time
//! or ratio is [`NEVER`]: requests were not answered.

use std::time::Duration;

use weir_analysis::findings::NEVER_NS;

/// Text for a missing figure.
pub const NONE: &str = "–";
/// Text for an infinite time.
const NEVER: &str = "∞";

/// Formats a number with `decimals` digits after the point and commas between thousands.
fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut text = String::with_capacity(plain.len() + 4);
    if value < 0.0 && plain.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        text.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// Formats a number with three significant digits, and every digit before the point.
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    grouped(value, decimals)
}

/// Formats values from 0 to `top` as a line of at most [`SPARKS`] characters, with a gap for a missing value.
pub fn sparkline(values: &[f64], top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let chunk_length = values.len().div_ceil(SPARKS).max(1);
    let means =
        values.chunks(chunk_length).map(|some| some.iter().sum::<f64>() / some.len() as f64);
    means
        .map(|value| {
            if value.is_finite() && top > 0.0 {
                BARS[((value / top * 8.0).ceil() as usize).clamp(1, 8) - 1]
            } else {
                ' '
            }
        })
        .collect()
}

/// Maximum number of characters of a sparkline.
const SPARKS: usize = 24;

/// Formats requests per second, without the unit: `12,346`, `84.2`.
pub fn rate(value: f64) -> String {
    if value.is_finite() { three_digits(value) } else { NONE.to_owned() }
}

/// Formats requests per second with one decimal, whatever the size: `12,345.7`.
pub fn tenths(value: f64) -> String {
    if value.is_finite() { grouped(value, 1) } else { NONE.to_owned() }
}

/// Formats a rate that a study requests. Whole numbers have no decimals: `10` and not `10.0`.
pub fn asked(value: f64) -> String {
    if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        count(value as u64)
    } else {
        rate(value)
    }
}

/// Formats bytes per second as Gbit/s, without the unit: `1.91`, `0.084`.
pub fn gigabits(bytes_per_second: f64) -> String {
    match bytes_per_second * 8.0 / 1e9 {
        gigabits if !gigabits.is_finite() => NONE.to_owned(),
        gigabits if gigabits < 0.0995 => format!("{gigabits:.4}"),
        gigabits => three_digits(gigabits),
    }
}

/// Formats a count: `1,204,331`.
pub fn count(value: u64) -> String {
    grouped(value as f64, 0)
}

/// Formats a time given in nanoseconds, in a suitable unit: `831 µs`, `1.24 ms`.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns.is_nan() => return NONE.to_owned(),
        ns if ns.is_infinite() => return NEVER.to_owned(),
        _ => {}
    }
    // The bounds are where three digits round up into the next unit.
    let (value, unit) = match ns.abs() {
        n if n < 999.5 => return format!("{} ns", grouped(ns, 0)),
        n if n < 999.5e3 => (ns / 1e3, "µs"),
        n if n < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats times at five quantiles. If even the largest is zero, nothing was recorded, because no request takes no
/// time.
pub(crate) fn quantiles(ns: &[u64; 5], samples: u64) -> [String; 5] {
    let recorded = samples > 0 && ns.iter().any(|ns| *ns > 0);
    ns.map(|ns| {
        if !recorded {
            NONE.to_owned()
        } else if ns == NEVER_NS {
            NEVER.to_owned()
        } else {
            time(ns as f64)
        }
    })
}

/// Formats a chosen time, given in nanoseconds, without superfluous digits: `100 ms`, `62.5 µs`.
pub fn short_time(ns: f64) -> String {
    let text = time(ns);
    match text.split_once(' ') {
        Some((value, unit)) if value.contains('.') => {
            format!("{} {unit}", value.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Formats a duration as one would say it: `250 ms`, `4.8 s`, `2 min 35 s`, `1 h 5 min`.
pub fn length(length: Duration) -> String {
    // What rounds up to a minute is one.
    let seconds = length.as_secs_f64().round() as u64;
    let (high, low) = match seconds {
        0..60 => return short_time(length.as_nanos() as f64),
        60..3600 => ((seconds / 60, "min"), (seconds % 60, "s")),
        _ => {
            let minutes = (length.as_secs_f64() / 60.0).round() as u64;
            ((minutes / 60, "h"), (minutes % 60, "min"))
        }
    };
    let high_part = format!("{} {}", count(high.0), high.1);
    match low.0 {
        0 => high_part,
        _ => format!("{high_part} {} {}", count(low.0), low.1),
    }
}

/// Returns the number of decimals for a ratio: more near 1, for small effects.
fn ratio_decimals(ratio: f64) -> usize {
    match ratio {
        r if r >= 99.95 => 0,
        r if r >= 9.995 => 1,
        r if r >= 1.995 => 2,
        _ => 3,
    }
}

/// Formats a ratio: `2.61×`, `1.004×`.
pub fn ratio(value: f64) -> String {
    match value {
        f64::INFINITY => NEVER.to_owned(),
        // Of what is nothing no decimals are known.
        0.0 => "0×".to_owned(),
        value if value >= 0.0 => format!("{}×", grouped(value, ratio_decimals(value))),
        _ => NONE.to_owned(),
    }
}

/// Formats the interval of a ratio, with as many decimals as the ratio itself: `2.55–2.67`. An unbounded side is
/// described in words.
pub fn ratio_interval(ratio: f64, (low, high): (f64, f64)) -> String {
    let is_one_bound = low == high && (low == 0.0 || low.is_infinite());
    if low.is_nan() || high.is_nan() || ratio.is_nan() || is_one_bound {
        return NONE.to_owned();
    }
    let decimals = ratio_decimals(ratio);
    let [low, high] = [low, high].map(|bound| match bound {
        b if b.is_infinite() => NEVER.to_owned(),
        b => grouped(b.max(0.0), decimals),
    });
    format!("{low}–{high}")
}

/// Formats the interval of a time: `1.10 ms to 1.30 ms`. Empty if it is not an interval.
pub fn time_interval((low, high): (f64, f64)) -> String {
    if low.is_finite() && !high.is_nan() {
        format!("{} to {}", time(low), time(high))
    } else {
        String::new()
    }
}

/// Formats a share as a percentage without sign: 0.0134 is `1.3 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return NONE.to_owned();
    }
    let value = share * 100.0;
    let decimals = usize::from(value.abs() < 9.95);
    format!("{} %", grouped(value, decimals))
}

/// Formats a level or a confidence as a percentage without superfluous digits: 0.95 is `95 %`.
pub fn level(share: f64) -> String {
    if !share.is_finite() {
        return NONE.to_owned();
    }
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a ratio as a signed change: 1.004 is `+0.4 %`, 0.97 is `−3.0 %`.
pub fn change(ratio: f64) -> String {
    if !ratio.is_finite() {
        return NONE.to_owned();
    }
    let text = percent(ratio - 1.0);
    if ratio > 1.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        format!("+{text}")
    } else {
        text
    }
}

/// Formats a p-value: `0.43`, `0.0021`, `<0.0001`.
pub fn p_value(p: f64) -> String {
    match p {
        p if !p.is_finite() => NONE.to_owned(),
        p if p < 0.0001 => "<0.0001".to_owned(),
        p if p < 0.001 => format!("{p:.4}"),
        p if p < 0.0995 => format!("{p:.3}"),
        p => format!("{:.2}", p.min(1.0)),
    }
}

/// Formats bytes in binary units: `7.7 GiB`.
pub fn bytes(value: u64) -> String {
    let (mut scaled, mut unit) = (value as f64, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if scaled < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    let text = format!("{scaled:.1}");
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats bytes per second in binary units with three digits: `1.17 MiB/s`.
pub fn bytes_per_second(value: f64) -> String {
    let (value, unit) = match value {
        n if n < 1000.0 => return format!("{n:.0} B/s"),
        n if n < 1024.0 * 999.5 => (n / 1024.0, "KiB"),
        n if n < 1024.0 * 1024.0 * 999.5 => (n / (1024.0 * 1024.0), "MiB"),
        n => (n / (1024.0 * 1024.0 * 1024.0), "GiB"),
    };
    format!("{} {unit}/s", three_digits(value))
}

/// Formats the number of one thing per other thing: `1.000`, `<0.001`.
pub fn share(value: f64) -> String {
    match value {
        share if share > 0.0 && share < 0.0005 => "<0.001".to_owned(),
        share if share.is_finite() => format!("{share:.3}"),
        _ => NONE.to_owned(),
    }
}

/// Formats a count with its noun: `1 block`, `2 blocks`.
pub fn plural(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A formatting function with inputs and expected outputs.
    type Case = (fn(f64) -> String, &'static [(f64, &'static str)]);

    const INFINITE: f64 = f64::INFINITY;

    #[rustfmt::skip]
    const CASES: [Case; 13] = [
        // What was asked for is whole where it was written so.
        (asked, &[(10.0, "10"), (1000.0, "1,000"), (33.2, "33.2"), (0.5, "0.50"), (f64::NAN, NONE)]),
        // Digits suit the size of the number.
        (rate, &[(12_345.6, "12,346"), (1_234_567.0, "1,234,567"), (999.99, "1,000"), (84.21, "84.2"),
            (1.0 / 3.0, "0.33"), (-0.001, "0.00"), (f64::NAN, NONE), (INFINITE, NONE)]),
        (tenths, &[(12_345.67, "12,345.7"), (999.96, "1,000.0")]),
        // A time never shows a thousand of its unit.
        (time, &[(0.0, "0 ns"), (999.4, "999 ns"), (999.6, "1.00 µs"), (12_345.0, "12.3 µs"), (9_996.0, "10.0 µs"),
            (99_960.0, "100 µs"), (999_600.0, "1.00 ms"), (1_240_000.0, "1.24 ms"), (12e9, "12.0 s"), (3_600e9, "3,600 s")]),
        (short_time, &[(50e6, "50 ms"), (62_500.0, "62.5 µs"), (100e6, "100 ms")]),
        (|seconds| length(Duration::from_secs_f64(seconds)), &[(0.25, "250 ms"), (4.8, "4.8 s"), (59.6, "1 min"),
            (154.6, "2 min 35 s"), (3_598.0, "59 min 58 s"), (3_599.6, "1 h"), (3_900.0, "1 h 5 min"), (7_200.0, "2 h")]),
        (ratio, &[(2.6134, "2.61×"), (1.0042, "1.004×"), (f64::NAN, NONE), (INFINITE, NEVER), (0.0, "0×"), (-1.0, NONE)]),
        // Changes carry their sign, and nothing carries none.
        (change, &[(1.0042, "+0.4 %"), (0.97, "−3.0 %"), (1.0, "0.0 %"), (1.0001, "0.0 %"), (2.61, "+161 %")]),
        // Small probabilities are bounded and not rounded to nothing.
        (p_value, &[(0.0, "<0.0001"), (0.00042, "0.0004"), (0.0021, "0.002"), (0.0499, "0.050"), (0.431, "0.43"),
            (1.2, "1.00")]),
        (level, &[(0.95, "95 %"), (0.9876, "98.76 %")]),
        (bytes_per_second, &[(999.0, "999 B/s"), (1024.0, "1.00 KiB/s"), (1_230_000.5, "1.17 MiB/s"), (5e9, "4.66 GiB/s")]),
        (|value| bytes(value as u64), &[((8_u64 << 30) as f64, "8 GiB"), (1536.0, "1.5 KiB")]),
        (|value| plural(value as u64, "block"), &[(1.0, "1 block"), (1200.0, "1,200 blocks")]),
    ];

    #[test]
    fn numbers_have_the_digits_units_and_signs_that_suit_them() {
        for (place, (write, cases)) in CASES.into_iter().enumerate() {
            for (value, text) in cases {
                assert_eq!(write(*value), *text, "{value} in row {place}");
            }
        }
    }

    #[test]
    fn ratio_and_interval_have_the_same_decimals() {
        assert_eq!(ratio_interval(2.6134, (1.9, 2.671)), "1.90–2.67");
        // An unbounded side is said so.
        assert_eq!(ratio_interval(1.004, (0.0, INFINITE)), "0.000–∞");
    }

    #[test]
    fn a_sparkline_goes_from_0_to_its_top_and_is_never_long() {
        assert_eq!(sparkline(&[0.0, 0.5, 1.0, f64::NAN, 9.0], 1.0), "▁▄█ █");
        assert_eq!(sparkline(&[1.0; 200], 2.0).chars().count(), 23);
        assert_eq!((sparkline(&[], 1.0), sparkline(&[0.0], 0.0)), (String::new(), " ".to_owned()));
    }
}
