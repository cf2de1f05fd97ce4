//! Bytes and short strings of HTTP's grammar.

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
