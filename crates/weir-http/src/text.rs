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
            false => memchr3(b'\r', b'\n', 0, rest),
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
