//! One line of an HdrHistogram interval log, written and found again.
//!
//! The format is the one of Java's `HistogramLogWriter`, version 1.3, so the usual viewers read our
//! file: `Tag=T,START,LENGTH,MAX,BASE64`, START and LENGTH in seconds, the histogram in V2 encoding,
//! deflated. Values stay in nanoseconds. Lines are found by our own scan and not by the crate's
//! iterator because we need the place of a line that is wrong.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::{RecordError, encoded};

/// Buckets that the histograms of any log may have together, ...
const BUCKETS: u64 = 16 << 20;
/// ... and those more for each byte of it. Real ones have less than one; deflated zeros could have hundreds.
const BUCKETS_PER_BYTE: u64 = 8;

/// First lines of the file: version, units and the legend that other readers look for.
pub(crate) const PREAMBLE: &str = "\
#[Histogram log format version 1.3]
#Values are nanoseconds. StartTimestamp is seconds since the trial of the tag's load began.
\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"
";

/// Makes lines; keeps its buffers from one to the next.
pub(crate) struct Encoder {
    serializer: V2DeflateSerializer,
    line: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder {
            serializer: V2DeflateSerializer::new(),
            line: Vec::new(),
        }
    }

    /// The line of one histogram, its newline included.
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
        let encode = |message: String| RecordError::Encode {
            tag: tag.to_owned(),
            message,
        };
        self.line.clear();
        IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.line, &mut self.serializer)
            .map_err(|error| encode(error.to_string()))?
            .write_histogram(histogram, start, length, Some(checked))
            .map_err(|error| encode(error.to_string()))?;
        Ok(&self.line)
    }
}

/// What a line of the log holds.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Its number, from 1.
    pub(crate) line: usize,
    /// How many values.
    pub(crate) count: u64,
    /// The largest of them, nanoseconds.
    pub(crate) max: u64,
    /// Sparse, because a histogram in memory takes a quarter of a megabyte.
    pub(crate) buckets: Vec<(u64, u64)>,
}

/// The histograms of a log by their tags, those of one tag in order of time.
///
/// A tag comes twice where a run was killed between a histogram and its record: the block is measured again when
/// the run is resumed. Trials of different phases may have the same tag, too.
///
/// # Errors
/// Number (from 1) and defect of the first line that is neither comment, legend nor interval, of which the
/// histogram cannot be decoded, or with which they take more memory than a log of this length can need.
pub(crate) fn read(log: &[u8]) -> Result<HashMap<String, Vec<Kept>>, (usize, String)> {
    let mut found: HashMap<String, Vec<Kept>> = HashMap::new();
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
        found.entry(tag.to_owned()).or_default().push(Kept {
            line,
            count: histogram.len(),
            max: histogram.max(),
            buckets,
        });
    }
    Ok(found)
}

/// Tag of an interval line and its histogram in base64.
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
