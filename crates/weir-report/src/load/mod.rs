//! The output formats of `weir load`.
//!
//! ```text
//! histograms ──► time_report ──► LoadReport ──► human | json | wrk2 | hgrm
//!                   (lossless)      │
//!                histogram ◄────────┘   wrk2, hgrm and the detailed summary read it back
//! ```
//!
//! [`LoadReport`] is the single source: every format shows what the document says and measures
//! nothing of its own, so `weir load --format json` keeps all that the others could ever show.

mod asked;
mod calibration;
mod extended;
mod figures;
mod hgrm;
mod human;
mod spectrum;
mod times;
mod wrk2;

#[cfg(test)]
pub(crate) mod sample;

pub use calibration::calibration;
pub use hgrm::hgrm;
pub use human::human;
pub use times::{HistogramError, histogram, time_report, time_summary};
pub use wrk2::wrk2;

use weir_analysis::findings::LimiterFindings;
use weir_model::load_report::LoadReport;

use crate::secrets::masked;

/// A load report, and the limiter of the server if that was analysed.
#[derive(serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Observed<'a> {
    #[serde(flatten)]
    report: &'a LoadReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    limiter: Option<&'a LimiterFindings>,
}

/// Returns the response times of a load: pairs of nanoseconds and count, ascending. Empty if the histogram cannot be
/// decoded.
pub fn response_times(report: &LoadReport) -> Vec<(u64, u64)> {
    histogram(&report.results.response_time)
        .iter()
        .flat_map(|histogram| histogram.iter_recorded())
        .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
        .collect()
}

/// Formats the document as indented JSON that ends with a line feed, with secrets masked. docs/load-format.md describes
/// the format.
pub fn json(report: &LoadReport, limiter: Option<&LimiterFindings>) -> String {
    document(serde_json::to_string_pretty(&Observed { report, limiter }))
}

/// Formats the document as JSON in one line.
pub fn json_line(report: &LoadReport, limiter: Option<&LimiterFindings>) -> String {
    document(serde_json::to_string(&Observed { report, limiter }))
}

fn document(text: serde_json::Result<String>) -> String {
    let mut text =
        text.expect("the document has no maps and no types of its own that could refuse");
    text.push('\n');
    masked(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{json, sample};
    use serde_json::Value;
    use weir_model::load_report::LoadReport;

    #[test]
    fn a_written_document_reads_back_unchanged() {
        for report in sample::all() {
            let read: LoadReport = serde_json::from_str(&json(&report, None)).unwrap();
            assert_eq!(read, report);
        }
    }

    #[test]
    fn every_field_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/load-format.md");
        let docs = std::fs::read_to_string(path).unwrap();
        let document: Value = serde_json::from_str(&json(&sample::open_loop(), None)).unwrap();
        assert_eq!(undocumented(&document, &docs), [""; 0]);
    }

    /// Returns the names of fields that the documentation lacks.
    fn undocumented(value: &Value, docs: &str) -> Vec<String> {
        let (mut names, inner): (Vec<String>, Vec<&Value>) = match value {
            Value::Object(fields) => (
                fields
                    .keys()
                    .filter(|name| !docs.contains(&format!("`{name}`")))
                    .cloned()
                    .collect(),
                fields.values().collect(),
            ),
            Value::Array(items) => (Vec::new(), items.iter().collect()),
            _ => Default::default(),
        };
        names.extend(inner.into_iter().flat_map(|value| undocumented(value, docs)));
        names
    }
}
