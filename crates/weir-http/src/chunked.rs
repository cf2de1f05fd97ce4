//! The chunked transfer coding (RFC 9112 §7.1), counted and not stored.
//!
//! Sizes are read digit by digit, so nothing needs to be carried over between reads. Extensions are skipped, but they
//! must conform to the grammar (RFC 9112 §7.1.1): text that one reader takes for a part of the size line may be data
//! for another. White space (BWS, RFC 9110 §5.6.3) may surround only `;` and `=`, not precede the end of the line; an
//! extension has a name. Bare LF is accepted as a line end, as everywhere.

use crate::error::{ParseError, Result};
use crate::sink::Sink;
use crate::text::{is_blank, is_token};

/// Maximum length of a chunk's size line, extensions included, in bytes. RFC 9112 §7.1.1 requires some limit.
const LINE_LIMIT: u32 = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first digit of a size.
    Size,
    /// Between the digits of a size, or after them.
    Digits,
    /// In white space after a size or a value, before the `;` of an extension.
    Blank,
    /// After a `;`, before the name of an extension.
    Semicolon,
    /// In the name of an extension.
    Name,
    /// In white space after a name.
    NameBlank,
    /// After a `=`, before the value of an extension.
    Equals,
    /// In a value that is a token.
    Value,
    /// In a value that is a quoted string (RFC 9110 §5.6.4).
    Quoted,
    /// After a backslash in a quoted string.
    Escape,
    /// Directly after a quoted string.
    Unquoted,
    /// Between CR and LF after a size.
    SizeLf,
    /// In the data; [`Chunked::left`] bytes of it are still to come.
    Data,
    /// After the data, before its line end.
    DataCr,
    /// Between CR and LF after the data.
    DataLf,
}

/// State of a parser within chunked content.
#[derive(Debug)]
pub(crate) struct Chunked {
    /// Bytes of this chunk's data still to come; while the size is read, its value so far.
    left: u64,
    /// Length of the size line so far.
    line: u32,
    state: State,
}

/// Result of reading a piece of chunked content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes consumed; all of them unless `last`.
    pub(crate) used: usize,
    /// Number of data bytes among them.
    pub(crate) data: u64,
    /// True if the last chunk's size line is complete: the trailer section follows.
    pub(crate) last: bool,
}

impl Chunked {
    pub(crate) fn new() -> Chunked {
        Chunked { left: 0, line: 0, state: State::Size }
    }

    /// Reads the next piece and passes its data to `sink`.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<Piece> {
        let mut piece = Piece { used: 0, data: 0, last: false };
        while let Some(&byte) = bytes.get(piece.used) {
            match self.state {
                State::Data => {
                    let there = (bytes.len() - piece.used) as u64;
                    let data = there.min(self.left);
                    self.left -= data;
                    piece.data += data;
                    // Fits: at most what is left of a slice.
                    let end = piece.used + data as usize;
                    sink.content(&bytes[piece.used..end]);
                    piece.used = end;
                    if self.left == 0 {
                        self.state = State::DataCr;
                    }
                    continue;
                }
                State::DataCr if byte == b'\r' => self.state = State::DataLf,
                State::DataCr | State::DataLf if byte == b'\n' => *self = Chunked::new(),
                State::DataCr | State::DataLf => return Err(ParseError::Chunk),
                _ => {
                    if self.size_byte(byte)? {
                        piece.used += 1;
                        piece.last = true;
                        return Ok(piece);
                    }
                }
            }
            piece.used += 1;
        }
        Ok(piece)
    }

    /// Reads a byte of a chunk's size line. Returns true if it completes that of the last chunk.
    fn size_byte(&mut self, byte: u8) -> Result<bool> {
        use State::{
            Blank, Digits, Equals, Escape, Name, NameBlank, Quoted, Semicolon, Size, SizeLf,
            Unquoted, Value,
        };
        self.line += 1;
        if self.line > LINE_LIMIT {
            return Err(ParseError::Chunk);
        }
        self.state = match (self.state, byte) {
            (Size | Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).ok_or(ParseError::Chunk)?;
                if self.left >> 60 != 0 {
                    return Err(ParseError::Chunk);
                }
                self.left = self.left << 4 | u64::from(digit);
                Digits
            }
            (Digits | Name | Value | Unquoted, b'\r') => SizeLf,
            (Digits | Name | Value | Unquoted | SizeLf, b'\n') => return Ok(self.begin_data()),
            (Digits | Blank | Name | NameBlank | Value | Unquoted, b';') => Semicolon,
            (Digits | Blank | Value | Unquoted, _) if is_blank(byte) => Blank,
            (Semicolon | Equals, _) if is_blank(byte) => self.state,
            (Semicolon | Name, _) if is_token(byte) => Name,
            (Name | NameBlank, b'=') => Equals,
            (Name | NameBlank, _) if is_blank(byte) => NameBlank,
            (Equals | Value, _) if is_token(byte) => Value,
            (Equals, b'"') => Quoted,
            (Quoted, b'"') => Unquoted,
            (Quoted, b'\\') => Escape,
            (Quoted | Escape, b'\t' | b' '..=b'~' | 0x80..) => Quoted,
            _ => return Err(ParseError::Chunk),
        };
        Ok(false)
    }

    /// Ends the size line. Returns true if this is the last chunk.
    fn begin_data(&mut self) -> bool {
        self.state = State::Data;
        self.left == 0
    }
}
