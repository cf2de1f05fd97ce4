//! Compares spellings by their meaning to nginx, so that a directive that is already right is left as its author wrote
//! it.

use weir_configuration::place::{like, unit};
use weir_parameters::LevelKind;

/// Returns true if the arguments of a directive mean the same.
pub(super) fn same(kind: &LevelKind, a: &[&str], b: &[&str]) -> bool {
    match kind {
        LevelKind::Set(_) | LevelKind::MediaTypes | LevelKind::Pairs { .. } => {
            sorted(a) == sorted(b)
        }
        _ => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_word(kind, a, b)),
    }
}

fn sorted(words: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    words.sort();
    words
}

/// Returns true if two words mean the same. In `key=value` and `shared:name:size` the last part may be spelled
/// differently.
pub(super) fn same_word(kind: &LevelKind, a: &str, b: &str) -> bool {
    let (head, a_tail) = split(a);
    let (other, b_tail) = split(b);
    let same_quantity = match kind {
        LevelKind::Duration { .. } => equal(milliseconds(a_tail), milliseconds(b_tail)),
        LevelKind::Size { .. } => equal(bytes(a_tail), bytes(b_tail)),
        LevelKind::Switch => a_tail.eq_ignore_ascii_case(b_tail),
        LevelKind::Integer { .. } => equal(a_tail.parse::<u64>().ok(), b_tail.parse().ok()),
        _ => false,
    };
    a == b || (head == other && same_quantity)
}

/// Returns the word that replaces another one, in the style of its author: a time without a unit if the old one had
/// none, or in the old minutes, hours or days if it comes out even; a size in bytes if the old one had no unit, or with
/// a capital unit.
pub(super) fn in_style(kind: &LevelKind, found: &str, wanted: &str) -> String {
    let (head, tail) = split(wanted);
    let current = split(found).1;
    let styled = match kind {
        LevelKind::Duration { .. } => {
            let wanted = milliseconds(tail).zip(milliseconds(current)).map(|(wanted, _)| wanted);
            wanted.and_then(|wanted| like(current, wanted, &TIMES))
        }
        LevelKind::Size { .. } if bytes(current).is_some() => match unit(current) {
            "" => bytes(tail).map(|wanted| wanted.to_string()),
            unit if unit.starts_with(char::is_uppercase) => Some(tail.to_ascii_uppercase()),
            _ => None,
        },
        _ => None,
    };
    match styled {
        Some(styled) => format!("{head}{styled}"),
        None => wanted.to_owned(),
    }
}

/// Units in which people write times, in milliseconds; seconds and finer units are the catalog's own.
const TIMES: [(&str, u64); 5] =
    [("", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

fn equal(a: Option<u64>, b: Option<u64>) -> bool {
    a.is_some() && a == b
}

fn split(word: &str) -> (&str, &str) {
    word.split_at(word.rfind(['=', ':']).map_or(0, |at| at + 1))
}

/// Parses a size as `ngx_parse_offset` does, in bytes.
fn bytes(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match word[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << unit)
}

/// Parses a time as `ngx_parse_time` does, in milliseconds: numbers with units and blanks between them; a number
/// without a unit is in seconds.
fn milliseconds(word: &str) -> Option<u64> {
    let mut total = 0_u64;
    let mut tail = word.trim();
    if tail.is_empty() {
        return None;
    }
    while !tail.is_empty() {
        let digits = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = tail[..digits].parse().ok()?;
        tail = &tail[digits..];
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let unit = match &tail[..letters] {
            "ms" => 1,
            "s" | "" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        tail = tail[letters..].trim_start();
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_nginx_s() {
        for (word, expected) in [
            ("65", Some(65_000)),
            ("1m5s", Some(65_000)),
            ("1m 5s", Some(65_000)),
            ("500ms", Some(500)),
            ("", None),
            ("5x", None),
            ("off", None),
        ] {
            assert_eq!(milliseconds(word), expected, "{word}");
        }
        for (word, expected) in [("64k", Some(65_536)), ("1M", Some(1 << 20)), ("1kb", None)] {
            assert_eq!(bytes(word), expected, "{word}");
        }
    }
}
