//! HTTP/2 without TLS (RFC 9113), and gRPC over it. Streams are answered in the order in which their answers are due.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use loona_hpack::Decoder;

use super::{ENOUGH, ForeignRequest, Malformed, Protocol};
use crate::responses::Responses;

/// Connection preface of a client (§3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Length of a frame's header (§4.1).
const HEADER: usize = 9;
/// Maximum size of a payload, in both directions (§6.5.2): both sides keep to the smallest limit that is allowed.
const MOST: usize = 16_384;
/// Initial window of a stream and of the connection, until changed (§6.9.2).
const WINDOW: i64 = 65_535;
/// Maximum size of a header block in bytes.
const MOST_HEADERS: usize = 64 * 1024;
/// Size of the dynamic table of header fields (§6.5.2).
const TABLE: usize = 4096;

// Types of frames (§6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

// Flags.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

/// SETTINGS_INITIAL_WINDOW_SIZE (§6.5.2).
const INITIAL_WINDOW: u16 = 4;

/// A received frame.
struct Frame<'b> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'b [u8],
}

impl Frame<'_> {
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// An open stream, from its HEADERS on.
#[derive(Debug)]
struct Stream {
    request: ForeignRequest,
    /// Number of bytes that may be sent on the stream.
    window: i64,
    /// Number of bytes of the answer that were sent.
    sent: usize,
}

/// State of an HTTP/2 connection.
pub(super) struct Http2 {
    /// True if the preface was read.
    has_begun: bool,
    /// True if the client wants no more streams.
    goes_away: bool,
    decoder: Decoder<'static>,
    /// An incomplete header block: its stream, true if the request ends with it, and the bytes so far.
    block: Option<(u32, bool, Vec<u8>)>,
    /// The highest stream id so far.
    last: u32,
    streams: BTreeMap<u32, Stream>,
    /// Streams whose answers are being sent.
    sending: VecDeque<u32>,
    /// Number of bytes that may be sent over the connection.
    window: i64,
    /// Initial window of a new stream.
    initial: i64,
}

impl Default for Http2 {
    fn default() -> Http2 {
        let mut decoder = Decoder::new();
        decoder.set_max_allowed_table_size(TABLE);
        Http2 {
            has_begun: false,
            goes_away: false,
            decoder,
            block: None,
            last: 0,
            streams: BTreeMap::new(),
            sending: VecDeque::new(),
            window: WINDOW,
            initial: WINDOW,
        }
    }
}

impl fmt::Debug for Http2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Http2({:?})", self.streams)
    }
}

impl Protocol for Http2 {
    fn feed(
        &mut self,
        bytes: &[u8],
        responses: &Responses,
        requests: &mut Vec<ForeignRequest>,
        out: &mut Vec<u8>,
    ) -> Result<usize, Malformed> {
        let mut used = 0;
        if !self.has_begun {
            if !PREFACE.starts_with(&bytes[..bytes.len().min(PREFACE.len())]) {
                return Err(Malformed);
            }
            if bytes.len() < PREFACE.len() {
                return Ok(0);
            }
            used = PREFACE.len();
            self.has_begun = true;
            write_frame(out, (SETTINGS, 0, 0), &[]);
        }
        while let Some((header, rest)) = bytes[used..].split_first_chunk::<HEADER>() {
            let [a, b, c, kind, flags, w, x, y, z] = *header;
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > MOST {
                return Err(Malformed);
            }
            let Some(payload) = rest.get(..length) else {
                break;
            };
            used += HEADER + length;
            let frame =
                Frame { kind, flags, stream: u32::from_be_bytes([w & 0x7f, x, y, z]), payload };
            self.frame(&frame, responses, requests, out)?;
        }
        Ok(used)
    }

    fn answer(&mut self, request: &ForeignRequest, responses: &Responses, out: &mut Vec<u8>) {
        // The client may have given it up.
        if !self.streams.contains_key(&request.id) {
            return;
        }
        let has_content = answer_length(request, responses) > 0;
        let ends = if has_content { 0 } else { END_STREAM };
        let head = responses.h2_head(request.content, request.is_call);
        write_frame(out, (HEADERS, END_HEADERS | ends, request.id), &[head]);
        if has_content {
            self.sending.push_back(request.id);
        } else {
            self.streams.remove(&request.id);
        }
        self.go_on(responses, out);
    }

    fn go_on(&mut self, responses: &Responses, out: &mut Vec<u8>) {
        // Each in its turn, a frame at a time.
        let mut blocked = 0;
        while blocked < self.sending.len() && self.window > 0 && out.len() < ENOUGH {
            let Some(id) = self.sending.pop_front() else {
                break;
            };
            match self.send_some(id, responses, out) {
                Sent::All => blocked = 0,
                Sent::Some => {
                    self.sending.push_back(id);
                    blocked = 0;
                }
                Sent::Nothing => {
                    self.sending.push_back(id);
                    blocked += 1;
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.goes_away && self.streams.is_empty()
    }
}

/// Amount of an answer that was sent.
enum Sent {
    All,
    Some,
    Nothing,
}

impl Http2 {
    fn frame(
        &mut self,
        frame: &Frame<'_>,
        responses: &Responses,
        requests: &mut Vec<ForeignRequest>,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        if self.block.is_some() && frame.kind != CONTINUATION {
            return Err(Malformed);
        }
        match frame.kind {
            DATA => self.data(frame, requests, out),
            HEADERS => {
                let mut block = unpadded(frame)?;
                if frame.has(PRIORITY) {
                    block = block.get(5..).ok_or(Malformed)?;
                }
                self.block = Some((frame.stream, frame.has(END_STREAM), block.to_vec()));
                self.headers(frame, responses, requests)?;
            }
            CONTINUATION => {
                let (stream, _, block) = self.block.as_mut().ok_or(Malformed)?;
                block.extend_from_slice(frame.payload);
                if *stream != frame.stream || block.len() > MOST_HEADERS {
                    return Err(Malformed);
                }
                self.headers(frame, responses, requests)?;
            }
            RST_STREAM => {
                self.streams.remove(&frame.stream);
                self.sending.retain(|id| *id != frame.stream);
            }
            SETTINGS if !frame.has(ACK) => {
                self.settings(frame.payload);
                write_frame(out, (SETTINGS, ACK, 0), &[]);
            }
            PING if !frame.has(ACK) => write_frame(out, (PING, ACK, 0), &[frame.payload]),
            GOAWAY => self.goes_away = true,
            WINDOW_UPDATE => self.widen_window(frame)?,
            PUSH_PROMISE => return Err(Malformed),
            // PRIORITY, and what is not known (§5.5).
            _ => {}
        }
        Ok(())
    }

    /// Handles content of a request. It is discarded at once, so the windows are opened again at once.
    fn data(&mut self, frame: &Frame<'_>, requests: &mut Vec<ForeignRequest>, out: &mut Vec<u8>) {
        let length = frame.payload.len() as u32;
        if length > 0 {
            write_frame(out, (WINDOW_UPDATE, 0, 0), &[&length.to_be_bytes()]);
        }
        let stream = self.streams.get(&frame.stream);
        match stream {
            Some(stream) if frame.has(END_STREAM) => requests.push(stream.request.clone()),
            Some(_) if length > 0 => {
                let update = (WINDOW_UPDATE, 0, frame.stream);
                write_frame(out, update, &[&length.to_be_bytes()]);
            }
            _ => {}
        }
    }

    /// Reads a header block once it is complete.
    fn headers(
        &mut self,
        frame: &Frame<'_>,
        responses: &Responses,
        requests: &mut Vec<ForeignRequest>,
    ) -> Result<(), Malformed> {
        if !frame.has(END_HEADERS) {
            return Ok(());
        }
        let (id, ends, block) = self.block.take().ok_or(Malformed)?;
        let mut target = Vec::new();
        let (mut is_head, mut is_call) = (false, false);
        let decoded = self.decoder.decode_with_cb(&block, |name, value| match &*name {
            b":path" => target = value.to_vec(),
            b":method" => is_head = *value == *b"HEAD",
            b"content-type" => is_call = value.starts_with(b"application/grpc"),
            _ => {}
        });
        decoded.map_err(|_| Malformed)?;
        // Of a stream that has begun they are trailers, whatever streams have begun since.
        let is_new = !self.streams.contains_key(&id);
        if id % 2 == 0 || (is_new && id <= self.last) {
            return Err(Malformed);
        }
        if is_new {
            self.last = id;
            let service = SERVICES.iter().find(|(path, _)| path.as_bytes() == target);
            let request = ForeignRequest {
                id,
                content: responses.content_of(&target),
                is_head,
                is_call,
                yes: service.filter(|_| is_call).map(|(_, yes)| *yes),
            };
            let stream = Stream { request, window: self.initial, sent: 0 };
            self.streams.insert(id, stream);
        }
        if ends && let Some(stream) = self.streams.get(&id) {
            requests.push(stream.request.clone());
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8]) {
        for setting in payload.chunks_exact(6) {
            let &[high, low, a, b, c, d] = setting else {
                continue;
            };
            if u16::from_be_bytes([high, low]) == INITIAL_WINDOW {
                let initial = i64::from(u32::from_be_bytes([a, b, c, d]));
                // Windows of streams that have begun change by as much (§6.9.2).
                let change = initial - self.initial;
                self.initial = initial;
                (self.streams.values_mut()).for_each(|stream| stream.window += change);
            }
        }
    }

    fn widen_window(&mut self, frame: &Frame<'_>) -> Result<(), Malformed> {
        let by = frame.payload.first_chunk().ok_or(Malformed)?;
        let by = i64::from(u32::from_be_bytes(*by) & 0x7fff_ffff);
        match frame.stream {
            0 => self.window += by,
            // One that has ended needs no window.
            id => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.window += by;
                }
            }
        }
        Ok(())
    }

    /// Writes one more frame of an answer, as far as the windows allow.
    fn send_some(&mut self, id: u32, responses: &Responses, out: &mut Vec<u8>) -> Sent {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Sent::All;
        };
        let length = answer_length(&stream.request, responses);
        let room = usize::try_from(stream.window.min(self.window)).unwrap_or(0);
        let size = (length - stream.sent).min(room).min(MOST);
        if size == 0 {
            return Sent::Nothing;
        }
        let content = answer_content(&stream.request, responses);
        let [a, b, c, d] = (content.len() as u32).to_be_bytes();
        let message = [0, a, b, c, d];
        let prefix: &[u8] = if stream.request.is_call { &message } else { &[] };
        let first = prefix.get(stream.sent..).unwrap_or_default();
        let first = &first[..first.len().min(size)];
        let start = stream.sent.saturating_sub(prefix.len());
        let body = &content[start..][..size - first.len()];
        stream.sent += size;
        stream.window -= size as i64;
        self.window -= size as i64;
        let is_whole = stream.sent == length;
        let is_call = stream.request.is_call;
        let ends = if is_whole && !is_call { END_STREAM } else { 0 };
        write_frame(out, (DATA, ends, id), &[first, body]);
        if !is_whole {
            return Sent::Some;
        }
        if is_call {
            let trailers = (HEADERS, END_HEADERS | END_STREAM, id);
            write_frame(out, trailers, &[&Responses::h2_trailers()]);
        }
        self.streams.remove(&id);
        Sent::All
    }
}

/// Services that gateways query, by path, with their affirmative messages: the status `OK` of a `CheckResponse`, which
/// is its default, `OK` of a `RateLimitResponse`, and `SERVING` of a `HealthCheckResponse`.
const SERVICES: [(&str, &[u8]); 3] = [
    ("/envoy.service.auth.v3.Authorization/Check", &[]),
    ("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", &[8, 1]),
    ("/grpc.health.v1.Health/Check", &[8, 1]),
];

/// Length of the prefix of a gRPC message: a byte for "not compressed", and the length.
const PREFIX: usize = 5;

/// Returns the number of bytes of an answer's content, including a gRPC prefix.
fn answer_length(request: &ForeignRequest, responses: &Responses) -> usize {
    let prefix = if request.is_call { PREFIX } else { 0 };
    if request.is_head { 0 } else { prefix + answer_content(request, responses).len() }
}

/// Returns the content or message of an answer.
fn answer_content<'r>(request: &ForeignRequest, responses: &'r Responses) -> &'r [u8] {
    request.yes.unwrap_or_else(|| responses.bytes(request.content))
}

/// Returns the payload without padding (§6.1).
fn unpadded<'b>(frame: &Frame<'b>) -> Result<&'b [u8], Malformed> {
    if !frame.has(PADDED) {
        return Ok(frame.payload);
    }
    let (padding, rest) = frame.payload.split_first().ok_or(Malformed)?;
    let length = rest.len().checked_sub(usize::from(*padding));
    Ok(&rest[..length.ok_or(Malformed)?])
}

/// Appends a frame: its type, flags and stream, and the pieces of its payload.
fn write_frame(out: &mut Vec<u8>, (kind, flags, stream): (u8, u8, u32), payload: &[&[u8]]) {
    let length: usize = payload.iter().map(|piece| piece.len()).sum();
    // Fits: no payload has more than 16,384 bytes.
    let [_, a, b, c] = (length as u32).to_be_bytes();
    out.extend([a, b, c, kind, flags]);
    out.extend(stream.to_be_bytes());
    payload.iter().for_each(|piece| out.extend_from_slice(piece));
}
