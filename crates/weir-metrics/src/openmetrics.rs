//! The text formats: OpenMetrics 1.0, and the older one of Prometheus (0.0.4).

use std::fmt::Write as _;

use crate::families::{Family, Kind};
use crate::histogram::Distribution;
use crate::store::{Labels, Store, Value};

/// Version of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
    /// `text/plain; version=0.0.4`.
    Plain,
}

/// Returns the latest value of every series.
pub fn text(store: &Store, format: TextFormat) -> String {
    let mut text = String::new();
    for (family, series) in store.read() {
        head(&mut text, family, format);
        for (labels, value) in series {
            sample(&mut text, family, labels, value, None);
        }
    }
    if format == TextFormat::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

/// Writes the lines that describe a family.
pub fn head(text: &mut String, family: &Family, format: TextFormat) {
    let Family { name, kind, help, .. } = family;
    match (format, kind) {
        (TextFormat::Plain, Kind::Counter) => {
            let name = family.sample_name();
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
        }
        (TextFormat::Plain, Kind::Unknown) => {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} untyped");
        }
        (TextFormat::Plain, Kind::Gauge | Kind::Histogram) => {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        }
        (TextFormat::OpenMetrics, _) => {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
            if let Some(unit) = family.unit() {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
        }
    }
}

/// Writes the lines of one series. `at_ms` is a time stamp, milliseconds since 1970.
pub fn sample(
    text: &mut String,
    family: &Family,
    labels: &Labels,
    value: &Value,
    at_ms: Option<i64>,
) {
    let at = at_ms.map_or(String::new(), |ms| format!(" {:.3}", ms as f64 / 1e3));
    match value {
        Value::Number(value) => {
            let labels = label_text(labels, None);
            let _ = writeln!(text, "{}{labels} {}{at}", family.sample_name(), number(*value));
        }
        Value::Distribution(distribution) => {
            buckets(text, &family.name, labels, distribution, &at);
        }
    }
}

fn buckets(text: &mut String, name: &str, labels: &Labels, times: &Distribution, at: &str) {
    for (bound, count) in times.classic() {
        let labels = label_text(labels, Some(&number(bound)));
        let _ = writeln!(text, "{name}_bucket{labels} {count}{at}");
    }
    let infinite = label_text(labels, Some("+Inf"));
    let _ = writeln!(text, "{name}_bucket{infinite} {}{at}", times.count);
    let labels = label_text(labels, None);
    let _ = writeln!(text, "{name}_sum{labels} {}{at}", number(times.sum));
    let _ = writeln!(text, "{name}_count{labels} {}{at}", times.count);
}

/// Writes a number as Go does, so that bucket bounds are the same series in the text as in protobuf.
pub fn number(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once("e-") {
        Some((digits, exponent)) if exponent.len() == 1 => format!("{digits}e-0{exponent}"),
        _ if value.is_infinite() => if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        _ => text,
    }
}

fn label_text(labels: &Labels, bound: Option<&str>) -> String {
    let end = bound.map(|bound| ("le", bound));
    let all = labels.iter().map(|(name, value)| (*name, &**value)).chain(end);
    let written: Vec<String> =
        all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if written.is_empty() { String::new() } else { format!("{{{}}}", written.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
