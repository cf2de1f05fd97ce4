//! Histograms of times in HdrHistogram's V2 encoding, read from bytes of possibly foreign origin.
//!
//! The encoding begins with its own length and range, and a reader that trusts them allocates whatever they say: 44
//! bytes can claim 4 GiB. So the head is compared with what weir writes, and with the bytes that are really there,
//! before a histogram is made of it. Deflated encodings are inflated up to the largest size that weir writes.
//!
//! ```text
//! plain:    0x1c849313, length of the counts, 0, digits (u32 each); lowest, highest (u64); ratio (f64); counts
//! deflated: 0x1c849314, length of what follows (u32); a zlib stream of the plain encoding
//! ```
//!
//! All numbers are big-endian. Counts are numbers of one to nine bytes (LEB128 in ZigZag); a negative one stands for
//! that many zeros.

use std::io::Read;

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// Longest time that weir's histograms tell apart from longer ones, in nanoseconds (one hour).
pub const LONGEST_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits of the times in weir's histograms.
const DIGITS: u8 = 3;

const PLAIN: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];
const DEFLATED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];

/// Length of the head, before the counts, in bytes.
const HEAD: usize = 40;

/// Largest encoding of a histogram written by weir, in bytes: at most 33 × 1024 counts of nine bytes.
const LARGEST: usize = HEAD + 33 * 1024 * 9;

/// Reason why bytes are not a histogram written by weir.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// The bytes do not begin like an encoded histogram.
    #[error("not in HdrHistogram's V2 encoding")]
    Encoding,
    /// The stated length differs from the real one, or exceeds that of any histogram written by weir.
    #[error("it has another length than it says, or than weir's histograms can have")]
    Length,
    /// The range is not that of weir's histograms.
    #[error("its range is not 1 ns to an hour in three digits")]
    Range,
    /// The counts, or the deflated stream that contains them, are malformed.
    #[error("its counts cannot be read: {0}")]
    Counts(String),
}

/// Makes an empty histogram of the range that weir records with: 1 ns to an hour, three digits.
pub fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are constant and valid")
}

/// Reads a histogram with the range of [`empty_histogram`], deflated or not.
///
/// # Errors
/// See [`HistogramError`]. Whatever the bytes are, no more memory is allocated than for one of weir's histograms, some
/// 600 KiB.
pub fn decode(bytes: &[u8]) -> Result<Histogram<u64>, HistogramError> {
    match bytes.split_first_chunk() {
        Some((&PLAIN, _)) => plain(bytes),
        Some((&DEFLATED, rest)) => plain(&inflated(rest)?),
        _ => Err(HistogramError::Encoding),
    }
}

/// Inflates a deflated encoding; `rest` begins with its length.
fn inflated(rest: &[u8]) -> Result<Vec<u8>, HistogramError> {
    let (length, stream) = rest.split_first_chunk().ok_or(HistogramError::Length)?;
    if u32::from_be_bytes(*length) as usize != stream.len() {
        return Err(HistogramError::Length);
    }
    let mut plain = Vec::new();
    ZlibDecoder::new(stream)
        .take(LARGEST as u64 + 1)
        .read_to_end(&mut plain)
        .map_err(|error| HistogramError::Counts(error.to_string()))?;
    Ok(plain)
}

fn plain(bytes: &[u8]) -> Result<Histogram<u64>, HistogramError> {
    let (head, counts) = bytes.split_first_chunk::<HEAD>().ok_or(HistogramError::Length)?;
    if head[..4] != PLAIN {
        return Err(HistogramError::Encoding);
    }
    if read_u32(head, 4) as usize != counts.len() || bytes.len() > LARGEST {
        return Err(HistogramError::Length);
    }
    let digits = u32::from(DIGITS);
    if (read_u32(head, 8), read_u32(head, 12)) != (0, digits)
        || (read_u64(head, 16), read_u64(head, 24)) != (1, LONGEST_NS)
        || read_u64(head, 32) != 1_f64.to_bits()
    {
        return Err(HistogramError::Range);
    }
    // No run is so long that a count takes nine bytes; the largest such number has no opposite.
    if counts.windows(8).any(|eight| eight.iter().all(|byte| byte & 0x80 != 0)) {
        return Err(HistogramError::Counts("a count of nine bytes".to_owned()));
    }
    Deserializer::new()
        .deserialize(&mut { bytes })
        .map_err(|error| HistogramError::Counts(error.to_string()))
}

fn read_u32(head: &[u8; HEAD], at: usize) -> u32 {
    u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

fn read_u64(head: &[u8; HEAD], at: usize) -> u64 {
    u64::from(read_u32(head, at)) << 32 | u64::from(read_u32(head, at + 4))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer, V2Serializer};

    use super::*;

    fn encoded(values: &[u64]) -> [Vec<u8>; 2] {
        let mut histogram = empty_histogram();
        values.iter().for_each(|&value| histogram.saturating_record(value));
        let (mut plain, mut deflated) = (Vec::new(), Vec::new());
        V2Serializer::new().serialize(&histogram, &mut plain).unwrap();
        V2DeflateSerializer::new().serialize(&histogram, &mut deflated).unwrap();
        [plain, deflated]
    }

    /// Compresses a plain encoding into a zlib stream.
    fn deflated(plain: &[u8]) -> Vec<u8> {
        let mut stream = Vec::new();
        flate2::read::ZlibEncoder::new(plain, flate2::Compression::best())
            .read_to_end(&mut stream)
            .unwrap();
        [&DEFLATED[..], &(stream.len() as u32).to_be_bytes(), &stream].concat()
    }

    /// Returns the encoding with other bytes at an offset.
    fn with(at: usize, other: &[u8]) -> Vec<u8> {
        let [mut plain, _] = encoded(&[1, 1_000, LONGEST_NS]);
        plain[at..at + other.len()].copy_from_slice(other);
        plain
    }

    #[test]
    fn what_weir_writes_is_read() {
        for values in [
            &[][..],
            &[1],
            &[5, 5_000, 5_000_000, LONGEST_NS, u64::MAX],
            &(0..9_000).map(|k| k * k * 40_000).collect::<Vec<u64>>(),
        ] {
            let mut histogram = empty_histogram();
            values.iter().for_each(|&value| histogram.saturating_record(value));
            for bytes in encoded(values) {
                assert_eq!(decode(&bytes).unwrap(), histogram);
            }
        }
        let mut full = empty_histogram();
        let times: Vec<u64> = full.iter_all().map(|step| step.value_iterated_to()).collect();
        times.iter().for_each(|&time| full.saturating_record_n(time, 1 << 54));
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&full, &mut bytes).unwrap();
        assert!((HEAD + 200_000..=LARGEST).contains(&bytes.len()));
        assert_eq!(decode(&bytes).unwrap(), full);
    }

    fn head_with_length(length: u32) -> Vec<u8> {
        let mut head = with(4, &length.to_be_bytes());
        head.truncate(44);
        head
    }

    #[test]
    fn the_bytes_say_nothing_about_memory() {
        let [most, range] = [HistogramError::Length, HistogramError::Range];
        #[rustfmt::skip]
        let rows = [
            ("4 GiB of counts", head_with_length(u32::MAX - 40), &most),
            ("2 GiB of counts", head_with_length(1 << 31), &most),
            ("counts that are not there", head_with_length(5), &most),
            ("counts that are not said", with(4, &0_u32.to_be_bytes()), &most),
            ("too many counts", {
                let counts = vec![0; LARGEST];
                [&with(4, &(counts.len() as u32).to_be_bytes())[..HEAD], &counts].concat()
            }, &most),
            ("a length alone", PLAIN.to_vec(), &most),
            ("an offset", with(8, &1_u32.to_be_bytes()), &range),
            ("five digits", with(12, &5_u32.to_be_bytes()), &range),
            ("no digits", with(12, &[0; 4]), &range),
            ("another begin", with(16, &1000_u64.to_be_bytes()), &range),
            ("another end", with(24, &u64::MAX.to_be_bytes()), &range),
            ("another ratio", with(32, &2_f64.to_be_bytes()), &range),
            ("another cookie", with(0, &[0x1c, 0x84, 0x93, 3]), &HistogramError::Encoding),
        ];
        for (name, bytes, error) in &rows {
            assert_eq!(decode(bytes).as_ref(), Err(*error), "{name}");
            let inner = decode(&deflated(bytes));
            assert_eq!(inner.as_ref(), Err(*error), "{name}, deflated");
        }
        let bomb = deflated(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100 << 10);
        assert_eq!(decode(&bomb), Err(HistogramError::Encoding));
        let long = deflated(&[&with(4, &[0; 4])[..HEAD], &vec![0; 64 << 20]].concat());
        assert_eq!(decode(&long), Err(HistogramError::Length));
        let mut claims = deflated(&with(0, &[]));
        claims[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(decode(&claims), Err(HistogramError::Length));
    }

    fn decode_counts(counts: &[u8]) -> Result<Histogram<u64>, HistogramError> {
        let head = with(4, &(counts.len() as u32).to_be_bytes());
        decode(&[&head[..HEAD], counts].concat())
    }

    #[test]
    fn counts_that_make_no_sense_are_refused() {
        // The least of all numbers; so many zeros that nothing can follow; and a number that is cut off.
        for counts in [&[0xff; 9][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 1, 2], &[2, 0x82]] {
            assert!(matches!(decode_counts(counts), Err(HistogramError::Counts(_))));
        }
        assert_eq!(decode_counts(&[]).unwrap(), empty_histogram());
        assert_eq!(decode_counts(&[0, 6]).unwrap().len(), 3);
        assert!(matches!(decode(b"no histogram"), Err(HistogramError::Encoding)));
    }
}
