//! Responses: reading, recording, and the next state of their connection.

use weir_http::ParseError;
use weir_http::response::{Fed, Progress as Parsing, ResponseEnd};
use weir_model::load::{ErrorKind, Lifetime};

use super::streams::{StreamKey, ahead_of};
use super::{Conn, Ended, Engine, InFlight, Progress};
use crate::expect::{Check, Expectation, Unexpected};
use crate::ledger::{Cause, LONGEST_NS};
use crate::reactor::{ConnId, Reactor};
use crate::request_set::{Request, RequestSet};

/// Size from which content is dropped in the kernel, bytes. For less, the additional system call costs more than the
/// copy.
const DISCARD_FROM: u64 = 64 * 1024;

/// Error in a batch of received bytes.
pub(super) enum Fault {
    /// The bytes are not a valid response.
    Parser(ParseError),
    /// More bytes than the responses to the outstanding requests.
    Surplus,
}

/// Reads the responses of one connection.
pub(super) struct Reader<'e> {
    pub(super) conn: &'e mut Conn,
    /// Requests in flight on the connection, by stream.
    pub(super) in_flight: &'e [InFlight],
    pub(super) requests: &'e RequestSet,
    /// State of the response check; `None` if no response is checked.
    pub(super) check: Option<&'e mut Check>,
    /// Completed responses, in order.
    pub(super) ended: &'e mut Vec<Ended>,
    pub(super) stamp: u64,
}

impl<'e> Reader<'e> {
    /// Returns the request that belongs to the next response to be complete.
    #[inline]
    fn asked(&self) -> &'e Request {
        let entry = &self.in_flight[usize::from(self.next_stream())];
        self.requests.get(entry.request)
    }

    /// Returns the stream of the next response to be complete.
    #[inline]
    fn next_stream(&self) -> u16 {
        // No more responses end than requests are outstanding, and these fit into the pipeline.
        let depth = self.in_flight.len() as u16;
        ahead_of(self.conn.oldest, self.ended.len() as u16, depth)
    }

    /// Parses received bytes; returns the first fault, if any.
    #[inline]
    pub(super) fn read(&mut self, bytes: &[u8]) -> Option<Fault> {
        let mut at = 0;
        while at < bytes.len() {
            if self.ended.len() == usize::from(self.conn.outstanding) {
                return Some(Fault::Surplus);
            }
            if self.conn.first_byte == 0 {
                self.conn.first_byte = self.stamp;
            }
            let fed = match self.feed(&bytes[at..]) {
                Ok(fed) => fed,
                Err(error) => return Some(Fault::Parser(error)),
            };
            at += fed.consumed;
            if let Parsing::Complete(end) = fed.event {
                self.complete(end);
            }
        }
        None
    }

    #[inline]
    fn feed(&mut self, bytes: &[u8]) -> Result<Fed, ParseError> {
        match (&self.asked().expect, &mut self.check) {
            (Some(expectation), Some(check)) if expectation.watches() => {
                let mut watch = check.watch(expectation);
                self.conn.parser.feed_with(bytes, &mut watch)
            }
            _ => self.conn.parser.feed(bytes),
        }
    }

    /// Checks the response that is complete, and prepares the parser for the next one if one is outstanding.
    #[inline]
    pub(super) fn complete(&mut self, end: ResponseEnd) {
        let verdict = match (&self.asked().expect, &mut self.check) {
            (Some(expectation), Some(check)) => check.verdict(expectation, &end),
            _ => Ok(()),
        };
        self.ended.push(Ended {
            stream: self.next_stream(),
            end,
            first_byte: self.conn.first_byte,
            verdict,
        });
        if self.ended.len() < usize::from(self.conn.outstanding) {
            let next = self.asked();
            self.conn.parser.begin(next.head);
            self.conn.first_byte = 0;
            if let (Some(expectation), Some(check)) = (&next.expect, &mut self.check) {
                check.begin(expectation);
            }
        }
    }
}

impl<R: Reactor> Engine<'_, R> {
    pub(super) fn on_received(&mut self, id: ConnId, stamp: u64) {
        let length = self.reactor.received().len() as u64;
        Progress::add(&self.progress.received_bytes, length);
        let conn = &self.conns[id as usize];
        let outstanding = conn.outstanding;
        if outstanding > 0 {
            self.count_received(id, length);
        }
        if self.is_secure(id) {
            self.on_sealed(id, stamp);
            return;
        }
        if outstanding == 0 {
            let cause = Cause::Own("bytes without a request");
            self.error(id, None, ErrorKind::Unsolicited, cause);
            self.renew(id, stamp);
            return;
        }
        let fault = self.read(id, stamp);
        self.settle(id, stamp, fault);
    }

    /// Handles `bytes` of content that the kernel received and dropped.
    pub(super) fn on_discarded(&mut self, id: ConnId, bytes: u64, stamp: u64) {
        Progress::add(&self.progress.received_bytes, bytes);
        let conn = &mut self.conns[id as usize];
        if conn.outstanding == 0 {
            return;
        }
        if let Parsing::Complete(end) = conn.parser.skip(bytes) {
            self.ended_otherwise(id, end, stamp);
        }
        self.count_received(id, bytes);
        self.settle(id, stamp, None);
    }

    fn count_received(&mut self, id: ConnId, bytes: u64) {
        let slice = self.request_of(self.awaited(id)).slice as usize;
        let flow = usize::from(self.conns[id as usize].flow);
        if let Some(data) = self.data(slice, flow) {
            data.received_bytes += bytes;
        }
    }

    fn read(&mut self, id: ConnId, stamp: u64) -> Option<Fault> {
        let (mut reader, reactor) = self.reader(id, stamp);
        reader.read(reactor.received())
    }

    /// Creates the reader of a connection's responses; also returns the reactor, which holds the received bytes.
    #[inline]
    pub(super) fn reader(&mut self, id: ConnId, stamp: u64) -> (Reader<'_>, &mut R) {
        let conn = &mut self.conns[id as usize];
        let flow = usize::from(conn.flow);
        let plan = &self.plan.flows[flow];
        let streams = self.flows[flow].streams_of(id, plan.pipeline);
        let reader = Reader {
            conn,
            in_flight: &self.in_flight[streams],
            requests: &plan.requests,
            check: self.checks.get_mut(id as usize),
            ended: &mut self.ended,
            stamp,
        };
        (reader, &mut self.reactor)
    }

    /// Completes a response that ends without a byte in the buffer: its content was dropped in the kernel, or the peer
    /// has closed.
    pub(super) fn ended_otherwise(&mut self, id: ConnId, end: ResponseEnd, stamp: u64) {
        self.reader(id, stamp).0.complete(end);
    }

    /// Records the completed responses and decides what happens to the connection.
    pub(super) fn settle(&mut self, id: ConnId, stamp: u64, fault: Option<Fault>) {
        let (any, keep) = self.settle_ended(id, stamp);
        match fault {
            Some(Fault::Parser(error)) => self.fail(id, error.kind(), Cause::Parser(error)),
            Some(Fault::Surplus) => {
                let cause = Cause::Own("bytes after the end of the response");
                self.error(id, None, ErrorKind::Unsolicited, cause);
                self.renew(id, stamp);
            }
            None if any => self.go_on(id, stamp, keep),
            None => self.ask_to_discard(id),
        }
    }

    /// Records the completed responses. Returns whether there were any, and whether the connection can be kept.
    pub(super) fn settle_ended(&mut self, id: ConnId, stamp: u64) -> (bool, bool) {
        let mut keep = true;
        let mut ended = std::mem::take(&mut self.ended);
        for &response in &ended {
            self.complete(id, response, stamp);
            keep &= response.end.keep_alive;
        }
        let any = !ended.is_empty();
        ended.clear();
        self.ended = ended;
        (any, keep)
    }

    /// Lets the kernel drop the rest of long content that is not checked or kept.
    fn ask_to_discard(&mut self, id: ConnId) {
        let request = self.request_of(self.awaited(id)).request;
        let conn = &mut self.conns[id as usize];
        let flow = &self.plan.flows[usize::from(conn.flow)];
        if flow.tls.is_some() || flow.keeps_content {
            return;
        }
        let expect = &flow.requests.get(request).expect;
        if expect.as_ref().is_some_and(Expectation::reads_content) {
            return;
        }
        if !conn.discarding
            && let Some(left) = conn.parser.content_left()
            && left >= DISCARD_FROM
        {
            conn.discarding = true;
            self.reactor.discard(id, left);
        }
    }

    /// Records a response and ends the request of its stream.
    fn complete(&mut self, id: ConnId, response: Ended, stamp: u64) {
        let Ended { stream, end, first_byte, verdict } = response;
        let key = StreamKey { conn: id, stream };
        let entry = self.request_of(key);
        let flow = usize::from(self.conns[id as usize].flow);
        let slice = entry.slice as usize;
        let of_slice = &self.plan.slices[slice];
        let measured = of_slice.measures(entry.intended - self.start);
        let [sent, ended] = [entry.sent, stamp].map(|t| t.saturating_sub(self.start));
        let served = of_slice.served(sent, ended);
        if let Some(data) = self.data(slice, flow) {
            data.completed_whole += 1;
            data.served_thousandths += served;
            data.content_bytes += end.content_bytes;
            let code = usize::from(end.status.wrapping_sub(100));
            if let Some(count) = data.statuses.get_mut(code) {
                *count += 1;
            }
            if measured {
                let times = &mut data.histograms;
                let response = stamp.saturating_sub(entry.intended);
                times.response.saturating_record(response);
                let service = stamp.saturating_sub(entry.sent);
                times.service.saturating_record(service);
                times.first_byte.saturating_record(first_byte.saturating_sub(entry.sent));
                times.overflow += u64::from(response > LONGEST_NS);
            }
        }
        if let Some(data) = self.measured_data(flow, stamp) {
            data.completed += 1;
        }
        // One request is one error, however much of its response is wrong.
        let verdict =
            if (100..600).contains(&end.status) { verdict } else { Err(Unexpected::NoStatus) };
        if let Err(unexpected) = verdict {
            let cause = Cause::Own(unexpected.words());
            self.error(id, Some(slice), ErrorKind::Unexpected, cause);
        }
        Progress::add(&self.progress.completed, 1);
        self.end_request(key, stamp);
        let conn = &mut self.conns[id as usize];
        conn.served += 1;
        conn.setbacks = 0;
        conn.discarding = false;
    }

    /// Continues after a response: renews the connection if it is worn out or not to be kept, otherwise offers it for
    /// the next request.
    fn go_on(&mut self, id: ConnId, stamp: u64, keep: bool) {
        let conn = &self.conns[id as usize];
        let flow = usize::from(conn.flow);
        let worn = match self.plan.flows[flow].lifetime {
            Lifetime::Kept => false,
            Lifetime::Request => true,
            Lifetime::Requests(most) => conn.served >= most,
            Lifetime::Time(most) => stamp.saturating_sub(conn.opened) >= most,
        };
        // Answered before it was sent whole: what is left would hold up the next request, and a server that
        // refuses content need not read it (RFC 9112 §9.5).
        let is_cut_short = conn.outstanding == 0 && conn.unsent.is_some();
        if keep && worn && conn.outstanding > 0 {
            // What was pipelined before it was worn out is still answered; no more is sent.
            self.links.remove(&mut self.flows[flow].free, id);
        } else if !keep || worn || is_cut_short {
            // Requests that were pipelined behind the last one the server answers are lost.
            self.lose_requests(id, stamp);
            self.renew(id, stamp);
        } else {
            self.offer(id, stamp);
        }
    }
}
