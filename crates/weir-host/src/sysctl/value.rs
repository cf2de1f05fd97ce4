//! Comparison of settings' values by meaning.

/// Returns a value with one blank between its parts; the kernel puts tabs there, and people anything.
pub(super) fn normalised(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if the value read means the same as the value written; both are normalised. Sets of numbers, such as
/// `net.ipv4.ip_local_reserved_ports`, come back as ranges in order (`proc_do_large_bitmap`).
pub(super) fn same(wanted: &str, read: &str) -> bool {
    if wanted == read {
        return true;
    }
    match (ranges(wanted), ranges(read)) {
        (Some(wanted), Some(read)) => wanted == read,
        _ => false,
    }
}

/// Returns the ranges of a set such as `1,7-9`: in order, with gaps between them. `None` if the text is not a set.
fn ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let mut intervals = text.split(',').map(range).collect::<Option<Vec<(u32, u32)>>>()?;
    intervals.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::with_capacity(intervals.len());
    for (first, last) in intervals {
        match joined.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    Some(joined)
}

fn range(text: &str) -> Option<(u32, u32)> {
    match text.split_once('-') {
        Some((first, last)) => {
            let (first, last) = (parse_number(first)?, parse_number(last)?);
            (first <= last).then_some((first, last))
        }
        None => parse_number(text).map(|only| (only, only)),
    }
}

fn parse_number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    // The kernel reads 010 as eight.
    let decimal = text == "0" || !text.starts_with('0');
    (plain && decimal).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_no_difference() {
        assert_eq!(normalised(" 4096\t131072  6291456\n"), "4096 131072 6291456");
        assert_eq!(normalised("\n"), "");
    }

    #[test]
    fn sets_are_compared_as_sets() {
        assert!(same("8080,9148", "8080,9148"));
        assert!(same("9,8,7,1", "1,7-9"));
        assert!(same("1-5,3-9", "1-9"));
        assert!(same("5", "5"));
        assert!(!same("1,3", "1-3"));
        assert!(!same("", "1"));
        assert!(!same("3-1", "1-3"));
    }

    #[test]
    fn numbers_and_words_are_compared_as_they_stand() {
        assert!(!same("010", "8"));
        assert!(!same("0x10", "16"));
        assert!(!same("-1", "1"));
        assert!(!same("1024", "1024 60999"));
        assert!(!same("cubic", "reno"));
        assert!(same("1024 60999", "1024 60999"));
    }
}
