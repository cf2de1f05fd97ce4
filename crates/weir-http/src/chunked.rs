//! The chunked transfer coding (RFC 9112 §7.1), counted and not kept.
//!
//! Sizes are read digit by digit, so that nothing is ever carried over. Extensions are skipped, whatever
//! they say (RFC 9112 §7.1.1), but for CR without LF and NUL, which are refused as in the head. Bare LF is
//! taken for a line end, as everywhere. White space between size and extension is BWS (RFC 9110 §5.6.3);
//! it is also accepted without an extension, and an extension may be empty.

use memchr::memchr3;

use crate::error::{ParseError, Result};
use crate::sink::Sink;

/// Longest line that may say the size of a chunk, extensions included. RFC 9112 §7.1.1 asks for
/// some limit.
const LINE_LIMIT: u32 = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first digit of a size.
    Size,
    /// Between the digits of a size, or after them.
    Digits,
    /// In the white space after a size.
    Blank,
    /// In an extension.
    Extension,
    /// Between CR and LF after a size.
    SizeLf,
    /// In the data, with so many bytes to come as `left` says.
    Data,
    /// After the data, before its line end.
    DataCr,
    /// Between CR and LF after the data.
    DataLf,
}

/// Where in chunked content the next byte belongs.
#[derive(Debug)]
pub(crate) struct Chunked {
    /// Bytes of this chunk's data to come; while the size is read, its digits so far.
    left: u64,
    /// Length of the size's line so far.
    line: u32,
    state: State,
}

/// What a piece of chunked content came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes used; all of them unless `last`.
    pub(crate) used: usize,
    /// Bytes of data among them.
    pub(crate) data: u64,
    /// The last chunk's line is complete: the trailer section follows.
    pub(crate) last: bool,
}

impl Chunked {
    pub(crate) fn new() -> Chunked {
        Chunked {
            left: 0,
            line: 0,
            state: State::Size,
        }
    }

    /// Reads on; the data goes to `sink`.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<Piece> {
        let mut piece = Piece {
            used: 0,
            data: 0,
            last: false,
        };
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
                State::Extension => {
                    let rest = &bytes[piece.used..];
                    // What ends it is looked at as another byte of the size's line.
                    let used = memchr3(b'\r', b'\n', 0, rest).unwrap_or(rest.len());
                    self.lengthen(used)?;
                    piece.used += used;
                    self.state = match used == rest.len() {
                        true => State::Extension,
                        false => State::Blank,
                    };
                    continue;
                }
                State::Size | State::Digits | State::Blank | State::SizeLf => {
                    self.lengthen(1)?;
                    if self.size_byte(byte)? {
                        piece.used += 1;
                        piece.last = true;
                        return Ok(piece);
                    }
                }
                State::DataCr if byte == b'\r' => self.state = State::DataLf,
                State::DataCr | State::DataLf if byte == b'\n' => *self = Chunked::new(),
                State::DataCr | State::DataLf => return Err(ParseError::Chunk),
            }
            piece.used += 1;
        }
        Ok(piece)
    }

    /// Takes a byte of the line that says a chunk's size; whether it completes the last chunk's.
    fn size_byte(&mut self, byte: u8) -> Result<bool> {
        let sized = self.state != State::Size;
        match (self.state, byte) {
            (State::Size | State::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).ok_or(ParseError::Chunk)?;
                if self.left >> 60 != 0 {
                    return Err(ParseError::Chunk);
                }
                self.left = self.left << 4 | u64::from(digit);
                self.state = State::Digits;
            }
            (State::Digits | State::Blank, b' ' | b'\t') => self.state = State::Blank,
            (State::Digits | State::Blank, b';') => self.state = State::Extension,
            (State::Digits | State::Blank, b'\r') => self.state = State::SizeLf,
            (_, b'\n') if sized => return Ok(self.begin_data()),
            _ => return Err(ParseError::Chunk),
        }
        Ok(false)
    }

    /// The size's line is complete; whether it was the last chunk's.
    fn begin_data(&mut self) -> bool {
        self.state = State::Data;
        self.left == 0
    }

    fn lengthen(&mut self, by: usize) -> Result<()> {
        let length = self.line as usize + by;
        if length > LINE_LIMIT as usize {
            return Err(ParseError::Chunk);
        }
        self.line = length as u32;
        Ok(())
    }
}
