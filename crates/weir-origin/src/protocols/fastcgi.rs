//! FastCGI (specification 1.0): records of at most 65,535 bytes, several requests at a time.

use super::params::Params;
use super::{ForeignRequest, Malformed, Protocol};
use crate::responses::Responses;

/// Length of a record's header (§3.3): version, type, request, length of content and padding, one reserved.
const HEADER: usize = 8;
/// Maximum content length of a sent record: a multiple of eight needs no padding.
const PIECE: usize = 65_528;
/// Maximum size of a request's variables in bytes.
const MOST_PARAMS: usize = 256 * 1024;

const BEGIN_REQUEST: u8 = 1;
const ABORT_REQUEST: u8 = 2;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const GET_VALUES: u8 = 9;
const GET_VALUES_RESULT: u8 = 10;
const UNKNOWN_TYPE: u8 = 11;

/// Flag of [`BEGIN_REQUEST`]: the connection is kept.
const KEEP_CONN: u8 = 1;

/// An incomplete request.
#[derive(Debug)]
struct Begun {
    id: u16,
    params: Vec<u8>,
}

/// State of a FastCGI connection.
#[derive(Debug, Default)]
pub(super) struct FastCgi {
    begun: Vec<Begun>,
    /// True if the gateway does not keep the connection.
    closes: bool,
}

impl Protocol for FastCgi {
    fn feed(
        &mut self,
        bytes: &[u8],
        responses: &Responses,
        requests: &mut Vec<ForeignRequest>,
        out: &mut Vec<u8>,
    ) -> Result<usize, Malformed> {
        let mut used = 0;
        while let Some((header, rest)) = bytes[used..].split_at_checked(HEADER) {
            let &[version, kind, id_high, id_low, high, low, padding, _] = header else {
                return Err(Malformed);
            };
            if version != 1 {
                return Err(Malformed);
            }
            let length = usize::from(u16::from_be_bytes([high, low]));
            let padded_length = length + usize::from(padding);
            let Some(content) = rest.get(..padded_length).map(|record| &record[..length]) else {
                break;
            };
            used += HEADER + padded_length;
            let id = u16::from_be_bytes([id_high, id_low]);
            if id == 0 {
                manage(kind, content, out);
            } else if let Some(params) = self.record(kind, id, content)? {
                requests.push(params.request(u32::from(id), responses));
            }
        }
        Ok(used)
    }

    fn answer(&mut self, request: &ForeignRequest, responses: &Responses, out: &mut Vec<u8>) {
        // It was a request's number.
        let id = request.id as u16;
        let content = if request.is_head { &[] } else { responses.bytes(request.content) };
        let head = responses.cgi_head(request.content);
        let (first, rest) = content.split_at(content.len().min(PIECE - head.len().min(PIECE)));
        record(out, STDOUT, id, &[head, first]);
        rest.chunks(PIECE).for_each(|piece| record(out, STDOUT, id, &[piece]));
        record(out, STDOUT, id, &[]);
        // Application and protocol status are 0: done.
        record(out, END_REQUEST, id, &[&[0; 8]]);
    }

    fn is_over(&self) -> bool {
        self.closes && self.begun.is_empty()
    }
}

impl FastCgi {
    /// Handles a record of a request. Returns the request's variables if it is complete.
    fn record(&mut self, kind: u8, id: u16, content: &[u8]) -> Result<Option<Params>, Malformed> {
        let index = self.begun.iter().position(|begun| begun.id == id);
        match (kind, index) {
            (BEGIN_REQUEST, None) => {
                let flags = content.get(2).ok_or(Malformed)?;
                self.closes = flags & KEEP_CONN == 0;
                self.begun.push(Begun { id, params: Vec::new() });
            }
            (PARAMS, Some(index)) => {
                let params = &mut self.begun[index].params;
                params.extend_from_slice(content);
                if params.len() > MOST_PARAMS {
                    return Err(Malformed);
                }
            }
            (STDIN, Some(index)) if content.is_empty() => {
                let begun = self.begun.swap_remove(index);
                return pairs(&begun.params).map(Some);
            }
            (ABORT_REQUEST, Some(index)) => drop(self.begun.swap_remove(index)),
            (BEGIN_REQUEST, Some(_)) => return Err(Malformed),
            // Content of the request, or what follows an abort.
            _ => {}
        }
        Ok(None)
    }
}

/// Answers a record about the connection itself.
fn manage(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    if kind != GET_VALUES {
        return record(out, UNKNOWN_TYPE, 0, &[&[kind, 0, 0, 0, 0, 0, 0, 0]]);
    }
    let name = b"FCGI_MPXS_CONNS";
    let is_asked = content.windows(name.len()).any(|window| window == name);
    // Several requests at a time over a connection: yes.
    let pair = [&[name.len() as u8, 1], &name[..], b"1"].concat();
    record(out, GET_VALUES_RESULT, 0, &[if is_asked { &pair } else { &[] }]);
}

/// Appends a record. Its pieces have [`PIECE`] bytes in total at most.
fn record(out: &mut Vec<u8>, kind: u8, id: u16, pieces: &[&[u8]]) {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let padding = length.next_multiple_of(8) - length;
    let [id_high, id_low] = id.to_be_bytes();
    // Fits, see above.
    let [high, low] = (length as u16).to_be_bytes();
    out.extend([1, kind, id_high, id_low, high, low, padding as u8, 0]);
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    out.resize(out.len() + padding, 0);
}

/// Reads name-value pairs (§3.4).
fn pairs(mut bytes: &[u8]) -> Result<Params, Malformed> {
    let mut params = Params::default();
    while !bytes.is_empty() {
        let name = length(&mut bytes)?;
        let value = length(&mut bytes)?;
        let (name, rest) = bytes.split_at_checked(name).ok_or(Malformed)?;
        let (value, rest) = rest.split_at_checked(value).ok_or(Malformed)?;
        params.take(name, value);
        bytes = rest;
    }
    Ok(params)
}

/// Reads a length of one byte, or of four if the first bit is set.
fn length(bytes: &mut &[u8]) -> Result<usize, Malformed> {
    let (length, rest) = match **bytes {
        [short @ 0..=127, ref rest @ ..] => (u32::from(short), rest),
        [a, b, c, d, ref rest @ ..] => (u32::from_be_bytes([a & 0x7f, b, c, d]), rest),
        _ => return Err(Malformed),
    };
    *bytes = rest;
    Ok(length as usize)
}
