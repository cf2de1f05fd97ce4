//! Connections over TLS: handshakes, and records to and from plaintext.

use serde::{Deserialize, Serialize};
use weir_model::load::ErrorKind;
use weir_model::load_report::{NameCount, TlsReport};
use weir_model::tls::TlsVersion;

use super::responses::Fault;
use super::{Engine, State, Unsent};
use crate::ledger::Cause;
use crate::reactor::{ConnId, Reactor};
use crate::tls::{Cipher, EarlyData, Group, Input, Negotiated, Received, Session, TlsError};

/// Cause reported for content without a length that ended with TCP alone: it is not counted as an answer.
const CUT_OFF: &str =
    "closed without close_notify after content without a length: it may be cut off";

/// Handshakes of a flow, counted by negotiated parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsCounts {
    /// Number of completed handshakes.
    pub handshakes: u64,
    /// Number of handshakes that were resumptions.
    pub resumed: u64,
    /// Number of connections whose early data was accepted.
    pub early_data: u64,
    /// Handshakes by version: 1.2, 1.3.
    pub versions: [u64; 2],
    /// Handshakes by cipher, see [`Cipher::index`].
    pub ciphers: [u64; Cipher::COUNT],
    /// Full handshakes by key exchange group, see [`Group::index`].
    pub groups: [u64; Group::COUNT],
}

impl TlsCounts {
    fn count(&mut self, agreed: &Negotiated) {
        self.handshakes += 1;
        self.resumed += u64::from(agreed.resumed);
        self.early_data += u64::from(agreed.early_data == EarlyData::Accepted);
        self.versions[usize::from(agreed.version == TlsVersion::V1_3)] += 1;
        self.ciphers[agreed.cipher.index()] += 1;
        if !agreed.resumed {
            self.groups[agreed.group.index()] += 1;
        }
    }

    /// Adds the counts of another thread or flow.
    pub fn add(&mut self, other: &TlsCounts) {
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        self.early_data += other.early_data;
        self.versions
            .iter_mut()
            .zip(&other.versions)
            .chain(self.ciphers.iter_mut().zip(&other.ciphers))
            .chain(self.groups.iter_mut().zip(&other.groups))
            .for_each(|(own, others)| *own += others);
    }
}

impl From<&TlsCounts> for TlsReport {
    fn from(counts: &TlsCounts) -> TlsReport {
        let versions = [TlsVersion::V1_2, TlsVersion::V1_3].map(TlsVersion::name);
        TlsReport {
            handshakes: counts.handshakes,
            resumed: counts.resumed,
            early_data: counts.early_data,
            versions: name_counts(&counts.versions, &|at| format!("TLS {}", versions[at])),
            ciphers: name_counts(&counts.ciphers, &|index| Cipher::name_of(index).to_owned()),
            groups: name_counts(&counts.groups, &|index| Group::name_of(index).to_owned()),
        }
    }
}

fn name_counts(counts: &[u64], name: &dyn Fn(usize) -> String) -> Vec<NameCount> {
    let counted = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    counted.map(|(index, &count)| NameCount { name: name(index), count }).collect()
}

impl<R: Reactor> Engine<'_, R> {
    /// Returns true if the connection's flow uses TLS.
    #[inline]
    pub(super) fn is_secure(&self, id: ConnId) -> bool {
        let flow = usize::from(self.conns[id as usize].flow);
        self.flows[flow].connector.is_some()
    }

    /// Starts the TLS handshake on an open TCP connection, with the request if early data may carry it.
    pub(super) fn secure(&mut self, id: ConnId, stamp: u64) {
        let conn = &mut self.conns[id as usize];
        let flow = usize::from(conn.flow);
        conn.state = State::Securing;
        conn.opened = stamp;
        let waiting = conn.outstanding > 0;
        let Some(connector) = &mut self.flows[flow].connector else {
            return;
        };
        self.sealed.clear();
        let mut session = match Session::begin(connector, &mut self.sealed) {
            Ok(session) => session,
            Err(error) => return self.not_secured(id, Cause::Tls(Box::new(error)), stamp),
        };
        if waiting && self.offers_early_data(flow) {
            self.render(id);
            let early = session.early(&self.scratch, &mut self.sealed);
            self.scratch.clear();
            if let Err(error) = early {
                return self.not_secured(id, Cause::Tls(Box::new(error)), stamp);
            }
        }
        self.sessions[id as usize] = Some(Box::new(session));
        self.send_sealed(id);
    }

    fn offers_early_data(&self, flow: usize) -> bool {
        let tls = self.plan.flows[flow].tls.as_ref();
        tls.is_some_and(|tls| tls.offers_early_data())
    }

    /// Renders a connection's oldest request into the scratch buffer.
    fn render(&mut self, id: ConnId) {
        let entry = self.request_of(self.awaited(id));
        let flow = usize::from(self.conns[id as usize].flow);
        let request = self.plan.flows[flow].requests.get(entry.request);
        self.scratch.clear();
        let random = &mut self.flows[flow].random;
        let template = &request.template;
        template.render(entry.number, random, &mut self.scratch);
    }

    /// Encrypts the requests gathered for a connection and sends them.
    pub(super) fn send_secure(&mut self, id: ConnId) {
        let Some(session) = &mut self.sessions[id as usize] else {
            return;
        };
        self.sealed.clear();
        match session.send(&self.scratch, &mut self.sealed) {
            Ok(()) => self.send_sealed(id),
            Err(error) => self.fail(id, ErrorKind::Tls, Cause::Tls(Box::new(error))),
        }
    }

    /// Sends the sealed records; bytes that the reactor does not accept now stay at the connection.
    fn send_sealed(&mut self, id: ConnId) {
        if self.sealed.is_empty() {
            return;
        }
        let conn = &mut self.conns[id as usize];
        if let Unsent::Bytes(rest) = &mut conn.unsent {
            rest.bytes.extend_from_slice(&self.sealed);
            self.sealed.clear();
            return;
        }
        let sent = self.reactor.send(id, &self.sealed);
        if let Ok(sent) = sent
            && sent < self.sealed.len()
        {
            conn.unsent = Unsent::rest(&self.sealed[sent..]);
        }
        self.sealed.clear();
        if let Err(errno) = sent {
            self.broken(id, ErrorKind::Send, Cause::Kernel(errno));
        }
    }

    /// Handles bytes received on a TLS connection.
    pub(super) fn on_sealed(&mut self, id: ConnId, stamp: u64) {
        self.sealed.clear();
        let opened = self.unseal(id, stamp);
        if opened.established {
            self.on_secured(id, stamp);
        }
        // After an error this is an alert for the peer.
        self.send_sealed(id);
        if self.conns[id as usize].state == State::Closed {
            return;
        }
        if let Some(error) = opened.error {
            let cause = Cause::Tls(Box::new(error));
            self.settle_ended(id, stamp);
            return self.broken(id, ErrorKind::Tls, cause);
        }
        let any = !self.ended.is_empty() || opened.fault.is_some();
        if any || self.conns[id as usize].outstanding > 0 {
            self.settle(id, stamp, opened.fault);
        }
        if opened.closed && self.conns[id as usize].state == State::Open {
            self.on_ended(id, stamp);
        }
    }

    /// Decrypts all received records and reads the responses in them.
    fn unseal(&mut self, id: ConnId, stamp: u64) -> Opened {
        let mut opened = Opened::default();
        let Some(mut session) = self.sessions[id as usize].take() else {
            return opened;
        };
        let mut sealed = std::mem::take(&mut self.sealed);
        let (mut reader, reactor) = self.reader(id, stamp);
        let mut input = Input::new(reactor.received());
        while opened.fault.is_none() {
            match session.next(&mut input, &mut sealed) {
                Ok(Received::Nothing) => break,
                Ok(Received::Established) => opened.established = true,
                Ok(Received::Plaintext(content)) => opened.fault = reader.read(content),
                Ok(Received::Closed) => opened.closed = true,
                Err(error) => {
                    opened.error = Some(error);
                    break;
                }
            }
        }
        self.sealed = sealed;
        self.sessions[id as usize] = Some(session);
        opened
    }

    /// Completes the handshake: counts it and marks the connection as open.
    fn on_secured(&mut self, id: ConnId, stamp: u64) {
        let session = self.sessions[id as usize].as_ref();
        let agreed = session.and_then(|session| session.negotiated().copied());
        let conn = &mut self.conns[id as usize];
        let flow = usize::from(conn.flow);
        let took = stamp.saturating_sub(conn.opened);
        let totals = &mut self.totals.flows[flow];
        totals.tls_time.saturating_record(took);
        let mut sent = false;
        if let Some(agreed) = agreed {
            totals.tls.count(&agreed);
            sent = agreed.early_data == EarlyData::Accepted;
        }
        // What the handshake itself has to send goes before the first request.
        self.send_sealed(id);
        if self.conns[id as usize].state == State::Securing {
            self.on_open(id, stamp, sent);
        }
    }

    /// Handles a close of TCP by the peer, perhaps in the middle of a handshake or a record. Anybody on the path can
    /// close in the peer's name: content that nothing else ends is complete only after close_notify (RFC 9112 §9.8).
    pub(super) fn on_ended_secure(&mut self, id: ConnId, stamp: u64) {
        let session = self.sessions[id as usize].as_ref();
        let has_closed = session.is_some_and(|session| session.has_closed());
        let conn = &self.conns[id as usize];
        let is_open = conn.outstanding > 0 && conn.parser.lasts_to_close();
        match session.and_then(|session| session.ended()) {
            Some(error) => self.broken(id, ErrorKind::Tls, Cause::Tls(Box::new(error))),
            None if is_open && !has_closed => {
                self.fail(id, ErrorKind::ClosedEarly, Cause::Own(CUT_OFF));
            }
            None => self.on_ended(id, stamp),
        }
    }

    /// Handles a connection that broke during its handshake or later.
    pub(super) fn broken(&mut self, id: ConnId, kind: ErrorKind, cause: Cause) {
        let now = self.reactor.now();
        let conn = &self.conns[id as usize];
        match (conn.state, conn.outstanding) {
            (State::Closed, _) => {}
            (State::Securing, _) => self.not_secured(id, cause, now),
            // A peer may reset a connection that it no longer wants.
            (_, 0) if kind != ErrorKind::Tls => self.lost(id, now),
            _ => self.fail(id, kind, cause),
        }
    }

    /// Fails a connection whose handshake has failed, and the request that it was opened for.
    fn not_secured(&mut self, id: ConnId, cause: Cause, now: u64) {
        self.close(id);
        self.not_opened(id, ErrorKind::Tls, cause, now);
    }
}

/// Result of decrypting a batch of records.
#[derive(Default)]
struct Opened {
    established: bool,
    closed: bool,
    fault: Option<Fault>,
    error: Option<TlsError>,
}
