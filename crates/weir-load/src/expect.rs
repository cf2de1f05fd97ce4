//! What a response must be like, and whether it was.
//!
//! An [`Expectation`] is compiled before a trial and shared. A [`Check`] is the little that one
//! response in the making needs; it sees fields and content piece by piece through the parser's
//! [`Sink`] and keeps none of them:
//!
//! ```
//! use weir_http::response::{Progress, ResponseParser};
//! use weir_load::expect::{Check, Expectation, Unexpected};
//! use weir_model::request::{ExpectSpec, StatusSpec};
//!
//! let spec = ExpectSpec { status: vec![StatusSpec::Class(2)], size: Some(3), ..ExpectSpec::default() };
//! let expectation = Expectation::new(&spec)?;
//! let (mut parser, mut check) = (ResponseParser::default(), Check::default());
//! parser.begin(false);
//! check.begin(&expectation);
//! let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
//! let fed = parser.feed_with(bytes, &mut check.watch(&expectation))?;
//! let Progress::Complete(end) = fed.event else { panic!("not complete") };
//! assert_eq!(check.verdict(&expectation, &end), Err(Unexpected::Size));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use sha2::{Digest, Sha256};
use weir_http::Sink;
use weir_http::response::ResponseEnd;
use weir_model::request::{ExpectSpec, FieldSpec, StatusSpec};

/// Fields that one expectation may name: bits of a set.
pub const MOST_FIELDS: usize = 32;

/// Why an expectation cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpectError {
    /// Too many fields.
    #[error("{0} fields are expected, and {MOST_FIELDS} are possible")]
    Fields(usize),
    /// The name of a field is not a token (RFC 9110 §5.1).
    #[error("field name `{}` is not a token", .0.escape_debug())]
    Name(String),
    /// The value of a field holds a character that never arrives (RFC 9110 §5.5).
    #[error("value of field `{}` holds CR, LF or NUL", .0.escape_debug())]
    Value(String),
    /// A status code that no response can have.
    #[error("status {0} is not one of 100 to 999")]
    Status(u16),
    /// The hash is not one.
    #[error("sha256 `{}` is not 64 hexadecimal digits", .0.escape_debug())]
    Hash(String),
}

/// In which way a response is not what was expected; the first of them, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unexpected {
    /// The status code is none (RFC 9110 §15), whatever was expected.
    NoStatus,
    /// The status code.
    Status,
    /// A field is not there.
    FieldMissing,
    /// A field is there, with another value.
    FieldDiffers,
    /// The number of bytes in the content.
    Size,
    /// The content.
    Hash,
}

impl Unexpected {
    /// The words under which a trial counts it.
    pub fn words(self) -> &'static str {
        match self {
            Unexpected::NoStatus => "status code outside of 100 to 599 (RFC 9110 §15)",
            Unexpected::Status => "status is not one of those expected",
            Unexpected::FieldMissing => "an expected field is missing",
            Unexpected::FieldDiffers => "an expected field has another value",
            Unexpected::Size => "content has another size than expected",
            Unexpected::Hash => "content has another SHA-256 than expected",
        }
    }
}

/// What a response must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// A bit for each status code; `None`: all will do.
    statuses: Option<[u64; 16]>,
    /// At most [`MOST_FIELDS`].
    fields: Box<[Field]>,
    size: Option<u64>,
    sha256: Option<[u8; 32]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    /// In lower case.
    name: Box<[u8]>,
    /// `None`: any will do.
    value: Option<Box<[u8]>>,
}

impl Expectation {
    /// Compiles what the user wrote.
    ///
    /// # Errors
    /// It cannot be checked.
    pub fn new(spec: &ExpectSpec) -> Result<Expectation, ExpectError> {
        if spec.fields.len() > MOST_FIELDS {
            return Err(ExpectError::Fields(spec.fields.len()));
        }
        let field = |(name, wanted): &(String, FieldSpec)| Field::new(name, wanted);
        let hash = |text: &String| hash(text).ok_or_else(|| ExpectError::Hash(text.clone()));
        Ok(Expectation {
            statuses: statuses(&spec.status)?,
            fields: spec.fields.iter().map(field).collect::<Result<_, _>>()?,
            size: spec.size,
            sha256: spec.sha256.as_ref().map(hash).transpose()?,
        })
    }

    /// Whether it must see the content: then none of it may be dropped unseen
    /// ([`weir_http::response::ResponseParser::skip`]). Its size is known in any case.
    #[inline]
    pub fn reads_content(&self) -> bool {
        self.sha256.is_some()
    }

    /// Whether it says which status codes are right.
    pub fn judges_status(&self) -> bool {
        self.statuses.is_some()
    }

    /// Whether it must see anything: if not, the plain parser will do, and [`Check::verdict`] alone.
    #[inline]
    pub fn watches(&self) -> bool {
        self.reads_content() || !self.fields.is_empty()
    }

    #[inline]
    fn allows(&self, status: u16) -> bool {
        let bit = |set: &[u64; 16]| set[usize::from(status >> 6) & 15] >> (status & 63) & 1 == 1;
        self.statuses.as_ref().is_none_or(bit)
    }

    /// Those of the `among` fields for which `holds` holds.
    #[inline]
    fn filter(&self, among: u32, holds: impl Fn(&Field) -> bool) -> u32 {
        let (mut left, mut kept) = (among, 0);
        while left != 0 {
            let index = left.trailing_zeros();
            left &= left - 1;
            kept |= u32::from(holds(&self.fields[index as usize])) << index;
        }
        kept
    }

    /// All fields.
    #[inline]
    fn all(&self) -> u32 {
        // At most 32 fields: 2³² − 1 fits once the shift was made in 64 bits.
        ((1_u64 << self.fields.len()) - 1) as u32
    }
}

impl Field {
    fn new(name: &str, wanted: &FieldSpec) -> Result<Field, ExpectError> {
        if !weir_http::is_token(name) {
            return Err(ExpectError::Name(name.to_owned()));
        }
        let value = match wanted {
            FieldSpec::Present => None,
            FieldSpec::Value(value) if value.contains(['\r', '\n', '\0']) => {
                return Err(ExpectError::Value(name.to_owned()));
            }
            FieldSpec::Value(value) => Some(value.trim_matches([' ', '\t']).as_bytes().into()),
        };
        Ok(Field {
            name: name.to_ascii_lowercase().into_bytes().into_boxed_slice(),
            value,
        })
    }
}

fn statuses(specs: &[StatusSpec]) -> Result<Option<[u64; 16]>, ExpectError> {
    let mut set = [0_u64; 16];
    for spec in specs {
        let codes = match *spec {
            StatusSpec::Code(code) => code..=code,
            StatusSpec::Class(class) => {
                let first = u16::from(class).saturating_mul(100);
                first..=first.saturating_add(99)
            }
        };
        if !(100..=999).contains(codes.start()) {
            return Err(ExpectError::Status(*codes.start()));
        }
        for code in codes {
            set[usize::from(code >> 6)] |= 1 << (code & 63);
        }
    }
    Ok((!specs.is_empty()).then_some(set))
}

fn hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(hash)
}

/// What is known of the response that is coming. One value serves all responses of a connection,
/// one after the other, whatever is expected of each.
#[derive(Debug, Default)]
pub struct Check {
    /// Fields that came.
    present: u32,
    /// Fields that came with the value expected.
    matched: u32,
    /// Fields that the one now coming may still be.
    candidates: u32,
    /// Bytes of its name, or of its value, so far.
    at: u32,
    in_value: bool,
    /// Made when the first hash is asked for, then used again and again.
    hash: Option<Box<Sha256>>,
}

impl Check {
    /// Forgets the response before.
    #[inline]
    pub fn begin(&mut self, expectation: &Expectation) {
        self.present = 0;
        self.matched = 0;
        self.candidates = 0;
        self.in_value = true;
        if expectation.reads_content() {
            self.hash.get_or_insert_default().reset();
        }
    }

    /// What the parser is to show the response to. `expectation` must be that of
    /// [`Check::begin`].
    #[inline]
    pub fn watch<'c>(&'c mut self, expectation: &'c Expectation) -> Watch<'c> {
        Watch {
            check: self,
            expectation,
        }
    }

    /// Judges a complete response.
    ///
    /// # Errors
    /// It is not what was expected.
    pub fn verdict(
        &mut self,
        expectation: &Expectation,
        end: &ResponseEnd,
    ) -> Result<(), Unexpected> {
        if !expectation.allows(end.status) {
            return Err(Unexpected::Status);
        }
        self.end_field(expectation);
        let wanted = expectation.all();
        if wanted & !self.present != 0 {
            return Err(Unexpected::FieldMissing);
        }
        let valued = expectation.filter(wanted, |field| field.value.is_some());
        if valued & !self.matched != 0 {
            return Err(Unexpected::FieldDiffers);
        }
        let size = expectation.size.unwrap_or(end.content_bytes);
        if size != end.content_bytes {
            return Err(Unexpected::Size);
        }
        let Some(wanted) = &expectation.sha256 else {
            return Ok(());
        };
        let hash = self.hash.as_mut().map(|hash| hash.finalize_reset());
        match hash.is_some_and(|hash| hash[..] == wanted[..]) {
            true => Ok(()),
            false => Err(Unexpected::Hash),
        }
    }

    #[inline]
    fn begin_value(&mut self, expectation: &Expectation) {
        let length = self.at as usize;
        self.candidates = expectation.filter(self.candidates, |field| field.name.len() == length);
        self.present |= self.candidates;
        self.in_value = true;
        self.at = 0;
    }

    #[inline]
    fn end_field(&mut self, expectation: &Expectation) {
        if !self.in_value {
            self.begin_value(expectation);
        }
        let length = self.at as usize;
        let fits = |value: &[u8]| value.len() <= length;
        let whole = |field: &Field| field.value.as_deref().is_some_and(fits);
        self.matched |= expectation.filter(self.candidates, whole);
        self.candidates = 0;
    }

    fn value_byte(&mut self, expectation: &Expectation, byte: u8) {
        let blank = matches!(byte, b' ' | b'\t');
        if blank && self.at == 0 {
            return;
        }
        let at = self.at as usize;
        self.candidates = expectation.filter(self.candidates, |field| match &field.value {
            // After the value there may be white space; before its end, every byte counts.
            Some(value) => value.get(at).map_or(blank, |wanted| *wanted == byte),
            None => false,
        });
        self.at = self.at.saturating_add(1);
    }
}

/// A [`Check`] and what it checks against, while the parser reads.
#[derive(Debug)]
pub struct Watch<'c> {
    check: &'c mut Check,
    expectation: &'c Expectation,
}

impl Sink for Watch<'_> {
    #[inline]
    fn field(&mut self) {
        self.check.end_field(self.expectation);
        self.check.candidates = self.expectation.all();
        self.check.at = 0;
        self.check.in_value = false;
    }

    #[inline]
    fn name(&mut self, piece: &[u8]) {
        let check = &mut *self.check;
        if check.candidates == 0 {
            return;
        }
        let begin = check.at as usize;
        let end = begin.saturating_add(piece.len());
        check.candidates = self.expectation.filter(check.candidates, |field| {
            let part = field.name.get(begin..end);
            part.is_some_and(|part| part.eq_ignore_ascii_case(piece))
        });
        check.at = end.min(u32::MAX as usize) as u32;
    }

    #[inline]
    fn value(&mut self, piece: &[u8]) {
        if !self.check.in_value {
            self.check.begin_value(self.expectation);
        }
        for byte in piece {
            if self.check.candidates == 0 {
                return;
            }
            self.check.value_byte(self.expectation, *byte);
        }
    }

    #[inline]
    fn content(&mut self, piece: &[u8]) {
        if let Some(hash) = &mut self.check.hash
            && self.expectation.reads_content()
        {
            hash.update(piece);
        }
    }
}

const _: () = assert!(
    size_of::<Check>() <= 32,
    "one of these stands beside each connection whose responses are checked"
);

#[cfg(test)]
mod tests;
