//! TLS handshake: rustls, driven record by record.

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use weir_model::tls::Resumption;

use super::connector::Connector;
use super::error::{Result, TlsError, TlsErrorKind};
use super::negotiated::{EarlyData, Negotiated};
use super::open::Open;
use super::records::{HEADER, MAX_PLAINTEXT, content};

/// Maximum growth of a record in TLS 1.3: header, content type, tag.
const RECORD_GROWTH: usize = HEADER + 1 + 16;
/// Length of EndOfEarlyData as a record body: a message without content, its type, the tag.
const END_OF_EARLY_DATA: usize = 4 + 1 + 16;

/// A handshake in progress.
pub(super) struct Handshake {
    connection: UnbufferedClientConnection,
    keeps_tickets: bool,
    /// Amount of early data that may still be sent, in bytes; 0 once the server has sent a record.
    early_room: usize,
    early_sent: bool,
    early_accepted: bool,
    heard: bool,
}

/// Result of handing a record to a handshake.
pub(super) struct Step {
    /// Number of bytes at the front of the buffer that have been processed. The others are part of a message that
    /// continues in the next record, and must be passed again before it, unchanged.
    pub(super) used: usize,
    pub(super) complete: bool,
}

impl Handshake {
    /// Begins a handshake: appends the ClientHello.
    pub(super) fn begin(connector: &mut Connector, out: &mut Vec<u8>) -> Result<Handshake> {
        connector.tickets.offer(connector.share.next());
        let (config, name) = (connector.config.clone(), connector.name.clone());
        let mut handshake = Handshake {
            connection: UnbufferedClientConnection::new(config, name)?,
            keeps_tickets: connector.resumption() != Resumption::Off,
            early_room: 0,
            early_sent: false,
            early_accepted: false,
            heard: false,
        };
        handshake.hello(out)?;
        if connector.config.enable_early_data {
            handshake.early_room = connector.tickets.early_limit();
        }
        Ok(handshake)
    }

    fn hello(&mut self, out: &mut Vec<u8>) -> Result<()> {
        loop {
            match self.connection.process_tls_records(&mut []).state? {
                ConnectionState::EncodeTlsData(data) => encode(data, out)?,
                // Not `done` yet: early data can be sent as long as it is not.
                ConnectionState::TransmitTlsData(_) => return Ok(()),
                _ => return Err(TlsError::new(TlsErrorKind::Internal)),
            }
        }
    }

    /// Appends early data if all of it may be sent; returns true if it was.
    pub(super) fn early(&mut self, plaintext: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        if plaintext.is_empty() || plaintext.len() > self.early_room {
            return Ok(false);
        }
        let state = self.connection.process_tls_records(&mut []).state?;
        let ConnectionState::TransmitTlsData(mut transmit) = state else {
            return Ok(false);
        };
        let Some(mut early) = transmit.may_encrypt_early_data() else {
            return Ok(false);
        };
        let start = out.len();
        let records = plaintext.len().div_ceil(MAX_PLAINTEXT);
        out.resize(start + plaintext.len() + records * RECORD_GROWTH, 0);
        let written = early.encrypt(plaintext, &mut out[start..]);
        out.truncate(start + written.as_ref().copied().unwrap_or(0));
        written.map_err(|_| TlsError::new(TlsErrorKind::Internal))?;
        self.early_room -= plaintext.len();
        self.early_sent = true;
        Ok(true)
    }

    /// Returns true if the server has sent a record.
    pub(super) fn heard(&self) -> bool {
        self.heard
    }

    /// Processes one whole record, preceded by the rest of earlier ones; appends the bytes to be sent.
    pub(super) fn record(&mut self, buffer: &mut [u8], out: &mut Vec<u8>) -> Result<Step> {
        self.heard = true;
        self.early_room = 0;
        let stepped = self.drive(buffer, out);
        if stepped.is_err() {
            self.flush(out);
        }
        stepped
    }

    fn drive(&mut self, buffer: &mut [u8], out: &mut Vec<u8>) -> Result<Step> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { discard, state, .. } =
                self.connection.process_tls_records(&mut buffer[used..]);
            let complete = match state? {
                ConnectionState::EncodeTlsData(data) => {
                    let start = out.len();
                    encode(data, out)?;
                    self.early_accepted |= self.early_sent && ends_early_data(&out[start..]);
                    None
                }
                ConnectionState::TransmitTlsData(transmit) => {
                    transmit.done();
                    None
                }
                ConnectionState::WriteTraffic(_) => Some(true),
                ConnectionState::BlockedHandshake => Some(false),
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    return Err(TlsError::new(TlsErrorKind::ClosedInHandshake));
                }
                _ => return Err(TlsError::new(TlsErrorKind::Internal)),
            };
            used += discard;
            if let Some(complete) = complete {
                return Ok(Step { used, complete });
            }
        }
    }

    /// Appends the alert that rustls has for the server after an error. Passes no input: rustls handles pending output
    /// first.
    fn flush(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            match self.connection.process_tls_records(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    if encode(data, out).is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    /// Turns a complete handshake into an open connection.
    pub(super) fn finish(self) -> Result<(Negotiated, Open)> {
        let early = match (self.early_sent, self.early_accepted) {
            (false, _) => EarlyData::None,
            (true, false) => EarlyData::Rejected,
            (true, true) => EarlyData::Accepted,
        };
        let negotiated = Negotiated::of(&self.connection, early)
            .ok_or_else(|| TlsError::new(TlsErrorKind::Internal))?;
        let (secrets, kernel) = self.connection.dangerous_into_kernel_connection()?;
        let open = Open::new(negotiated.version, &secrets, kernel, self.keeps_tickets)?;
        Ok((negotiated, open))
    }
}

/// Returns true if a record is the client's EndOfEarlyData, which it sends if and only if the server accepted early
/// data (RFC 8446 §4.5). The unbuffered interface of rustls does not report this; no other message of this flight, a
/// Finished or a certificate, is that short.
fn ends_early_data(record: &[u8]) -> bool {
    let expected = [content::APPLICATION_DATA, 3, 3, 0, END_OF_EARLY_DATA as u8];
    record.starts_with(&expected)
}

fn encode(mut data: EncodeTlsData<'_, ClientConnectionData>, out: &mut Vec<u8>) -> Result<()> {
    let Err(EncodeError::InsufficientSize(needed)) = data.encode(&mut []) else {
        return Err(TlsError::new(TlsErrorKind::Internal));
    };
    let start = out.len();
    out.resize(start + needed.required_size, 0);
    data.encode(&mut out[start..]).map_err(|_| TlsError::new(TlsErrorKind::Internal))?;
    Ok(())
}
