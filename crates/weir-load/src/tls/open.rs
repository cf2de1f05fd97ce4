//! An open connection: content, and the alerts and messages that peers send besides it.

use std::ops::Range;

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::{ExtractedSecrets, InvalidMessage, PeerMisbehaved};
use weir_model::tls::TlsVersion;

use super::error::{Result, TlsError, TlsErrorKind};
use super::records::{MAX_PLAINTEXT, Records, content};

/// Types of handshake messages (RFC 8446 §4).
const HELLO_REQUEST: u8 = 0;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
/// Length of a handshake message's header: type and length.
const MESSAGE_HEADER: usize = 4;

const WARNING: u8 = 1;
const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
const UNEXPECTED_MESSAGE: u8 = 10;
const BAD_RECORD_MAC: u8 = 20;
const RECORD_OVERFLOW: u8 = 22;
const INTERNAL_ERROR: u8 = 80;
const USER_CANCELED: u8 = 90;
const NO_RENEGOTIATION: u8 = 100;

/// Maximum number of consecutive records without content (empty ones, warnings, key updates) before a peer is
/// considered hostile. rustls has the same limit for each kind.
const MAX_IDLE_RECORDS: u8 = 32;
/// Maximum length of a message assembled from several records: rustls' limit.
const MAX_MESSAGE: usize = 0xffff;

/// Result of handling a record.
pub(super) enum Happened {
    /// Content and its range in the record. Never empty.
    Content(Range<usize>),
    /// The peer will send nothing more.
    Closed,
    /// The record was handled; it concerns the engine in no way.
    Handled,
}

/// An open connection.
pub(super) struct Open {
    records: Records,
    /// Remaining state of rustls: key updates and tickets.
    kernel: KernelConnection<ClientConnectionData>,
    keeps_tickets: bool,
    peer_closed: bool,
    idle_records: u8,
    /// Beginning of a handshake message whose end has not arrived.
    fragment: Vec<u8>,
}

impl Open {
    pub(super) fn new(
        version: TlsVersion,
        secrets: &ExtractedSecrets,
        kernel: KernelConnection<ClientConnectionData>,
        keeps_tickets: bool,
    ) -> Result<Open> {
        Ok(Open {
            records: Records::new(version, secrets)?,
            kernel,
            keeps_tickets,
            peer_closed: false,
            idle_records: 0,
            fragment: Vec::new(),
        })
    }

    #[cfg(test)]
    pub(super) fn records(&mut self) -> &mut Records {
        &mut self.records
    }

    pub(super) fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    pub(super) fn max_body(&self) -> usize {
        self.records.max_body()
    }

    pub(super) fn buffered(&self) -> usize {
        self.fragment.capacity()
    }

    pub(super) fn send(&mut self, plaintext: &[u8], out: &mut Vec<u8>) -> Result<()> {
        for part in plaintext.chunks(MAX_PLAINTEXT) {
            if self.records.sending_is_worn() {
                self.update_sending(out)?;
            }
            self.records.seal(content::APPLICATION_DATA, part, out)?;
        }
        Ok(())
    }

    /// Handles a whole record, decrypted in place. After an error, `out` ends with an alert for the peer, unless the
    /// error is an alert from it.
    pub(super) fn record(&mut self, record: &mut [u8], out: &mut Vec<u8>) -> Result<Happened> {
        self.handle(record, out).inspect_err(|error| {
            let code = match error.kind() {
                TlsErrorKind::AlertReceived => return,
                TlsErrorKind::BadRecord => BAD_RECORD_MAC,
                TlsErrorKind::OversizedRecord => RECORD_OVERFLOW,
                TlsErrorKind::Internal => INTERNAL_ERROR,
                _ => UNEXPECTED_MESSAGE,
            };
            self.alert(FATAL, code, out);
        })
    }

    fn handle(&mut self, record: &mut [u8], out: &mut Vec<u8>) -> Result<Happened> {
        let (kind, range) = self.records.open(record)?;
        if kind != content::HANDSHAKE && !self.fragment.is_empty() {
            // RFC 8446 §5.1: nothing may come between the parts of a message.
            let how = PeerMisbehaved::MessageInterleavedWithHandshakeMessage;
            return Err(TlsError::misbehaved(how));
        }
        match kind {
            content::APPLICATION_DATA if range.is_empty() => {
                self.idle(PeerMisbehaved::TooManyEmptyFragments)?;
                Ok(Happened::Handled)
            }
            content::APPLICATION_DATA => {
                self.idle_records = 0;
                Ok(Happened::Content(range))
            }
            content::ALERT => self.alerted(&record[range]),
            content::HANDSHAKE => {
                self.messages(&record[range], out)?;
                Ok(Happened::Handled)
            }
            _ => Err(unexpected("record of a type that has no place after the handshake")),
        }
    }

    fn idle(&mut self, otherwise: PeerMisbehaved) -> Result<()> {
        self.idle_records += 1;
        if self.idle_records > MAX_IDLE_RECORDS {
            return Err(TlsError::misbehaved(otherwise));
        }
        Ok(())
    }

    /// Handles an alert. RFC 8446 §6: all but two alerts are fatal in TLS 1.3; in TLS 1.2 the level decides.
    fn alerted(&mut self, alert: &[u8]) -> Result<Happened> {
        let &[level, code] = alert else {
            return Err(unexpected("alert that is not two bytes long"));
        };
        if code == CLOSE_NOTIFY {
            self.peer_closed = true;
            return Ok(Happened::Closed);
        }
        let harmless = match self.records.version() {
            TlsVersion::V1_2 => level == WARNING,
            TlsVersion::V1_3 => code == USER_CANCELED,
        };
        if !harmless {
            return Err(TlsError::alert(code));
        }
        self.idle(PeerMisbehaved::TooManyWarningAlertsReceived)?;
        Ok(Happened::Handled)
    }

    fn messages(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if bytes.is_empty() {
            // RFC 8446 §5.1: handshake records are not empty.
            return Err(TlsError::from(rustls::Error::from(InvalidMessage::InvalidEmptyPayload)));
        }
        if self.fragment.is_empty() {
            let used = self.whole_messages(bytes, out)?;
            self.fragment.extend_from_slice(&bytes[used..]);
        } else {
            let mut buffer = std::mem::take(&mut self.fragment);
            buffer.extend_from_slice(bytes);
            let used = self.whole_messages(&buffer, out)?;
            buffer.drain(..used);
            if !buffer.is_empty() {
                self.fragment = buffer;
            }
        }
        if self.fragment.len() > MAX_MESSAGE {
            Err(TlsError::new(TlsErrorKind::HandshakeTooLarge))
        } else {
            Ok(())
        }
    }

    /// Handles all complete messages; returns their length.
    fn whole_messages(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize> {
        let mut at = 0;
        while let Some(&[kind, a, b, c]) = bytes[at..].first_chunk() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > MAX_MESSAGE {
                return Err(TlsError::new(TlsErrorKind::HandshakeTooLarge));
            }
            let start = at + MESSAGE_HEADER;
            let Some(body) = bytes.get(start..start + length) else {
                break;
            };
            at = start + length;
            self.message(kind, body, at == bytes.len(), out)?;
        }
        Ok(at)
    }

    fn message(&mut self, kind: u8, body: &[u8], last: bool, out: &mut Vec<u8>) -> Result<()> {
        match (self.records.version(), kind) {
            (TlsVersion::V1_3, NEW_SESSION_TICKET) if self.keeps_tickets => {
                Ok(self.kernel.handle_new_session_ticket(body)?)
            }
            (TlsVersion::V1_3, NEW_SESSION_TICKET) => Ok(()),
            (TlsVersion::V1_3, KEY_UPDATE) => self.key_update(body, last, out),
            (TlsVersion::V1_2, HELLO_REQUEST) if body.is_empty() => {
                // RFC 5246 §7.2.2: a client that does not renegotiate says so.
                self.idle(PeerMisbehaved::TooManyRenegotiationRequests)?;
                self.alert(WARNING, NO_RENEGOTIATION, out);
                Ok(())
            }
            _ => Err(unexpected("handshake message that has no place after the handshake")),
        }
    }

    /// Handles a KeyUpdate message (RFC 8446 §4.6.3).
    fn key_update(&mut self, body: &[u8], last: bool, out: &mut Vec<u8>) -> Result<()> {
        self.idle(PeerMisbehaved::TooManyKeyUpdateRequests)?;
        let answer = match body {
            [0] => false,
            [1] => true,
            _ => {
                return Err(TlsError::from(rustls::Error::from(InvalidMessage::InvalidKeyUpdate)));
            }
        };
        if !last {
            return Err(TlsError::misbehaved(PeerMisbehaved::KeyEpochWithPendingFragment));
        }
        self.records.renew_receiving(self.kernel.update_rx_secret()?)?;
        if answer {
            self.update_sending(out)?;
        }
        Ok(())
    }

    fn update_sending(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.records.seal(content::HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0], out)?;
        self.records.renew_sending(self.kernel.update_tx_secret()?)
    }

    fn alert(&mut self, level: u8, code: u8, out: &mut Vec<u8>) {
        // The connection ends anyway: an alert that cannot be sealed is not worth a second error.
        let _ = self.records.seal(content::ALERT, &[level, code], out);
    }
}

fn unexpected(what: &'static str) -> TlsError {
    TlsError::from(rustls::Error::from(InvalidMessage::UnexpectedMessage(what)))
}
