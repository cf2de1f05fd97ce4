//! Bytes and short strings of HTTP's grammar.

use memchr::memchr3;

use crate::error::{ParseError, Result};

/// White space within a line (RFC 9110 §5.6.3).
#[inline]
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether a byte may stand in a token (RFC 9110 §5.6.2).
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

/// Without the white space around it.
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

/// A decimal number of digits alone; `None` when it is not, or does not fit.
#[inline]
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Whether a word is spelled as `lower`, in whatever case. `lower` has only small letters and `-`, and `word` no CR,
/// which is what `|` makes of nothing else.
#[inline]
pub(crate) fn is_word<const N: usize>(word: &[u8], lower: &[u8; N]) -> bool {
    let pairs = word.iter().zip(lower);
    // Without a branch for each byte, the compiler compares words of eight.
    word.len() == N
        && pairs.fold(0, |differs, (byte, lower)| {
            differs | ((byte | 0x20) ^ lower)
        }) == 0
}

/// Bytes of a line that are looked at in words of eight: most values are too short for what starts slowly.
const SHORT: usize = 64;

/// Where the first CR, LF or NUL is.
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
    let seen = 8 * words.len();
    if seen < SHORT {
        return tail.iter().position(is_end).map(|at| seen + at);
    }
    memchr3(b'\r', b'\n', 0, &rest[SHORT..]).map(|at| SHORT + at)
}

/// The first of eight bytes that is at most a CR: a byte below `n` borrows from its highest bit, which it has not set
/// itself, and only bytes behind it may do so without being below (Warren, "Hacker's Delight", 2nd ed., §6-1).
#[inline]
fn first_control(bytes: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_le_bytes([0x80; 8]);
    let word = u64::from_le_bytes(bytes);
    let below = word.wrapping_sub(ONES * (b'\r' as u64 + 1)) & !word & HIGHEST;
    (below != 0).then(|| below.trailing_zeros() as usize / 8)
}

/// What some bytes hold of a line.
pub(crate) struct Text<'b> {
    /// Without the line's end.
    pub(crate) text: &'b [u8],
    /// Bytes used, with as much of the line's end as is there.
    pub(crate) used: usize,
    /// The line is complete.
    pub(crate) ended: bool,
}

impl<'b> Text<'b> {
    /// Reads a line up to its end. `rest` is not empty. `after_cr` says, before and after, whether the last byte
    /// was the CR of the line's end.
    ///
    /// # Errors
    /// A CR without LF (RFC 9112 §2.2), or a NUL (RFC 9110 §5.5).
    #[inline]
    pub(crate) fn read(rest: &'b [u8], after_cr: &mut bool) -> Result<Text<'b>> {
        let at = match std::mem::take(after_cr) {
            // The LF stands alone here, which is right.
            true if rest[0] == b'\n' => Some(0),
            true => return Err(ParseError::Control),
            false => end_of_text(rest),
        };
        let Some(at) = at else {
            return Ok(Text {
                text: rest,
                used: rest.len(),
                ended: false,
            });
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
        Ok(Text {
            text: &rest[..at],
            used: at + end,
            ended,
        })
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
                assert_eq!(
                    end_of_text(&text),
                    ends.then_some(at),
                    "{byte} at {at} of {length}"
                );
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
            assert!(
                byte == b'\r' || is_word(&word, lower) == is_same,
                "{byte} at {at}"
            );
        }
        assert!(is_word(b"Keep-ALIVE", lower) && !is_word(b"keep-aliv", lower));
    }
}
