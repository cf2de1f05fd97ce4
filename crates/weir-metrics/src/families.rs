//! The metric families: name, kind and help of each, as data. docs/metrics.md shows this table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::samples;

/// Kind of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sum that only grows; its samples end in `_total`.
    Counter,
    /// Momentary value.
    Gauge,
    /// Value of either kind, under a name that node_exporter gives it without a kind.
    Unknown,
    /// Distribution of seconds.
    Histogram,
}

impl Kind {
    /// Name of the kind in OpenMetrics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Unknown => "unknown",
            Kind::Histogram => "histogram",
        }
    }
}

/// A metric family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// Name without the suffix of counters.
    pub name: Cow<'static, str>,
    /// Kind of its values.
    pub kind: Kind,
    /// Labels besides `run` and `study`, for documentation.
    pub labels: Cow<'static, str>,
    /// Meaning of the values.
    pub help: Cow<'static, str>,
}

impl Family {
    /// Name of the samples of a counter or gauge.
    pub fn sample_name(&self) -> Cow<'_, str> {
        match self.kind {
            Kind::Counter => Cow::Owned(format!("{}_total", self.name)),
            _ => Cow::Borrowed(&self.name),
        }
    }

    /// Unit of the values, if the name ends in one.
    pub fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes"].into_iter().find(|unit| self.name.ends_with(&format!("_{unit}")))
    }
}

const ARM: &str = "load, arm, phase";

const fn family(
    name: &'static str,
    kind: Kind,
    labels: &'static str,
    help: &'static str,
) -> Family {
    let (name, labels, help) = (Cow::Borrowed(name), Cow::Borrowed(labels), Cow::Borrowed(help));
    Family { name, kind, labels, help }
}

/// Families about loads, runs and the export itself.
#[rustfmt::skip]
const FAMILIES: [Family; 27] = [
    family("weir_run", Kind::Gauge, "version", "1 while weir works on this run or load"),
    family("weir_requests_due", Kind::Counter, ARM, "requests that the schedule of an open loop wanted sent"),
    family("weir_requests_sent", Kind::Counter, ARM, "requests sent"),
    family("weir_requests_completed", Kind::Counter, ARM, "responses whose last byte came in measured time"),
    family("weir_requests_queued", Kind::Counter, ARM, "requests that were due, waited for an idle connection, and were never sent"),
    family("weir_requests_dropped", Kind::Counter, ARM, "requests that were due when no connection was idle, and were left out"),
    family("weir_requests_unanswered", Kind::Counter, ARM, "requests that never ended"),
    family("weir_responses", Kind::Counter, "load, arm, phase, code_class", "responses by class of their status code, unmeasured parts of slices included"),
    family("weir_errors", Kind::Counter, "load, arm, phase, kind", "errors by kind"),
    family("weir_received_bytes", Kind::Counter, ARM, "bytes received"),
    family("weir_measured_seconds", Kind::Counter, ARM, "measured time; an arm's own rate is completed requests by measured seconds, since arms take turns"),
    family("weir_blocks", Kind::Counter, ARM, "blocks recorded"),
    family("weir_request_duration_seconds", Kind::Histogram, ARM, "response time, from the moment a request was due to the last byte"),
    family("weir_request_service_time_seconds", Kind::Histogram, ARM, "service time, from the moment a request was sent to the last byte"),
    family("weir_dispatch_lag_seconds", Kind::Histogram, ARM, "the generator's own delay in sending due requests"),
    family("weir_validity", Kind::Gauge, ARM, "0 VALID, 1 SUSPECT, 2 INVALID: of the latest blocks, or of the load so far"),
    family("weir_intended_requests_per_second", Kind::Gauge, ARM, "rate of the open loop"),
    family("weir_phase", Kind::Gauge, "phase", "1 for what the run does now: starting, pilot, trial, search, alone, observation; 0 for what it did before"),
    family("weir_blocks_done", Kind::Gauge, "load", "blocks recorded so far of the trial, over all sessions"),
    family("weir_blocks_planned", Kind::Gauge, "load", "blocks planned"),
    family("weir_verdict", Kind::Gauge, "load, metric, arm, against, verdict", "1 for the verdict so far"),
    family("weir_verdict_ratio", Kind::Gauge, "load, metric, arm, against, bound", "ratio of the arms so far: bound is estimate, lower or upper"),
    family("weir_search_requests_per_second", Kind::Gauge, "load, arm, bound", "between which rates a search knows the capacity to be: bound is lower or upper"),
    family("weir_capacity_requests_per_second", Kind::Gauge, "load, arm, bound", "capacity that a search found: bound is lower or upper of the interval, or verified, the highest rate that passed a hold"),
    family("weir_connections_open", Kind::Gauge, "", "open connections of a load"),
    family("weir_requests_in_flight", Kind::Gauge, "", "requests of a load in flight"),
    family("weir_series_left_out", Kind::Counter, "", "series that were not exported because there are too many"),
];

/// Returns all families, those of samples last.
pub fn all() -> &'static [Family] {
    static ALL: OnceLock<Vec<Family>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut families = FAMILIES.to_vec();
        families.extend(samples::families());
        families
    })
}

/// Returns the index in [`all`] of the family with this name.
pub fn index_of(name: &str) -> Option<usize> {
    static BY_NAME: OnceLock<BTreeMap<&'static str, usize>> = OnceLock::new();
    let by_name = BY_NAME
        .get_or_init(|| all().iter().enumerate().map(|(index, all)| (&*all.name, index)).collect());
    by_name.get(name).copied()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Compares docs/metrics.md with the families; `WEIR_WRITE_DOCS=1` writes its tables instead.
    #[test]
    fn the_page_has_the_families() {
        let mut tables = String::new();
        for (title, is_sample) in [("Loads and runs", false), ("Hosts and proxies", true)] {
            write!(tables, "\n### {title}\n\n| name | kind | labels | what |\n|---|---|---|---|\n")
                .unwrap();
            for (index, family) in all().iter().enumerate() {
                if (index >= FAMILIES.len()) == is_sample {
                    let (name, kind, labels) =
                        (family.sample_name(), family.kind.name(), &family.labels);
                    writeln!(tables, "| `{name}` | {kind} | {labels} | {} |", family.help).unwrap();
                }
            }
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(path).unwrap();
        let head = "\n## Families\n";
        let (before, written) =
            page.split_at(page.find(head).expect("the head of the tables") + head.len());
        if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
            return std::fs::write(path, before.to_owned() + &tables).unwrap();
        }
        assert!(written == tables, "docs/metrics.md: WEIR_WRITE_DOCS=1 cargo test -p weir-metrics");
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for family in all() {
            let name = &family.name;
            assert!(!name.ends_with("_total") && !name.ends_with("_ns"), "{name}");
            assert!(name.starts_with("weir_") || name.starts_with("node_"), "{name}");
            assert!(!family.help.is_empty() && !family.help.contains('\n'), "{name}");
        }
    }
}
