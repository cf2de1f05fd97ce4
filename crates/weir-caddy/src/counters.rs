//! Caddy's counters, from its metrics for Prometheus.
//!
//! Caddy counts requests only if `metrics` is on, since that costs every request something; otherwise only Go's counts
//! are there: garbage collections and allocated memory. <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::collections::BTreeMap;

/// Prefixes of counters that a request for counters increments itself.
const OF_THE_ASKING: [&str; 2] = ["caddy_admin_", "promhttp_"];

/// Reads counters, and the counts of histograms and summaries, with their labels. Sums of seconds are left out, since
/// they are not whole numbers.
pub(crate) fn parse(text: &str) -> BTreeMap<String, u64> {
    let mut kind = "";
    let mut counters = BTreeMap::new();
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            kind = declared.rsplit(' ').next().unwrap_or_default();
        } else if let Some((series, value)) = sample(line)
            && is_counter(series, kind)
        {
            counters.insert(series.to_owned(), value);
        }
    }
    counters
}

/// Parses `name{labels} value`; labels may contain blanks.
fn sample(line: &str) -> Option<(&str, u64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let value: f64 = value.parse().ok().filter(|value| *value >= 0.0)?;
    // Counts are whole; beyond 2^53 a float is only near one.
    (!line.starts_with('#')).then_some((series, value as u64))
}

fn is_counter(series: &str, kind: &str) -> bool {
    let name = series.split('{').next().unwrap_or_default();
    let counts = match kind {
        "counter" => !name.ends_with("_seconds_total"),
        "histogram" | "summary" => name.ends_with("_count"),
        _ => false,
    };
    counts && !OF_THE_ASKING.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_grows_and_is_whole_is_a_counter() {
        let text = r#"
# HELP caddy_http_requests_total Counter of HTTP(S) requests made.
# TYPE caddy_http_requests_total counter
caddy_http_requests_total{handler="reverse_proxy",server="a b"} 1.5e+06
# TYPE caddy_http_requests_in_flight gauge
caddy_http_requests_in_flight{handler="reverse_proxy",server="site"} 3
# TYPE caddy_http_request_duration_seconds histogram
caddy_http_request_duration_seconds_bucket{code="200",le="0.005"} 20
caddy_http_request_duration_seconds_sum{code="200"} 0.01
caddy_http_request_duration_seconds_count{code="200"} 20
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 0.22
# TYPE caddy_admin_http_requests_total counter
caddy_admin_http_requests_total{path="/config/"} 7
"#;
        #[rustfmt::skip]
        let expected = [
            (r#"caddy_http_requests_total{handler="reverse_proxy",server="a b"}"#, 1_500_000),
            (r#"caddy_http_request_duration_seconds_count{code="200"}"#, 20),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        assert_eq!(parse(text), BTreeMap::from(expected));
        assert_eq!(parse("nonsense\n\nx NaN\n"), BTreeMap::new());
    }
}
