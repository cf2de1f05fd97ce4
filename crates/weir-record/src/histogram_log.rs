//! Lines of an HdrHistogram interval log, written and read.
//!
//! The format is that of Java's `HistogramLogWriter`, version 1.3, so the usual viewers can read the file:
//! `Tag=T,START,LENGTH,MAX,BASE64`, START and LENGTH in seconds, the histogram in V2 encoding, deflated. Values stay in
//! nanoseconds. Our own scanner finds the lines, not the crate's iterator, because errors must name the line.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::{RecordError, encoded};

/// Maximum number of buckets of all histograms of a log together, apart from those for its length.
const BUCKETS: u64 = 16 << 20;
/// Additional buckets for each byte of the log. Real histograms have less than one per byte; deflated zeros could have
/// hundreds.
const BUCKETS_PER_BYTE: u64 = 8;

/// First lines of the file: version, units and the legend that other readers expect.
pub(crate) const PREAMBLE: &str = "\
#[Histogram log format version 1.3]
#Values are nanoseconds. StartTimestamp is seconds since the trial of the tag's load began.
\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"
";

/// Encoder of lines, with buffers that are kept from one line to the next.
pub(crate) struct Encoder {
    serializer: V2DeflateSerializer,
    line: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder { serializer: V2DeflateSerializer::new(), line: Vec::new() }
    }

    /// Encodes a histogram as a line, with its newline.
    pub(crate) fn line(
        &mut self,
        tag: &str,
        start: Duration,
        length: Duration,
        histogram: &Histogram<u64>,
    ) -> Result<&[u8], RecordError> {
        let checked = Tag::new(tag)
            .filter(|_| !tag.is_empty())
            .ok_or_else(|| RecordError::BadTag(tag.to_owned()))?;
        self.line.clear();
        IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.line, &mut self.serializer)
            .map_err(|error| encode_error(tag, &error))?
            .write_histogram(histogram, start, length, Some(checked))
            .map_err(|error| encode_error(tag, &error))?;
        Ok(&self.line)
    }
}

fn encode_error(tag: &str, error: &impl ToString) -> RecordError {
    RecordError::Encode { tag: tag.to_owned(), message: error.to_string() }
}

/// Contents of a line of the log.
#[derive(Debug)]
pub(crate) struct LoggedHistogram {
    /// Line number, from 1.
    pub(crate) line: usize,
    /// Number of values.
    pub(crate) count: u64,
    /// Largest value, nanoseconds.
    pub(crate) max: u64,
    /// Buckets (nanoseconds, count). Sparse, because a histogram in memory takes a quarter of a megabyte.
    pub(crate) buckets: Vec<(u64, u64)>,
}

/// Reads the histograms of a log, by tag; those of one tag are in order of time.
///
/// A tag occurs twice if a run was killed between a histogram and its record: the block is measured again when the run
/// is resumed. Trials of different phases may also have the same tag.
///
/// # Errors
/// Number (from 1) and defect of the first line that is neither comment, legend nor interval, that has a histogram
/// which cannot be decoded, or with which the histograms take more memory than a log of this length can need.
pub(crate) fn read(log: &[u8]) -> Result<HashMap<String, Vec<LoggedHistogram>>, (usize, String)> {
    let mut histograms: HashMap<String, Vec<LoggedHistogram>> = HashMap::new();
    let mut room = BUCKETS + BUCKETS_PER_BYTE * log.len() as u64;
    for (line, text) in (1..).zip(log.split_inclusive(|&byte| byte == b'\n')) {
        if matches!(text.first(), Some(b'#' | b'"')) {
            continue;
        }
        let (tag, base64) = interval(text.trim_ascii_end())
            .ok_or_else(|| (line, "not a histogram log line".to_owned()))?;
        let Some(tag) = tag else { continue };
        let histogram = decode(base64).map_err(|message| {
            let message = format!("the histogram `{tag}` cannot be decoded: {message}");
            (line, message)
        })?;
        let buckets: Vec<(u64, u64)> = histogram
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect();
        room = room.checked_sub(buckets.len() as u64).ok_or_else(|| {
            let message = "the histograms up to here hold more than a log of this length can";
            (line, message.to_owned())
        })?;
        histograms.entry(tag.to_owned()).or_default().push(LoggedHistogram {
            line,
            count: histogram.len(),
            max: histogram.max(),
            buckets,
        });
    }
    Ok(histograms)
}

/// Returns the tag of an interval line and its histogram in base64.
fn interval(line: &[u8]) -> Option<(Option<&str>, &str)> {
    let text = str::from_utf8(line).ok()?;
    let (tag, rest) = match text.strip_prefix("Tag=") {
        Some(tagged) => {
            let (tag, rest) = tagged.split_once(',')?;
            (Some(tag), rest)
        }
        None => (None, text),
    };
    let mut fields = rest.splitn(4, ',');
    for _ in 0..3 {
        fields.next()?.parse::<f64>().ok()?;
    }
    Some((tag, fields.next()?))
}

fn decode(base64: &str) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD.decode(base64).map_err(|error| error.to_string())?;
    encoded::decode(&bytes).map_err(|error| error.to_string())
}
