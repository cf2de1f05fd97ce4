//! TLS of a connection: its handshake, then its records.

use std::ops::Range;

use super::connector::Connector;
use super::error::{Result, TlsError, TlsErrorKind};
use super::handshake::Handshake;
use super::negotiated::Negotiated;
use super::open::{Happened, Open};
use super::records::{HEADER, MAX_BODY, content};

/// Maximum size of handshake messages kept until their next record, with their records' overhead. rustls allows a
/// message 64 KiB; real certificate chains have some KiB.
const MAX_KEPT: usize = 128 * 1024;

/// Bytes received from the network, consumed by [`Session::next`] and decrypted in place.
#[derive(Debug)]
pub struct Input<'b> {
    bytes: &'b mut [u8],
    at: usize,
}

impl<'b> Input<'b> {
    /// Creates an input from `bytes`, none consumed.
    pub fn new(bytes: &'b mut [u8]) -> Input<'b> {
        Input { bytes, at: 0 }
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Consumes up to `count` bytes and returns them.
    fn take(&mut self, count: usize) -> &[u8] {
        let start = self.at;
        self.at += count.min(self.left());
        &self.bytes[start..self.at]
    }
}

/// Result of [`Session::next`].
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// The input is used up. An incomplete record at its end has been kept.
    Nothing,
    /// The handshake is complete: see [`Session::negotiated`]. The client may send.
    Established,
    /// Content, in order. Never empty.
    Plaintext(&'a [u8]),
    /// The peer will send nothing more (close_notify).
    Closed,
}

/// A connection's TLS, without IO.
///
/// ```
/// # use weir_load::tls::{Connector, Input, Received, Session, TlsError};
/// fn arrived(session: &mut Session, bytes: &mut [u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
///     let mut input = Input::new(bytes);
///     loop {
///         match session.next(&mut input, out)? {
///             Received::Nothing => return Ok(()),
///             Received::Established => session.send(b"GET / HTTP/1.1\r\n\r\n", out)?,
///             Received::Plaintext(_content) => { /* parse it; dropping the session is fine */ }
///             Received::Closed => { /* no more will come */ }
///         }
///         // `out` may be sent here or after the loop; it must be even after an error.
///     }
/// }
/// ```
///
/// An open session without an incomplete record has no buffer. Every error is final: afterwards the
/// session swallows its input.
pub struct Session {
    state: State,
    negotiated: Option<Negotiated>,
    /// Beginning of a record whose end has not arrived. During the handshake, preceded by `kept` bytes of records that
    /// rustls still needs.
    rest: Vec<u8>,
    kept: usize,
    /// True if `rest` has been returned and is to be freed.
    spent: bool,
}

enum State {
    Handshake(Box<Handshake>),
    Open(Box<Open>),
    Failed,
}

/// Location of a whole record.
#[derive(Clone, Copy)]
enum Buffer {
    Input,
    Rest,
}

/// [`Received`] without borrowing.
enum Event {
    Nothing,
    Established,
    Plaintext(Buffer, Range<usize>),
    Closed,
}

impl Session {
    /// Begins a connection: appends the ClientHello to `out`. The connector decides whether it resumes an earlier
    /// session.
    ///
    /// # Errors
    /// Only internal ones: no random numbers, no clock.
    pub fn begin(connector: &mut Connector, out: &mut Vec<u8>) -> Result<Session> {
        let handshake = Box::new(Handshake::begin(connector, out)?);
        Ok(Session {
            state: State::Handshake(handshake),
            negotiated: None,
            rest: Vec::new(),
            kept: 0,
            spent: false,
        })
    }

    /// Appends early data (RFC 8446 §2.3): all of `plaintext`, or nothing if this connection may not send that much.
    /// Returns true if it was appended. Possible between [`Session::begin`] and the first byte received. Once
    /// established, [`Negotiated::early_data`] shows whether the server accepted it; if not, the caller must send it
    /// again by [`Session::send`].
    ///
    /// # Errors
    /// Only internal ones.
    pub fn early(&mut self, plaintext: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        match &mut self.state {
            State::Handshake(handshake) => handshake.early(plaintext, out),
            State::Open(_) | State::Failed => Ok(false),
        }
    }

    /// Consumes input up to the next result, and appends to `out` the bytes that must be sent. To be called until it
    /// returns [`Received::Nothing`].
    ///
    /// # Errors
    /// The handshake failed, the peer broke the protocol, or it sent an alert. `out` may then hold an alert for the
    /// peer.
    #[allow(
        clippy::should_implement_trait,
        reason = "it lends, which Iterator cannot, and takes the bytes"
    )]
    pub fn next<'a>(
        &'a mut self,
        input: &'a mut Input<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Received<'a>> {
        let event = self.find(input, out).inspect_err(|_| self.fail())?;
        Ok(match event {
            Event::Nothing => Received::Nothing,
            Event::Established => Received::Established,
            Event::Closed => Received::Closed,
            Event::Plaintext(Buffer::Input, range) => Received::Plaintext(&input.bytes[range]),
            Event::Plaintext(Buffer::Rest, range) => Received::Plaintext(&self.rest[range]),
        })
    }

    /// Encrypts `plaintext` into as many records as it needs and appends them.
    ///
    /// # Errors
    /// [`TlsErrorKind::NotOpen`] before the handshake is complete and after an error.
    pub fn send(&mut self, plaintext: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match &mut self.state {
            State::Open(open) => open.send(plaintext, out),
            State::Handshake(_) | State::Failed => Err(TlsError::new(TlsErrorKind::NotOpen)),
        }
    }

    /// Returns the negotiated parameters; `None` until the handshake is complete.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_ref()
    }

    /// Returns true if content can be sent.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Returns true if the peer has announced that it will send nothing more (close_notify, RFC 8446 §6.1).
    pub fn has_closed(&self) -> bool {
        matches!(&self.state, State::Open(open) if open.peer_closed())
    }

    /// Returns the error, if any, when the peer has closed TCP. A close between records without close_notify is common
    /// in HTTP and not an error here: the message's own length shows whether it is complete. For a message without a
    /// length, use [`Session::has_closed`].
    pub fn ended(&self) -> Option<TlsError> {
        match &self.state {
            State::Handshake(_) => Some(TlsError::new(TlsErrorKind::ClosedInHandshake)),
            State::Open(open) if !open.peer_closed() && !self.rest.is_empty() && !self.spent => {
                Some(TlsError::new(TlsErrorKind::Truncated))
            }
            State::Open(_) | State::Failed => None,
        }
    }

    /// Returns the memory held for incomplete records and messages, bytes.
    pub fn buffered(&self) -> usize {
        let fragment = match &self.state {
            State::Open(open) => open.buffered(),
            State::Handshake(_) | State::Failed => 0,
        };
        self.rest.capacity() + fragment
    }

    #[cfg(test)]
    pub(super) fn records(&mut self) -> Option<&mut super::records::Records> {
        match &mut self.state {
            State::Open(open) => Some(open.records()),
            State::Handshake(_) | State::Failed => None,
        }
    }

    fn fail(&mut self) {
        self.state = State::Failed;
        self.rest = Vec::new();
    }

    fn find(&mut self, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<Event> {
        loop {
            if self.spent {
                self.rest = Vec::new();
                self.spent = false;
            }
            if self.is_deaf() {
                input.at = input.bytes.len();
                return Ok(Event::Nothing);
            }
            let Some((place, range)) = self.gather(input)? else {
                return Ok(Event::Nothing);
            };
            let record = match place {
                Buffer::Input => &mut input.bytes[range.clone()],
                Buffer::Rest => &mut self.rest[..],
            };
            let State::Open(open) = &mut self.state else {
                if self.shake(place, input, range, out)? {
                    return Ok(Event::Established);
                }
                continue;
            };
            self.spent = matches!(place, Buffer::Rest);
            match open.record(record, out)? {
                Happened::Content(within) => {
                    let at = range.start;
                    return Ok(Event::Plaintext(place, at + within.start..at + within.end));
                }
                Happened::Closed => return Ok(Event::Closed),
                Happened::Handled => {}
            }
        }
    }

    /// Returns true if all further input is ignored.
    fn is_deaf(&self) -> bool {
        match &self.state {
            State::Handshake(_) => false,
            State::Open(open) => open.peer_closed(),
            State::Failed => true,
        }
    }

    /// Finds the next whole record: in the input if all of it is there, otherwise in `rest`, which collects the parts.
    fn gather(&mut self, input: &mut Input<'_>) -> Result<Option<(Buffer, Range<usize>)>> {
        if self.rest.is_empty() {
            let start = input.at;
            let coming = &input.bytes[start..];
            if let Some(header) = coming.first_chunk() {
                let length = HEADER + self.body_length(header)?;
                if length <= coming.len() {
                    input.at += length;
                    return Ok(Some((Buffer::Input, start..start + length)));
                }
            }
        }
        self.fill(input, HEADER);
        let Some(header) = self.rest[self.kept..].first_chunk() else {
            return Ok(None);
        };
        let length = HEADER + self.body_length(header)?;
        self.fill(input, length);
        let is_whole = self.rest.len() - self.kept == length;
        Ok(is_whole.then_some((Buffer::Rest, 0..self.rest.len())))
    }

    /// Moves input to `rest` until its record has `length` bytes.
    fn fill(&mut self, input: &mut Input<'_>, length: usize) {
        let missing = (self.kept + length).saturating_sub(self.rest.len());
        if input.left() > 0 {
            self.rest.reserve_exact(missing);
            self.rest.extend_from_slice(input.take(missing));
        }
    }

    /// Reads and checks a record's header before any of it is kept; returns the length of the body.
    fn body_length(&self, header: &[u8; HEADER]) -> Result<usize> {
        let [kind, major, _, high, low] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (heard, limit) = match &self.state {
            State::Handshake(handshake) => (handshake.heard(), MAX_BODY),
            State::Open(open) => (true, open.max_body()),
            State::Failed => (true, 0),
        };
        if !(content::CHANGE_CIPHER_SPEC..=content::APPLICATION_DATA).contains(&kind) || major != 3
        {
            let kind = if heard { TlsErrorKind::Misbehaved } else { TlsErrorKind::NotTls };
            return Err(TlsError::new(kind));
        }
        if length > limit {
            return Err(TlsError::new(TlsErrorKind::OversizedRecord));
        }
        Ok(length)
    }

    /// Passes a record to the handshake; returns true if that completed it.
    fn shake(
        &mut self,
        place: Buffer,
        input: &mut Input<'_>,
        range: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let State::Handshake(handshake) = &mut self.state else {
            return Ok(false);
        };
        let buffer = match place {
            Buffer::Input => &mut input.bytes[range],
            Buffer::Rest => &mut self.rest[..],
        };
        let step = handshake.record(buffer, out)?;
        match place {
            Buffer::Input if step.used < buffer.len() => self.rest = buffer[step.used..].to_vec(),
            Buffer::Input => {}
            Buffer::Rest if step.used < buffer.len() => drop(self.rest.drain(..step.used)),
            Buffer::Rest => self.rest = Vec::new(),
        }
        self.kept = self.rest.len();
        if self.kept > MAX_KEPT {
            return Err(TlsError::new(TlsErrorKind::HandshakeTooLarge));
        }
        if step.complete {
            self.open()?;
        }
        Ok(step.complete)
    }

    /// Switches from the handshake to the open connection.
    fn open(&mut self) -> Result<()> {
        if self.kept > 0 {
            // A message that spans a change of keys (RFC 8446 §5.1).
            let how = rustls::PeerMisbehaved::KeyEpochWithPendingFragment;
            return Err(TlsError::misbehaved(how));
        }
        let state = std::mem::replace(&mut self.state, State::Failed);
        let State::Handshake(handshake) = state else {
            return Err(TlsError::new(TlsErrorKind::Internal));
        };
        let (negotiated, open) = handshake.finish()?;
        self.state = State::Open(Box::new(open));
        self.negotiated = Some(negotiated);
        Ok(())
    }
}
