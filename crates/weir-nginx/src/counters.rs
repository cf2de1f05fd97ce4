//! nginx's own counters, as ngx_http_stub_status_module prints them.

use std::collections::BTreeMap;

/// Names of the three counters, in the order in which they are printed.
const NAMES: [&str; 3] = ["accepts", "handled", "requests"];

/// Labels and names of momentary values.
const NOW: [(&str, &str); 4] = [
    ("Active connections:", "active"),
    ("Reading:", "reading"),
    ("Writing:", "writing"),
    ("Waiting:", "waiting"),
];

/// Parses counters and momentary values; empty for any other text.
pub(super) fn sampled(text: &str) -> BTreeMap<String, u64> {
    let mut all = counters(text).unwrap_or_default();
    all.extend(gauges(text));
    all
}

/// Parses the momentary values.
fn gauges(text: &str) -> BTreeMap<String, u64> {
    NOW.into_iter()
        .filter_map(|(label, name)| {
            let behind = text.split_once(label)?.1;
            let value = behind.split_whitespace().next()?.parse().ok()?;
            Some((name.to_owned(), value))
        })
        .collect()
}

/// Parses the counters; `None` for any other text.
pub(super) fn counters(text: &str) -> Option<BTreeMap<String, u64>> {
    let mut lines = text.lines();
    lines.find(|line| line.trim() == "server accepts handled requests")?;
    let numbers = lines.next()?.split_whitespace();
    let numbers: Vec<u64> = numbers.map_while(|word| word.parse().ok()).collect();
    let named = NAMES.iter().map(|name| (*name).to_owned());
    (numbers.len() == NAMES.len()).then(|| named.zip(numbers).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_place_under_their_names() {
        let text = "Active connections: 1 \nserver accepts handled requests\n 7 6 12 \n\
                    Reading: 0 Writing: 1 Waiting: 0 \n";
        let values = counters(text).unwrap();
        assert_eq!(values["accepts"], 7);
        assert_eq!(values["handled"], 6);
        assert_eq!(values["requests"], 12);
        let gauges: Vec<u64> = gauges(text).into_values().collect();
        assert_eq!(gauges, [1, 0, 0, 1], "active, reading, waiting, writing");
        assert_eq!(counters("<html>404</html>"), None);
        assert_eq!(counters("server accepts handled requests\n 7 x 12\n"), None);
    }
}
