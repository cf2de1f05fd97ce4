//! Run folders: written record by record, read back years later.
//!
//! A run folder (see [`weir_model::record`] for the types in it) is
//!
//! | file | content | written |
//! |---|---|---|
//! | `run.json` | the header | once, atomically, after the files below exist: a folder without it is no run |
//! | `run.identity` | what tells this `run.json` from its copies | once, after it |
//! | `study.yaml` | the study as it was typed | once |
//! | `records.jsonl` | one record per line | appended the moment a record is complete |
//! | `histograms.hlog` | HdrHistogram log, one tagged V2 line per histogram | appended before the record that names the tag |
//! | `samples/TABLE.csv` | counters of hosts and proxies (see [`Samples`]) | appended during trials |
//! | `arms/…` and others | the proxies' configurations, as written and as they understood them | whole files |
//!
//! The two appended files obey one rule: a line is handed to the kernel by one write and ends with a newline. So a
//! process that is killed at any moment leaves whole lines and at most one half line at the end, which [`Run::read`]
//! ignores and [`RunWriter::resume`] cuts off. The content of that line is then lost, but never wrong.
//!
//! Only the user has access to the folder (folders 0700, files 0600), because it contains configurations unchanged,
//! with their secrets.

mod encoded;
mod error;
mod histogram_log;
mod run;
mod samples;
mod writer;

use hdrhistogram::Histogram;
use weir_model::record::QuantileSummary;

pub use encoded::{HistogramError, LONGEST_NS, decode, empty_histogram};
pub use error::RecordError;
pub use run::{Run, read_header};
pub use samples::{SAMPLES_FOLDER, Sample, Samples};
pub use writer::{RunWriter, has_original_header};

/// Name of the header's file in a run folder.
pub const HEADER_FILE: &str = "run.json";
/// Name of the file that tells the header from its copies ([`weir_files::identity`]).
pub const IDENTITY_FILE: &str = "run.identity";
/// Name of the study's file in a run folder.
pub const STUDY_FILE: &str = "study.yaml";
/// Name of the records' file in a run folder.
pub const RECORDS_FILE: &str = "records.jsonl";
/// Name of the histograms' file in a run folder.
pub const HISTOGRAMS_FILE: &str = "histograms.hlog";

/// Kind of a trial's histogram, as part of its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistogramKind {
    /// Time between the intended start and the last byte.
    ResponseTime,
    /// Time between the actual send and the last byte.
    ServiceTime,
    /// Time between the moment at which a request was due and could be sent, and its actual send.
    DispatchLag,
    /// Response times as [`HistogramKind::ResponseTime`], without the slices in which the machine stood still; written
    /// if other slices of the trial remain.
    Undisturbed,
}

impl HistogramKind {
    fn word(self) -> &'static str {
        match self {
            HistogramKind::ResponseTime => "response_time",
            HistogramKind::ServiceTime => "service_time",
            HistogramKind::DispatchLag => "dispatch_lag",
            HistogramKind::Undisturbed => "response_time_undisturbed",
        }
    }
}

/// Returns the tag of one trial's histogram: `load/arm/block/kind`.
///
/// The tag never contains a comma, white space or line end (the log format cannot quote them), whatever the names
/// contain, and different names give different tags: such bytes, `/` and `%` are written as `%XX`.
pub fn tag(load: &str, arm: &str, block: u32, kind: HistogramKind) -> String {
    let mut tag = String::new();
    push_escaped(&mut tag, load);
    tag.push('/');
    push_escaped(&mut tag, arm);
    tag.push_str(&format!("/{block}/{}", kind.word()));
    tag
}

fn push_escaped(tag: &mut String, name: &str) {
    for byte in name.bytes() {
        match byte {
            b'/' | b'%' | b',' | 0..=b' ' | 0x7f.. => tag.push_str(&format!("%{byte:02X}")),
            _ => tag.push(char::from(byte)),
        }
    }
}

/// Summarises a histogram of nanoseconds. `tag` names its line in the histogram log (empty if it is not kept);
/// `overflow` is the number of its values that were above its range and counted at its end.
pub fn summarize(tag: &str, histogram: &Histogram<u64>, overflow: u64) -> QuantileSummary {
    // In one pass: they are taken while the load runs.
    let mut quantiles = histogram.value_at_quantiles([0.5, 0.9, 0.99, 0.999]);
    let [p50, p90, p99, p999] = std::array::from_fn(|_| quantiles.next().unwrap_or(0));
    QuantileSummary {
        tag: tag.to_owned(),
        count: histogram.len(),
        overflow,
        mean: histogram.mean(),
        p50,
        p90,
        p99,
        p999,
        max: histogram.max(),
    }
}

#[cfg(test)]
mod tests;
