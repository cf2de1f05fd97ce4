//! Bytes and short strings of the HTTP grammar.

use memchr::memchr3;

use crate::error::{ParseError, Result};

/// Returns true for white space within a line (RFC 9110 §5.6.3).
#[inline]
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns true if a byte may be part of a token (RFC 9110 §5.6.2).
#[inline]
pub(crate) fn is_token(byte: u8) -> bool {
    TOKEN[byte as usize]
}

static TOKEN: [bool; 256] = {
    let marks = b"!#$%&'*+-.^_`|~";
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
};

/// Removes the white space around a value.
#[inline]
pub(crate) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Parses a decimal number that consists of digits alone; `None` if it does not, or does not fit.
#[inline]
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Returns true if a word equals `lower`, ignoring case. `lower` may contain only small letters and `-`, and `word` no
/// CR, which is the only other byte that `|` turns into `-`.
#[inline]
pub(crate) fn is_word<const N: usize>(word: &[u8], lower: &[u8; N]) -> bool {
    let pairs = word.iter().zip(lower);
    // Without a branch for each byte, the compiler compares words of eight.
    word.len() == N
        && pairs.fold(0, |differs, (byte, lower)| differs | ((byte | 0x20) ^ lower)) == 0
}

/// Number of bytes of a line that are searched in words of eight before `memchr3`, which is too slow to start for most
/// values.
const SHORT: usize = 64;

/// Returns the position of the first CR, LF or NUL.
#[inline]
fn end_of_text(rest: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    let (words, tail) = rest[..rest.len().min(SHORT)].as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(first) = first_control(*word)
            && let Some(at) = word[first..].iter().position(is_end)
        {
            return Some(8 * index + first + at);
        }
    }
    let searched = 8 * words.len();
    if searched < SHORT {
        return tail.iter().position(is_end).map(|at| searched + at);
    }
    memchr3(b'\r', b'\n', 0, &rest[SHORT..]).map(|at| SHORT + at)
}

/// Returns the position of the first of eight bytes that is at most a CR. A byte below `n` borrows from its highest
/// bit, which is not set in the byte itself; only bytes after it may do so without being below (Warren, "Hacker's
/// Delight", 2nd ed., §6-1).
#[inline]
fn first_control(bytes: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_le_bytes([0x80; 8]);
    let word = u64::from_le_bytes(bytes);
    let below = word.wrapping_sub(ONES * (b'\r' as u64 + 1)) & !word & HIGHEST;
    (below != 0).then(|| below.trailing_zeros() as usize / 8)
}

/// The part of a line that some bytes contain.
pub(crate) struct Text<'b> {
    /// Text without the line's end.
    pub(crate) text: &'b [u8],
    /// Number of bytes used, including any part of the line's end.
    pub(crate) used: usize,
    /// True if the line is complete.
    pub(crate) ended: bool,
}

impl<'b> Text<'b> {
    /// Reads a line up to its end. `rest` must not be empty. `after_cr` is true, before and after, if the last byte was
    /// the CR of the line's end.
    ///
    /// # Errors
    /// Fails on a CR without LF (RFC 9112 §2.2), or a NUL (RFC 9110 §5.5).
    #[inline]
    pub(crate) fn read(rest: &'b [u8], after_cr: &mut bool) -> Result<Text<'b>> {
        let at = if !std::mem::take(after_cr) {
            end_of_text(rest)
        } else if rest[0] == b'\n' {
            // The LF stands alone here, which is right.
            Some(0)
        } else {
            return Err(ParseError::Control);
        };
        let Some(at) = at else {
            return Ok(Text { text: rest, used: rest.len(), ended: false });
        };
        let (end, ended) = match (rest[at], rest.get(at + 1)) {
            (b'\n', _) => (1, true),
            (b'\r', Some(b'\n')) => (2, true),
            (b'\r', None) => {
                *after_cr = true;
                (1, false)
            }
            _ => return Err(ParseError::Control),
        };
        Ok(Text { text: &rest[..at], used: at + end, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_found_wherever_it_is() {
        for length in 0..=SHORT + 40 {
            assert_eq!(end_of_text(&vec![b'\t'; length]), None);
            for (at, byte) in (0..length).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
                // What stands behind an end is not looked at.
                let mut text = vec![b'a'; length];
                text[at..].fill(byte);
                let ends = matches!(byte, b'\r' | b'\n' | 0);
                assert_eq!(end_of_text(&text), ends.then_some(at), "{byte} at {at} of {length}");
            }
        }
    }

    #[test]
    fn a_word_is_known_in_any_case_and_no_other_byte_is_taken_for_its() {
        let lower = b"keep-alive";
        for (at, byte) in (0..lower.len()).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
            let mut word = *lower;
            word[at] = byte;
            let is_same = word.eq_ignore_ascii_case(lower);
            assert!(byte == b'\r' || is_word(&word, lower) == is_same, "{byte} at {at}");
        }
        assert!(is_word(b"Keep-ALIVE", lower) && !is_word(b"keep-aliv", lower));
    }
}
