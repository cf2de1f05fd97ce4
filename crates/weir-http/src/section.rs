//! A section of field lines (RFC 9112 §5): the head after its first line, or the trailer section.
//!
//! A [`Sink`] receives the fields in pieces, as they arrive.
//!
//! The names of all fields are checked, because a line without a colon means that the peer does not speak HTTP or that
//! both sides disagree where the head began. Values are skipped to the line's end unless the field decides the framing.
//! A line may end in a bare LF (RFC 9112 §2.2). A CR without a following LF (same section) and a NUL (RFC 9110 §5.5)
//! are refused in every line: readers that take them for a line end, a space or a character of the value see different
//! messages.
//!
//! Memory: a name that is split across reads is carried over until it is known whether it matters, at most
//! [`LONGEST_NAME`] + 1 bytes; a value is carried over only if it matters, and never beyond the limit of the section.

use crate::error::{ParseError, Result};
use crate::sink::Sink;
use crate::text::{Text, decimal, is_blank, is_token, is_word, trim};

/// Buffer capacity that an idle connection may keep for lines split across reads, in bytes.
const KEPT_CAPACITY: usize = 1024;

/// Length of `transfer-encoding`, the longest field name that matters.
const LONGEST_NAME: usize = 17;

/// Fields that decide where a message ends and whether the connection is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Connection,
    ContentLength,
    Expect,
    TransferEncoding,
}

/// State of the parser within a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// At the beginning of a line, or within a name that is being carried over.
    Name,
    /// In a name too long to matter.
    LongName,
    /// In a value that does not decide the framing, or in a line that is not a field line; the latter is only ever the
    /// first of a head, before [`NOT_EMPTY`] is set.
    Skip,
    /// In a value that matters and is being carried over.
    Value(Field),
    /// After the line end of a value that matters: the next byte decides whether the value is folded.
    ValueEnd(Field),
}

/// Kinds of line beginnings.
enum Begin {
    /// Not decided yet: these bytes have to be carried over.
    Undecided,
    /// The empty line that ends the section, of this many bytes.
    End(usize),
    /// The continuation of the line before (obs-fold, RFC 9112 §5.2).
    Fold,
    /// A name of this length, followed by a colon.
    Field(usize),
    /// A name longer than any that matters, without a colon so far.
    LongName,
}

const CHUNKED: u8 = 1;
const ENCODED: u8 = 1 << 1;
const LENGTH: u8 = 1 << 2;
const LENGTH_BROKEN: u8 = 1 << 3;
const CLOSE: u8 = 1 << 4;
const KEEP_ALIVE: u8 = 1 << 5;
const CONTINUE: u8 = 1 << 6;
/// Set once a field line has been read, so that a fold has something to continue.
const NOT_EMPTY: u8 = 1 << 7;

/// State of one section, and the flags collected from its fields.
#[derive(Debug)]
pub(crate) struct Section {
    /// The beginning of the current line, if it is split across reads.
    pub(crate) carry: Vec<u8>,
    content_length: u64,
    /// Bytes of this section so far; never more than `limit`.
    seen: u32,
    limit: u32,
    line: Line,
    said: u8,
    trailer: bool,
    /// True if the last byte was the CR of a line end: its LF must follow.
    after_cr: bool,
}

impl Section {
    pub(crate) fn new(limit: u32) -> Section {
        Section {
            carry: Vec::new(),
            content_length: 0,
            seen: 0,
            limit,
            line: Line::Name,
            said: 0,
            trailer: false,
            after_cr: false,
        }
    }

    /// Resets the section for the head of another message.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.carry.clear();
        if self.carry.capacity() > KEPT_CAPACITY {
            self.carry = Vec::new();
        }
        self.seen = 0;
        self.line = Line::Name;
        self.said = 0;
        self.trailer = false;
        self.after_cr = false;
    }

    /// Begins the trailer section of the same message; the flags from its head are kept.
    pub(crate) fn begin_trailer(&mut self) {
        self.seen = 0;
        self.said &= !NOT_EMPTY;
        self.trailer = true;
    }

    /// Returns the number of bytes of this section so far.
    #[inline]
    pub(crate) fn seen(&self) -> u32 {
        self.seen
    }

    /// Returns the part of `bytes` within the section's limit. The part consumed of it has to be reported to
    /// [`Section::settle`].
    #[inline]
    pub(crate) fn within_limit<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[..bytes.len().min((self.limit - self.seen) as usize)]
    }

    /// Counts `consumed` of the `offered` bytes.
    ///
    /// # Errors
    /// Fails if the section is not `done` and more bytes were offered than the limit allows.
    #[inline]
    pub(crate) fn settle(&mut self, offered: usize, consumed: usize, done: bool) -> Result<()> {
        if !done && offered > (self.limit - self.seen) as usize {
            return Err(ParseError::HeadTooLarge { limit: self.limit });
        }
        // Fits: what is consumed was within the limit, which is a u32.
        self.seen += consumed as u32;
        Ok(())
    }

    /// Skips the rest of the current line, which is not a field line. `after_cr`: its CR has been read.
    #[inline]
    pub(crate) fn skip_line(&mut self, after_cr: bool) {
        self.line = Line::Skip;
        self.after_cr = after_cr;
    }

    /// Reads on in the current line, up to its end. `rest` must not be empty.
    ///
    /// # Errors
    /// Fails on a CR without LF, or a NUL.
    #[inline]
    fn text<'b>(&mut self, rest: &'b [u8]) -> Result<Text<'b>> {
        Text::read(rest, &mut self.after_cr)
    }

    /// Reads field lines up to the end of the section or of `view`. Returns the number of bytes used and whether the
    /// section is complete; if it is not, all bytes were used.
    #[inline]
    pub(crate) fn fields(&mut self, view: &[u8], sink: &mut impl Sink) -> Result<(usize, bool)> {
        let mut at = 0;
        while at < view.len() {
            let remaining = &view[at..];
            match self.line {
                Line::Name if self.carry.is_empty() => match begin_of_line(remaining)? {
                    Begin::Field(name) => at += self.field(remaining, name, sink)?,
                    Begin::End(length) => return Ok((at + length, true)),
                    begin => at += self.odd_begin(begin, remaining, sink)?,
                },
                Line::Skip => {
                    let line = self.text(remaining)?;
                    if self.said & NOT_EMPTY != 0 {
                        sink.value(line.text);
                    }
                    if line.ended {
                        self.line = Line::Name;
                    }
                    at += line.used;
                }
                _ => {
                    let (used, done) = self.split_line(remaining, sink)?;
                    at += used;
                    if done {
                        return Ok((at, true));
                    }
                }
            }
        }
        Ok((at, false))
    }

    /// Reads a field line from its beginning. If the line is complete, all of it is used.
    #[inline]
    fn field(&mut self, rest: &[u8], name: usize, sink: &mut impl Sink) -> Result<usize> {
        self.said |= NOT_EMPTY;
        let colon = name + 1;
        sink.field();
        sink.name(&rest[..name]);
        let Text { text, used, ended } = match &rest[colon..] {
            [] => Text { text: &[], used: 0, ended: false },
            value => self.text(value)?,
        };
        sink.value(text);
        let used = colon + used;
        let Some(field) = self.of_interest(&rest[..name]) else {
            // The line after this one, or the middle of this one.
            self.line = if ended { Line::Name } else { Line::Skip };
            return Ok(used);
        };
        match rest.get(used) {
            Some(next) if ended && !is_blank(*next) => self.apply(field, text),
            _ => {
                self.carry.extend_from_slice(text);
                self.line = if ended { Line::ValueEnd(field) } else { Line::Value(field) };
            }
        }
        Ok(used)
    }

    /// Handles rare beginnings of lines: cut off, folded, or very long.
    #[cold]
    fn odd_begin(&mut self, begin: Begin, rest: &[u8], sink: &mut impl Sink) -> Result<usize> {
        match begin {
            Begin::Fold if self.said & NOT_EMPTY == 0 => return Err(ParseError::FieldLine),
            // A value of interest looks ahead, so only others are continued here.
            Begin::Fold => {
                sink.value(b" ");
                self.line = Line::Skip;
                return Ok(1);
            }
            Begin::LongName => {
                sink.field();
                sink.name(rest);
                self.line = Line::LongName;
            }
            _ => self.carry.extend_from_slice(rest),
        }
        Ok(rest.len())
    }

    /// Continues a line whose beginning came in an earlier read. `rest` must not be empty.
    #[cold]
    fn split_line(&mut self, rest: &[u8], sink: &mut impl Sink) -> Result<(usize, bool)> {
        match self.line {
            Line::Name => return self.split_name(rest[0], sink).map(|done| (1, done)),
            Line::LongName => {
                let end = rest.iter().position(|byte| !is_token(*byte));
                sink.name(&rest[..end.unwrap_or(rest.len())]);
                let Some(end) = end else {
                    return Ok((rest.len(), false));
                };
                if rest[end] != b':' {
                    return Err(ParseError::FieldLine);
                }
                self.said |= NOT_EMPTY;
                self.line = Line::Skip;
                return Ok((end + 1, false));
            }
            Line::Value(field) => {
                let line = self.text(rest)?;
                sink.value(line.text);
                self.carry.extend_from_slice(line.text);
                if line.ended {
                    self.line = Line::ValueEnd(field);
                }
                return Ok((line.used, false));
            }
            Line::ValueEnd(field) if is_blank(rest[0]) => {
                sink.value(b" ");
                self.carry.push(b' ');
                self.line = Line::Value(field);
                return Ok((1, false));
            }
            Line::ValueEnd(field) => {
                let value = std::mem::take(&mut self.carry);
                self.apply(field, &value);
                self.carry = value;
                self.carry.clear();
                self.line = Line::Name;
                return Ok((0, false));
            }
            Line::Skip => {}
        }
        Ok((rest.len(), false))
    }

    /// Adds a byte to a name that is split across reads. Returns true if the section ends with it.
    fn split_name(&mut self, byte: u8, sink: &mut impl Sink) -> Result<bool> {
        self.carry.push(byte);
        match begin_of_line(&self.carry)? {
            Begin::Undecided | Begin::Fold => return Ok(false),
            Begin::LongName => {
                sink.field();
                sink.name(&self.carry);
                self.line = Line::LongName;
            }
            Begin::Field(name) => {
                sink.field();
                sink.name(&self.carry[..name]);
                self.said |= NOT_EMPTY;
                self.line = match self.of_interest(&self.carry[..name]) {
                    Some(field) => Line::Value(field),
                    None => Line::Skip,
                };
            }
            Begin::End(_) => {
                self.carry.clear();
                return Ok(true);
            }
        }
        self.carry.clear();
        Ok(false)
    }

    /// Returns the field that matters with this name, if any. In a trailer section none matters.
    #[inline]
    fn of_interest(&self, name: &[u8]) -> Option<Field> {
        let field = match name.len() {
            6 if is_word(name, b"expect") => Field::Expect,
            10 if is_word(name, b"connection") => Field::Connection,
            14 if is_word(name, b"content-length") => Field::ContentLength,
            LONGEST_NAME if is_word(name, b"transfer-encoding") => Field::TransferEncoding,
            _ => return None,
        };
        (!self.trailer).then_some(field)
    }

    fn apply(&mut self, field: Field, value: &[u8]) {
        match field {
            Field::Connection => {
                for option in value.split(|byte| *byte == b',').map(trim) {
                    if is_word(option, b"close") {
                        self.said |= CLOSE;
                    } else if is_word(option, b"keep-alive") {
                        self.said |= KEEP_ALIVE;
                    }
                }
            }
            Field::ContentLength => {
                for number in value.split(|byte| *byte == b',').map(trim) {
                    self.add_length(decimal(number));
                }
            }
            Field::Expect => {
                if trim(value).eq_ignore_ascii_case(b"100-continue") {
                    self.said |= CONTINUE;
                }
            }
            Field::TransferEncoding => self.apply_codings(value),
        }
    }

    /// Records a Content-Length. The same number may be repeated (RFC 9112 §6.3, item 5).
    fn add_length(&mut self, length: Option<u64>) {
        match length {
            Some(length) if self.said & LENGTH == 0 || length == self.content_length => {
                self.content_length = length;
                self.said |= LENGTH;
            }
            _ => self.said |= LENGTH_BROKEN,
        }
    }

    /// Evaluates a list of codings, which may contain commas inside quoted parameters. Only the last coding counts (RFC
    /// 9112 §6.3, item 4).
    fn apply_codings(&mut self, value: &[u8]) {
        let (mut begin, mut quoted, mut escaped) = (0, false, false);
        for (at, byte) in value.iter().copied().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b',' if !quoted => {
                    self.apply_coding(&value[begin..at]);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        self.apply_coding(&value[begin..]);
    }

    fn apply_coding(&mut self, coding: &[u8]) {
        let coding = trim(coding);
        if coding.is_empty() {
            return;
        }
        self.said |= ENCODED;
        if coding.eq_ignore_ascii_case(b"chunked") {
            self.said |= CHUNKED;
        } else {
            self.said &= !CHUNKED;
        }
    }

    /// Returns true if Transfer-Encoding names at least one coding.
    #[inline]
    pub(crate) fn is_encoded(&self) -> bool {
        self.said & ENCODED != 0
    }

    /// Returns true if the last coding is chunked.
    #[inline]
    pub(crate) fn is_chunked(&self) -> bool {
        self.said & CHUNKED != 0
    }

    /// Returns the value of Content-Length, if present.
    ///
    /// # Errors
    /// Fails if it is not a number, or has several different values.
    #[inline]
    pub(crate) fn content_length(&self) -> Result<Option<u64>> {
        if self.said & LENGTH_BROKEN != 0 {
            return Err(ParseError::ContentLength);
        }
        Ok((self.said & LENGTH != 0).then_some(self.content_length))
    }

    /// Returns true if the request waits for 100 (Continue) before it sends its content (RFC 9110 §10.1.1).
    #[inline]
    pub(crate) fn expects_continue(&self) -> bool {
        self.said & CONTINUE != 0
    }

    /// Returns true if the connection persists (RFC 9112 §9.3) after a message of this minor version.
    #[inline]
    pub(crate) fn keeps_alive(&self, minor: u8) -> bool {
        self.said & CLOSE == 0 && (minor > 0 || self.said & KEEP_ALIVE != 0)
    }
}

/// Classifies the beginning of a line, up to its colon. The result for a longer piece of the same line never
/// contradicts that for a shorter one.
#[inline]
fn begin_of_line(bytes: &[u8]) -> Result<Begin> {
    let Some(end) = bytes.iter().position(|byte| !is_token(*byte)) else {
        return Ok(if bytes.len() > LONGEST_NAME { Begin::LongName } else { Begin::Undecided });
    };
    match (end, bytes[end]) {
        (1.., b':') => Ok(Begin::Field(end)),
        (0, b'\n') => Ok(Begin::End(1)),
        (0, b'\r') => match bytes.get(1) {
            None => Ok(Begin::Undecided),
            Some(b'\n') => Ok(Begin::End(2)),
            Some(_) => Err(ParseError::Control),
        },
        (0, b' ' | b'\t') => Ok(Begin::Fold),
        _ => Err(ParseError::FieldLine),
    }
}
