//! Parser of the answers of HAProxy's runtime API (management guide §9.3).

use std::collections::BTreeMap;

/// Returns a whole number from `show info`, which has lines like `Nbthread: 2`.
pub(super) fn info(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| *key == name)?
        .1
        .trim()
        .parse()
        .ok()
}

/// Returns the size in bytes of the objects in a pool, from `show pools`: `  - Pool buffer (16384 bytes) : 8 allocated
/// …`.
pub(super) fn pool_size(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("- Pool ")?.split_once(" ("))
        .find(|(pool, _)| *pool == name)?
        .1
        .split_once(" bytes)")?
        .0
        .parse()
        .ok()
}

/// One row of `show stat`: a frontend, a backend, or a server.
pub(super) type Row<'a> = BTreeMap<&'a str, &'a str>;

/// Parses the rows of `show stat`: CSV whose first line, behind a `#`, names the fields.
pub(super) fn stat(text: &str) -> Vec<Row<'_>> {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let head = lines.next().unwrap_or_default();
    let names: Vec<&str> = head.trim_start_matches("# ").split(',').collect();
    lines
        .map(|line| {
            names
                .iter()
                .copied()
                .zip(line.split(','))
                .filter(|(_, value)| !value.is_empty())
                .collect()
        })
        .collect()
}

/// Returns true if a row is that of a whole frontend or backend, by its `svname`.
pub(super) fn is_of(row: &Row<'_>, whole: &str) -> bool {
    row.get("svname") == Some(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_names() {
        let text = "Name: HAProxy\nHard_maxconn: 9\nMaxconn: 7\nIdle_pct: x\n";
        assert_eq!(info(text, "Maxconn"), Some(7));
        assert_eq!(info(text, "Idle_pct"), None);
        assert_eq!(info(text, "maxconn"), None);
        let text = "Dumping pools usage.\n  - Pool trash (16416 bytes) : 2\n  \
                    - Pool buffer (16384 bytes) : 8 allocated (131072 bytes), 8 used\n";
        assert_eq!(pool_size(text, "buffer"), Some(16384));
        assert_eq!(pool_size(text, "buf"), None);
    }

    #[test]
    fn fields_are_known_by_their_names() {
        let rows = stat("# pxname,svname,slim,-,\nweir,FRONTEND,9985,-,\no,origin,,-,\n\n");
        assert_eq!(rows.len(), 2);
        assert!(is_of(&rows[0], "FRONTEND") && rows[0]["slim"] == "9985");
        assert!(!rows[1].contains_key("slim"));
        assert!(stat("").is_empty());
    }
}
