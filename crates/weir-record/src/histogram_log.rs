//! One line of an HdrHistogram interval log, written and found again.
//!
//! The format is the one of Java's `HistogramLogWriter`, version 1.3, so the usual viewers read our
//! file: `Tag=T,START,LENGTH,MAX,BASE64`, START and LENGTH in seconds, the histogram in V2 encoding,
//! deflated. Values stay in nanoseconds. Lines are found by our own scan and not by the crate's
//! iterator because we need the place of a line that is wrong, and the offset of one that is right.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

use crate::RecordError;

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

/// Where the base64 of each tag's histogram stands in `log`, in bytes from its beginning.
///
/// A tag may come twice: a run that was killed between a histogram and its record measures the
/// block again when it is resumed. The record that exists was written after the later line, so the
/// later line counts.
///
/// # Errors
/// Number (from 1) and defect of the first line that is neither comment, legend nor interval.
pub(crate) fn index(log: &[u8]) -> Result<HashMap<String, Range<usize>>, (usize, String)> {
    let mut found = HashMap::new();
    let mut offset = 0;
    for (number, line) in log.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let end = offset + line.trim_ascii_end().len();
        if !matches!(line.first(), Some(b'#' | b'"')) {
            let tag_and_start = interval(line)
                .ok_or_else(|| (number + 1, "not a histogram log line".to_owned()))?;
            if let (Some(tag), start) = tag_and_start {
                found.insert(tag.to_owned(), offset + start..end);
            }
        }
        offset += line.len();
    }
    Ok(found)
}

/// Tag of an interval line and where its base64 begins.
fn interval(line: &[u8]) -> Option<(Option<&str>, usize)> {
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
    let base64 = fields.next()?;
    Some((tag, text.len() - base64.len()))
}

/// The histogram in its base64 form.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn decode(base64: &[u8]) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD.decode(base64).map_err(|error| error.to_string())?;
    Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| error.to_string())
}
