//! Expectations about responses, and their check.
//!
//! An [`Expectation`] is compiled before a trial and shared. A [`Check`] is the small state needed for one response in
//! progress; it sees fields and content piece by piece through the parser's [`Sink`] and keeps none of them:
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
//! let bytes = b"HTTP/1.1 200 OK\r\x0aContent-Length: 2\r\x0a\r\x0ahi";
//! let fed = parser.feed_with(bytes, &mut check.watch(&expectation))?;
//! let Progress::Complete(end) = fed.event else { panic!("not complete") };
//! assert_eq!(check.verdict(&expectation, &end), Err(Unexpected::Size));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use sha2::{Digest, Sha256};
use weir_http::Sink;
use weir_http::response::ResponseEnd;
use weir_model::request::{ExpectSpec, FieldSpec, StatusSpec};

/// Maximum number of fields in one expectation, limited by the bits of a set.
pub const MOST_FIELDS: usize = 32;

/// Reason why an expectation cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpectError {
    /// More fields than [`MOST_FIELDS`].
    #[error("{0} fields are expected, and {MOST_FIELDS} are possible")]
    Fields(usize),
    /// The name of a field is not a token (RFC 9110 §5.1).
    #[error("field name `{}` is not a token", .0.escape_debug())]
    Name(String),
    /// The value of a field contains a character that no response can deliver (RFC 9110 §5.5).
    #[error("value of field `{}` holds CR, LF or NUL", .0.escape_debug())]
    Value(String),
    /// A status code that no response can have.
    #[error("status {0} is not one of 100 to 999")]
    Status(u16),
    /// The hash is not 64 hexadecimal digits.
    #[error("sha256 `{}` is not 64 hexadecimal digits", .0.escape_debug())]
    Hash(String),
}

/// Difference between a response and its expectation; the first one in this order is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unexpected {
    /// The status code is outside the valid range (RFC 9110 §15), whatever was expected.
    NoStatus,
    /// The status code is not an expected one.
    Status,
    /// An expected field is missing.
    FieldMissing,
    /// An expected field has another value.
    FieldDiffers,
    /// The content has another size than expected.
    Size,
    /// The content has another hash than expected.
    Hash,
}

impl Unexpected {
    /// Returns the words under which a trial counts this difference.
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

/// Compiled expectation about a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// One bit per status code; `None` if all are accepted.
    statuses: Option<[u64; 16]>,
    /// Expected fields, at most [`MOST_FIELDS`].
    fields: Box<[Field]>,
    size: Option<u64>,
    sha256: Option<[u8; 32]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    /// Name in lower case.
    name: Box<[u8]>,
    /// Expected value; `None` if any value is accepted.
    value: Option<Box<[u8]>>,
}

impl Expectation {
    /// Compiles the user's specification.
    ///
    /// # Errors
    /// The specification cannot be checked.
    pub fn new(spec: &ExpectSpec) -> Result<Expectation, ExpectError> {
        if spec.fields.len() > MOST_FIELDS {
            return Err(ExpectError::Fields(spec.fields.len()));
        }
        Ok(Expectation {
            statuses: statuses(&spec.status)?,
            fields: spec
                .fields
                .iter()
                .map(|(name, wanted)| Field::new(name, wanted))
                .collect::<Result<_, _>>()?,
            size: spec.size,
            sha256: spec
                .sha256
                .as_ref()
                .map(|text| hash(text).ok_or_else(|| ExpectError::Hash(text.clone())))
                .transpose()?,
        })
    }

    /// Returns true if the content must be read, so that none of it may be dropped
    /// ([`weir_http::response::ResponseParser::skip`]). Its size is known in any case.
    #[inline]
    pub fn reads_content(&self) -> bool {
        self.sha256.is_some()
    }

    /// Returns true if the expectation names status codes.
    pub fn judges_status(&self) -> bool {
        self.statuses.is_some()
    }

    /// Returns true if the parser must show fields or content; if not, the plain parser and [`Check::verdict`] suffice.
    #[inline]
    pub fn watches(&self) -> bool {
        self.reads_content() || !self.fields.is_empty()
    }

    #[inline]
    fn allows(&self, status: u16) -> bool {
        self.statuses
            .as_ref()
            .is_none_or(|set| set[usize::from(status >> 6) & 15] >> (status & 63) & 1 == 1)
    }

    /// Returns the set of the fields in `among` for which `holds` returns true.
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

    /// Returns the set of all fields.
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
        Ok(Field { name: name.to_ascii_lowercase().into_bytes().into_boxed_slice(), value })
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
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (parse_digit(pair[0])? << 4 | parse_digit(pair[1])?) as u8;
    }
    Some(hash)
}

fn parse_digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// State of the check of a response in progress. One value serves all responses of a connection, one after the other,
/// with any expectation for each.
#[derive(Debug, Default)]
pub struct Check {
    /// Set of the expected fields that have arrived.
    present: u32,
    /// Set of the expected fields that have arrived with the expected value.
    matched: u32,
    /// Set of the expected fields that the current field may still turn out to be.
    candidates: u32,
    /// Length of the current field's name, or of its value, so far.
    at: u32,
    in_value: bool,
    /// Hasher, created when the first hash is needed, then reused.
    hash: Option<Box<Sha256>>,
}

impl Check {
    /// Starts the check of a response and discards the state of the one before.
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

    /// Returns the sink that the parser feeds. `expectation` must be the one passed to [`Check::begin`].
    #[inline]
    pub fn watch<'c>(&'c mut self, expectation: &'c Expectation) -> Watch<'c> {
        Watch { check: self, expectation }
    }

    /// Checks a complete response.
    ///
    /// # Errors
    /// The first difference from the expectation.
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
        if hash.is_some_and(|hash| hash[..] == wanted[..]) { Ok(()) } else { Err(Unexpected::Hash) }
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
        self.matched |= expectation.filter(self.candidates, |field| {
            field.value.as_deref().is_some_and(|value| value.len() <= length)
        });
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

/// Sink for the parser: a [`Check`] together with its expectation.
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
