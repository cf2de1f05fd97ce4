//! Slots: parsing of the text between `{{` and `}}`, and its replacement in each request.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use weir_stats::SplitMix64;

use super::error::{Part, SlotPosition, TemplateError};
use super::lines::{Files, Lines};

/// Names of slots.
const NAMES: [&str; 4] = ["sequence", "random", "line", "pick"];

/// Number of decimal digits of the largest u64, and of the smallest i64 with its sign.
const LONGEST_NUMBER: usize = 20;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Part of a request that is filled in anew for every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slot {
    /// The request's number, counted from this start.
    Sequence(u64),
    /// A whole number from `low` to `low + span`.
    Integer { low: i64, span: u64 },
    /// Sixteen hexadecimal digits.
    Hex,
    /// The line with the request's number.
    Line(Arc<Lines>),
    /// A random line.
    Pick(Arc<Lines>),
}

/// Plain text or a slot.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    Text(Vec<u8>),
    Slot(Slot),
}

/// Splits a text into tokens, with an error in place of each invalid slot. `{{{{` stands for `{{`.
pub(super) fn tokens(
    mut text: &[u8],
    part: &Part,
    files: &mut Files,
) -> Vec<Result<Token, TemplateError>> {
    let original = text;
    let mut tokens = Vec::new();
    let mut plain = Vec::new();
    while let [first, rest @ ..] = text {
        match text {
            [b'{', b'{', b'{', b'{', rest @ ..] => {
                plain.extend_from_slice(b"{{");
                text = rest;
            }
            // Of three the first is plain, so that `{{{random}}: 1}` is an object.
            [b'{', b'{', after @ ..] if after.first() != Some(&b'{') => {
                let position = locate(part, original, original.len() - text.len());
                let Some(end) = after.windows(2).position(|pair| pair == b"}}") else {
                    tokens.push(Err(TemplateError::Open(position)));
                    return tokens;
                };
                if !plain.is_empty() {
                    tokens.push(Ok(Token::Text(std::mem::take(&mut plain))));
                }
                let slot = Slot::read(after[..end].trim_ascii(), position, files);
                let fit = slot.and_then(|slot| slot.check(part).map(|()| Token::Slot(slot)));
                tokens.push(fit);
                text = &after[end + 2..];
            }
            _ => {
                plain.push(*first);
                text = rest;
            }
        }
    }
    if !plain.is_empty() {
        tokens.push(Ok(Token::Text(plain)));
    }
    tokens
}

fn locate(part: &Part, text: &[u8], at: usize) -> SlotPosition {
    SlotPosition {
        part: part.clone(),
        character: String::from_utf8_lossy(&text[..at]).chars().count() + 1,
    }
}

impl Slot {
    fn read(text: &[u8], place: SlotPosition, files: &mut Files) -> Result<Slot, TemplateError> {
        let colon = text.iter().position(|byte| *byte == b':');
        let (name, argument) = match colon {
            Some(colon) => (&text[..colon], Some(&text[colon + 1..])),
            None => (text, None),
        };
        let (slot, wanted) = match (name, argument) {
            (b"sequence", None) => return Ok(Slot::Sequence(0)),
            (b"sequence", Some(start)) => {
                (number(start).map(Slot::Sequence), "`sequence:` and a whole number")
            }
            (b"random", None) => return Ok(Slot::Hex),
            (b"random", Some(range)) => {
                (integers(range), "`random:` and two whole numbers such as 1..6, the smaller first")
            }
            (b"line" | b"pick", Some(path)) if !path.is_empty() => {
                let lines = files.lines(Path::new(OsStr::from_bytes(path)))?;
                return Ok(match name {
                    b"line" => Slot::Line(lines),
                    _ => Slot::Pick(lines),
                });
            }
            (b"line" | b"pick", _) => (None, "a slot with a file, such as `line:users.txt`"),
            _ => {
                let slot = String::from_utf8_lossy(name).into_owned();
                return Err(TemplateError::Unknown { place, nearest: nearest(&slot), slot });
            }
        };
        slot.ok_or_else(|| {
            let slot = String::from_utf8_lossy(text).into_owned();
            TemplateError::Argument { place, slot, wanted }
        })
    }

    /// Checks that no text inserted by the slot can break the request at this part (RFC 9112 §3.2 and §5).
    fn check(&self, part: &Part) -> Result<(), TemplateError> {
        match part {
            Part::Target => self.fits(part, "holds white space or a control character", |line| {
                line.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
            }),
            Part::Field(_) => self.fits(part, "holds CR or NUL", |line| {
                !line.iter().any(|byte| matches!(byte, b'\r' | 0))
            }),
            Part::Content => Ok(()),
        }
    }

    /// Checks that the slot never inserts an empty text.
    pub(super) fn check_not_empty(&self, part: &Part) -> Result<(), TemplateError> {
        self.fits(part, "is empty", |line| !line.is_empty())
    }

    /// Checks that `fit` returns true for every line of a slot with a file; `fault` describes a line that is not fit.
    fn fits(
        &self,
        part: &Part,
        fault: &'static str,
        fit: impl Fn(&[u8]) -> bool,
    ) -> Result<(), TemplateError> {
        let (Slot::Line(lines) | Slot::Pick(lines)) = self else {
            return Ok(());
        };
        let Some(line) = lines.first_unfit(fit) else {
            return Ok(());
        };
        let (file, part) = (lines.file.clone(), part.clone());
        Err(TemplateError::Line { file, line, part, fault })
    }

    /// Returns the maximum number of bytes that the slot inserts.
    pub(super) fn max_len(&self) -> usize {
        match self {
            Slot::Sequence(_) | Slot::Integer { .. } => LONGEST_NUMBER,
            Slot::Hex => 16,
            Slot::Line(lines) | Slot::Pick(lines) => lines.longest(),
        }
    }

    /// Appends the slot's text for the request with this number.
    #[inline]
    pub(super) fn render(&self, number: u64, random: &mut SplitMix64, out: &mut Vec<u8>) {
        match self {
            Slot::Sequence(start) => write_number(start.wrapping_add(number), out),
            Slot::Integer { low, span } => {
                let value = low.wrapping_add_unsigned(random.up_to(*span));
                if value < 0 {
                    out.push(b'-');
                }
                write_number(value.unsigned_abs(), out);
            }
            Slot::Hex => {
                let value = random.next_u64();
                out.extend((0..16).map(|place| HEX[(value >> (60 - 4 * place)) as usize & 15]));
            }
            Slot::Line(lines) => out.extend_from_slice(lines.get(number)),
            Slot::Pick(lines) => out.extend_from_slice(lines.get(random.up_to(lines.count() - 1))),
        }
    }
}

fn number<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

fn integers(range: &[u8]) -> Option<Slot> {
    let middle = range.windows(2).position(|pair| pair == b"..")?;
    let (low, high): (i64, i64) = (number(&range[..middle])?, number(&range[middle + 2..])?);
    (low <= high).then(|| Slot::Integer { low, span: high.abs_diff(low) })
}

/// Returns the name that was most likely meant: a similar one, or one that begins with the written text.
fn nearest(written: &str) -> Option<&'static str> {
    let lowercase = written.to_ascii_lowercase();
    NAMES
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(name, &lowercase), name))
        .filter(|(distance, name)| {
            lowercase.len() >= 3 && name.starts_with(&*lowercase)
                || *distance <= name.len().div_ceil(3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Appends a number in decimal digits.
#[inline]
pub(super) fn write_number(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; LONGEST_NUMBER];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[begin..]);
}
