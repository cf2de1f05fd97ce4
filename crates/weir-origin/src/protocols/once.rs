//! uwsgi and SCGI: variables in one block, content, one answer, and then the connection ends.

use super::params::Params;
use super::{ForeignRequest, Malformed, Protocol};
use crate::responses::Responses;

/// Encoding of the variables.
#[derive(Debug, Clone, Copy)]
pub(super) enum Block {
    /// Four bytes containing the size of the block, then pairs of name and value, each with two bytes of length,
    /// little-endian.
    Uwsgi,
    /// A netstring of names and values, each terminated by a zero byte.
    Scgi,
}

/// Progress of the only request of a connection.
#[derive(Debug)]
enum Stage {
    /// Its variables are incomplete.
    Params,
    /// Its content is incomplete: this many bytes are still to come.
    Content(ForeignRequest, u64),
    /// The request is complete and waits for its answer.
    Requested,
    Answered,
}

/// State of a uwsgi or SCGI connection.
#[derive(Debug)]
pub(super) struct Once {
    block: Block,
    stage: Stage,
}

impl Once {
    pub(super) fn new(block: Block) -> Once {
        let stage = Stage::Params;
        Once { block, stage }
    }

    /// Reads content. Returns the number of bytes used.
    fn content(&mut self, bytes: &[u8], requests: &mut Vec<ForeignRequest>) -> usize {
        let Stage::Content(request, remaining) = &mut self.stage else {
            // Nothing more is asked for over this connection.
            return bytes.len();
        };
        let used = bytes.len().min(usize::try_from(*remaining).unwrap_or(usize::MAX));
        *remaining -= used as u64;
        if *remaining == 0 {
            requests.push(request.clone());
            self.stage = Stage::Requested;
        }
        used
    }
}

impl Protocol for Once {
    fn feed(
        &mut self,
        bytes: &[u8],
        responses: &Responses,
        requests: &mut Vec<ForeignRequest>,
        _out: &mut Vec<u8>,
    ) -> Result<usize, Malformed> {
        if !matches!(self.stage, Stage::Params) {
            return Ok(self.content(bytes, requests));
        }
        let read = match self.block {
            Block::Uwsgi => uwsgi(bytes)?,
            Block::Scgi => scgi(bytes)?,
        };
        let Some((params, rest)) = read else {
            return Ok(0);
        };
        self.stage = Stage::Content(params.request(0, responses), params.length);
        Ok(bytes.len() - rest.len() + self.content(rest, requests))
    }

    fn answer(&mut self, request: &ForeignRequest, responses: &Responses, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.block {
            // It answers as HTTP does.
            Block::Uwsgi => responses.closing_head(request.content),
            Block::Scgi => responses.cgi_head(request.content),
        });
        if !request.is_head {
            out.extend_from_slice(responses.bytes(request.content));
        }
        self.stage = Stage::Answered;
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Answered)
    }
}

/// Variables, and the bytes after them; `None` if incomplete.
type ParsedParams<'b> = Option<(Params, &'b [u8])>;

fn uwsgi(bytes: &[u8]) -> Result<ParsedParams<'_>, Malformed> {
    let Some((&[_, low, high, _], rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let size = usize::from(u16::from_le_bytes([low, high]));
    let Some((mut block, rest)) = rest.split_at_checked(size) else {
        return Ok(None);
    };
    let mut params = Params::default();
    while !block.is_empty() {
        let name = text(&mut block)?;
        params.take(name, text(&mut block)?);
    }
    Ok(Some((params, rest)))
}

/// Reads two bytes of length and that many bytes.
fn text<'b>(bytes: &mut &'b [u8]) -> Result<&'b [u8], Malformed> {
    let (length, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (text, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
    *bytes = rest;
    Ok(text)
}

/// Maximum number of digits in the length of a netstring.
const DIGITS: usize = 6;

fn scgi(bytes: &[u8]) -> Result<ParsedParams<'_>, Malformed> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let Some((colon, rest)) = bytes[digits..].split_first() else {
        return if digits > DIGITS { Err(Malformed) } else { Ok(None) };
    };
    if *colon != b':' || digits > DIGITS {
        return Err(Malformed);
    }
    let size = std::str::from_utf8(&bytes[..digits]).map_err(|_| Malformed)?;
    let size: usize = size.parse().map_err(|_| Malformed)?;
    let Some((block, rest)) = rest.split_at_checked(size + 1) else {
        return Ok(None);
    };
    let Some((b',', block)) = block.split_last() else {
        return Err(Malformed);
    };
    let mut params = Params::default();
    let mut words = block.split(|byte| *byte == 0);
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        params.take(name, value);
    }
    Ok(Some((params, rest)))
}
