//! Points in time as logs write them, read to nanoseconds since 1970-01-01T00:00:00Z.

use super::scan::Scan;

const S: i64 = 1_000_000_000;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Nanoseconds since the epoch.
    pub(super) ns: i64,
    /// Whether it names a whole second of the clock, and so may mean any moment in it. A number of
    /// seconds says exactly what it says.
    pub(super) whole_second: bool,
}

/// `1732194001.25`, a date and time of RFC 3339, or one of an access log.
pub(super) fn any(scan: &mut Scan<'_>) -> Option<Stamp> {
    let digits = scan
        .rest()
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    match scan.rest().get(digits) {
        Some(b'-') if digits == 4 => rfc3339(scan),
        Some(b'/') if digits == 2 => access_log(scan),
        _ => seconds(scan),
    }
}

/// Seconds with a fraction or without; from 2255 on they are taken for something else, most likely
/// milliseconds.
fn seconds(scan: &mut Scan<'_>) -> Option<Stamp> {
    let whole = scan.number(1, 10)?;
    if whole >= 9_000_000_000 {
        return None;
    }
    let fraction = fraction(scan)?.unwrap_or(0);
    Some(Stamp {
        ns: whole * S + fraction,
        whole_second: false,
    })
}

/// `2026-11-21T13:00:01.5Z`, `2026-11-21 13:00:01+01:00` (RFC 3339 §5.6).
fn rfc3339(scan: &mut Scan<'_>) -> Option<Stamp> {
    let year = scan.number(4, 4)?;
    scan.byte(b'-')?;
    let month = scan.number(2, 2)?;
    scan.byte(b'-')?;
    let day = scan.number(2, 2)?;
    scan.any_of(b"Tt ")?;
    let (time, fraction) = time_of_day(scan)?;
    let offset = match scan.any_of(b"Zz") {
        Some(_) => 0,
        None => offset(scan)?,
    };
    stamp(days(year, month, day)?, time - offset, fraction)
}

/// `21/Nov/2026:13:00:01 +0000`, as NCSA httpd wrote it first.
pub(super) fn access_log(scan: &mut Scan<'_>) -> Option<Stamp> {
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    let day = scan.number(2, 2)?;
    scan.byte(b'/')?;
    let name = scan.rest().get(..3)?;
    let month = MONTHS.iter().position(|month| month[..] == *name)? as i64 + 1;
    scan.skip(3);
    scan.byte(b'/')?;
    let year = scan.number(4, 4)?;
    scan.byte(b':')?;
    let (time, fraction) = time_of_day(scan)?;
    scan.byte(b' ')?;
    let offset = offset(scan)?;
    stamp(days(year, month, day)?, time - offset, fraction)
}

fn stamp(days: i64, seconds: i64, fraction: Option<i64>) -> Option<Stamp> {
    Some(Stamp {
        ns: (days * 86_400 + seconds) * S + fraction.unwrap_or(0),
        whole_second: fraction.is_none(),
    })
}

/// Seconds since midnight, and the fraction if there is one. 60 is a leap second.
fn time_of_day(scan: &mut Scan<'_>) -> Option<(i64, Option<i64>)> {
    let hour = scan.number(2, 2).filter(|&hour| hour < 24)?;
    scan.byte(b':')?;
    let minute = scan.number(2, 2).filter(|&minute| minute < 60)?;
    scan.byte(b':')?;
    let second = scan.number(2, 2).filter(|&second| second <= 60)?;
    let fraction = fraction(scan)?;
    Some((hour * 3600 + minute * 60 + second, fraction))
}

/// Nanoseconds of `.25`, if that is what comes; digits beyond the ninth are dropped.
fn fraction(scan: &mut Scan<'_>) -> Option<Option<i64>> {
    if scan.byte(b'.').is_none() {
        return Some(None);
    }
    let digits = scan
        .rest()
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let mut ns = scan.number(1, 9)?;
    for _ in digits..9 {
        ns *= 10;
    }
    scan.skip(digits.saturating_sub(9));
    Some(Some(ns))
}

/// Seconds east of Greenwich: `+01:00` or `+0100`.
fn offset(scan: &mut Scan<'_>) -> Option<i64> {
    let sign = match scan.any_of(b"+-")? {
        b'-' => -1,
        _ => 1,
    };
    let hours = scan.number(2, 2).filter(|&hours| hours < 24)?;
    let _ = scan.byte(b':');
    let minutes = scan.number(2, 2).filter(|&minutes| minutes < 60)?;
    Some(sign * (hours * 3600 + minutes * 60))
}

/// Days since 1970-01-01, of dates that nanoseconds in 63 bits can reach (Gregorian calendar; the
/// year is counted from March, so that the leap day is its last).
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1970..2255).contains(&year) || !(1..=length).contains(&day) {
        return None;
    }
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let before_month = (153 * month + 2) / 5;
    let before_year = 365 * year + year / 4 - year / 100 + year / 400;
    // Days from 0000-03-01 to 1970-01-01.
    Some(before_year + before_month + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(i64, bool)> {
        let mut scan = Scan::new(text.as_bytes());
        let stamp = any(&mut scan)?;
        scan.rest()
            .is_empty()
            .then_some((stamp.ns, stamp.whole_second))
    }

    #[test]
    fn the_same_moment_in_every_notation() {
        let s = 1_795_266_001 * S;
        for (text, ns, whole) in [
            ("1795266001", s, false),
            ("1795266001.25", s + S / 4, false),
            ("1795266001.0000000019", s + 1, false),
            ("2026-11-21T13:00:01Z", s, true),
            ("2026-11-21t13:00:01.250z", s + S / 4, false),
            ("2026-11-21 14:30:01+01:30", s, true),
            ("21/Nov/2026:13:00:01 +0000", s, true),
            ("21/Nov/2026:05:00:01 -0800", s, true),
            ("21/Nov/2026:13:00:01.000 +0000", s, false),
            ("0", 0, false),
            ("0.5", S / 2, false),
        ] {
            assert_eq!(read(text), Some((ns, whole)), "{text}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (text, day) in [
            ("1970-01-01", 0),
            ("1970-12-31", 364),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2024-12-31", 20_088),
            ("2100-03-01", 47_541),
        ] {
            let want = Some((day * 86_400 * S, true));
            assert_eq!(read(&format!("{text}T00:00:00Z")), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let texts = "|-1|1.|.5|1732194001123|9000000000|2026-02-29T00:00:00Z|\
            2026-11-21T24:00:00Z|2026-11-21T13:00:01|2026-13-21T13:00:01Z|1969-12-31T23:59:59Z|\
            9999-01-01T00:00:00Z|21/Nov/2026:13:00:01|21/nov/2026:13:00:01 +0000|\
            31/Feb/2026:13:00:01 +0000";
        for text in texts.split('|') {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
