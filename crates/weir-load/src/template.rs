//! Requests as bytes, with slots that are filled in for every request.
//!
//! A target, a field's value or the content may contain slots:
//!
//! | slot | replacement |
//! |---|---|
//! | `{{sequence}}`, `{{sequence:START}}` | the request's number, counted from 0 or START |
//! | `{{random:LOW..HIGH}}` | a whole number, all from LOW to HIGH equally likely |
//! | `{{random}}` | 64 random bits in 16 hexadecimal digits |
//! | `{{line:FILE}}` | the line of FILE with the request's number; after the last comes the first |
//! | `{{pick:FILE}}` | a random line of FILE |
//!
//! `{{{{` stands for `{{` ([`weir_model::request::escape`]). Everything is checked before a trial: no slot can insert
//! bytes that would break the request's framing. The length of content with slots is computed for every request.

mod error;
mod lines;
mod slot;

fn read_tokens(text: &[u8], part: &Part, files: &mut Files) -> Result<Vec<Token>, TemplateError> {
    slot::tokens(text, part, files).into_iter().collect()
}

#[cfg(test)]
mod tests;

use weir_http::request;
use weir_model::load::RequestSpec;
use weir_stats::SplitMix64;

pub use error::{Part, SlotPosition, TemplateError};
pub use lines::{Files, LONGEST_LINE, LinesError};

use slot::{Slot, Token};

/// Bytes of a request on the wire, with slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Fixed bytes; the whole request if there are no slots.
    bytes: Box<[u8]>,
    /// Pieces of the head, followed by those of the content, in order; both empty if there are no slots.
    head: Box<[Piece]>,
    content: Box<[Piece]>,
    max_len: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// This number of the fixed bytes, following those of the piece before.
    Bytes(usize),
    Slot(Slot),
    /// The content's length in decimal, with at most this number of digits.
    Length(usize),
}

impl Template {
    /// Compiles a template from the user's specification. `host` is the authority for the Host field. Files that slots
    /// name are read, unless they are in `files` already.
    ///
    /// # Errors
    /// The result would not be a request, a slot is invalid, or a file cannot fill it.
    pub fn new(
        spec: &RequestSpec,
        host: &str,
        files: &mut Files,
    ) -> Result<Template, TemplateError> {
        let tokens = Tokens::read(spec, files)?;
        let sample = tokens.sample(spec);
        request::check(&sample, host)?;
        if tokens.all().any(|token| matches!(token, Token::Slot(_))) {
            return Ok(tokens.into_template(&sample, host));
        }
        Ok(Template::plain(request::encode(&sample, host)?))
    }

    /// Creates a template with fixed bytes.
    pub fn plain(bytes: Vec<u8>) -> Template {
        Template {
            max_len: bytes.len(),
            bytes: bytes.into_boxed_slice(),
            head: Box::default(),
            content: Box::default(),
        }
    }

    /// Returns the bytes if they are the same for every request.
    #[inline]
    pub fn fixed(&self) -> Option<&[u8]> {
        self.head.is_empty().then_some(&*self.bytes)
    }

    /// Returns the maximum number of bytes that [`Template::render`] appends.
    #[inline]
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// Appends the request with this number, counted from 0. Allocates nothing if `out` has room for
    /// [`Template::max_len`] more bytes.
    pub fn render(&self, number: u64, random: &mut SplitMix64, out: &mut Vec<u8>) {
        if let Some(bytes) = self.fixed() {
            out.extend_from_slice(bytes);
            return;
        }
        let mut fixed = &*self.bytes;
        let mut gap = None;
        for piece in &self.head {
            match piece {
                Piece::Length(width) => {
                    gap = Some((out.len(), *width));
                    out.resize(out.len() + width, b'0');
                }
                piece => fixed = piece.render(fixed, number, random, out),
            }
        }
        let begin = out.len();
        for piece in &self.content {
            fixed = piece.render(fixed, number, random, out);
        }
        if let Some((at, width)) = gap {
            fill_in(out.len() - begin, at, width, out);
        }
    }
}

impl Piece {
    /// Appends the piece; returns the remaining fixed bytes.
    #[inline]
    fn render<'b>(
        &self,
        fixed: &'b [u8],
        number: u64,
        random: &mut SplitMix64,
        out: &mut Vec<u8>,
    ) -> &'b [u8] {
        match self {
            Piece::Bytes(length) => {
                let (piece, rest) = fixed.split_at(*length);
                out.extend_from_slice(piece);
                return rest;
            }
            Piece::Slot(slot) => slot.render(number, random, out),
            // Only in the head, where it is seen to.
            Piece::Length(_) => {}
        }
        fixed
    }

    fn max_len(&self) -> usize {
        match self {
            Piece::Bytes(length) | Piece::Length(length) => *length,
            Piece::Slot(slot) => slot.max_len(),
        }
    }
}

/// Writes the content's length into the gap of `width` bytes at `at`, and removes the unused part of the gap. There are
/// no leading zeros: RFC 9110 §8.6 allows them, but not every server accepts them.
fn fill_in(length: usize, at: usize, width: usize, out: &mut Vec<u8>) {
    let digits = decimal_digits(length);
    let end = at + digits;
    if digits < width {
        out.copy_within(at + width.., end);
        out.truncate(out.len() - (width - digits));
    }
    let mut remaining = length;
    for digit in out[at..end].iter_mut().rev() {
        *digit = b'0' + (remaining % 10) as u8;
        remaining /= 10;
    }
}

fn decimal_digits(value: usize) -> usize {
    value.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Returns all errors that keep a request from being sent, each with the part of the request concerned, if there is
/// one. [`Template::new`] returns only the first.
pub fn faults(
    spec: &RequestSpec,
    host: &str,
    files: &mut Files,
) -> Vec<(Option<Part>, TemplateError)> {
    let fields =
        spec.fields.iter().map(|(name, value)| (Part::Field(name.clone()), value.as_bytes()));
    let mut faults = Vec::new();
    for (part, text) in std::iter::once((Part::Target, spec.target.as_bytes()))
        .chain(fields)
        .chain([(Part::Content, &*spec.content)])
    {
        let errors = slot::tokens(text, &part, files).into_iter().filter_map(Result::err);
        faults.extend(errors.map(|error| (Some(part.clone()), error)));
    }
    if faults.is_empty() {
        faults.extend(Template::new(spec, host, files).err().map(|error| (None, error)));
    }
    faults
}

/// Tokens of the parts of a request that may contain slots.
struct Tokens {
    target: Vec<Token>,
    values: Vec<Vec<Token>>,
    content: Vec<Token>,
}

impl Tokens {
    fn read(spec: &RequestSpec, files: &mut Files) -> Result<Tokens, TemplateError> {
        let target = read_tokens(spec.target.as_bytes(), &Part::Target, files)?;
        if let [Token::Slot(slot), rest @ ..] = &target[..]
            && rest.iter().all(|token| matches!(token, Token::Slot(_)))
        {
            slot.check_not_empty(&Part::Target)?;
        }
        let mut values = Vec::with_capacity(spec.fields.len());
        for (name, value) in &spec.fields {
            values.push(read_tokens(value.as_bytes(), &Part::Field(name.clone()), files)?);
        }
        let content = read_tokens(&spec.content, &Part::Content, files)?;
        let varies = has_slots(&content);
        for ((name, _), value) in spec.fields.iter().zip(&values) {
            if name.eq_ignore_ascii_case("content-length") && (varies || has_slots(value)) {
                return Err(TemplateError::Length);
            }
        }
        Ok(Tokens { target, values, content })
    }

    fn all(&self) -> impl Iterator<Item = &Token> {
        let values = self.values.iter().flatten();
        self.target.iter().chain(values).chain(&self.content)
    }

    /// Creates the request with a 0 in every slot: an error in it is an error in every request.
    fn sample(&self, spec: &RequestSpec) -> RequestSpec {
        let names = spec.fields.iter().map(|(name, _)| name.clone());
        let values = self.values.iter().map(|tokens| text(&sample(tokens)));
        RequestSpec {
            method: spec.method.clone(),
            target: text(&sample(&self.target)),
            fields: names.zip(values).collect(),
            content: sample(&self.content),
        }
    }

    /// Puts the parts in wire order. `sample` determines which parts there are.
    fn into_template(mut self, sample: &RequestSpec, host: &str) -> Template {
        let varies = has_slots(&self.content);
        let width = decimal_digits(self.content.iter().map(Token::max_len).sum());
        let mut bytes = Vec::new();
        let (mut head, mut content) = (Vec::new(), Vec::new());
        for part in request::parts(sample, host) {
            let written = match part {
                request::Part::Text(text) => vec![Token::Text(text.into())],
                request::Part::Target(_) => std::mem::take(&mut self.target),
                request::Part::Value(index, _) => std::mem::take(&mut self.values[index]),
                request::Part::Length if varies => {
                    head.push(Piece::Length(width));
                    continue;
                }
                request::Part::Length => {
                    vec![Token::Text(sample.content.len().to_string().into_bytes())]
                }
                request::Part::Content(_) => {
                    let written = std::mem::take(&mut self.content);
                    add(written, &mut content, &mut bytes);
                    continue;
                }
            };
            add(written, &mut head, &mut bytes);
        }
        Template {
            max_len: head.iter().chain(&content).map(Piece::max_len).sum(),
            bytes: bytes.into_boxed_slice(),
            head: head.into_boxed_slice(),
            content: content.into_boxed_slice(),
        }
    }
}

impl Token {
    fn max_len(&self) -> usize {
        match self {
            Token::Text(text) => text.len(),
            Token::Slot(slot) => slot.max_len(),
        }
    }
}

fn has_slots(tokens: &[Token]) -> bool {
    tokens.iter().any(|token| matches!(token, Token::Slot(_)))
}

fn sample(tokens: &[Token]) -> Vec<u8> {
    let mut sample = Vec::new();
    for token in tokens {
        match token {
            Token::Text(text) => sample.extend_from_slice(text),
            Token::Slot(_) => sample.push(b'0'),
        }
    }
    sample
}

/// Converts bytes to a string. They are valid UTF-8 because tokens are cut at ASCII characters.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Appends pieces; consecutive fixed bytes become one piece.
fn add(tokens: Vec<Token>, pieces: &mut Vec<Piece>, bytes: &mut Vec<u8>) {
    for token in tokens {
        match (token, pieces.last_mut()) {
            (Token::Text(text), Some(Piece::Bytes(length))) => {
                *length += text.len();
                bytes.extend_from_slice(&text);
            }
            (Token::Text(text), _) => {
                pieces.push(Piece::Bytes(text.len()));
                bytes.extend_from_slice(&text);
            }
            (Token::Slot(slot), _) => pieces.push(Piece::Slot(slot)),
        }
    }
}
