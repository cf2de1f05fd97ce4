//! Responses: read, written down, and what they mean for their connection.

use weir_http::ParseError;
use weir_http::response::{Fed, Progress as Parsing, ResponseEnd};
use weir_model::load::{ErrorKind, Lifetime};

use super::streams::{StreamKey, ahead_of};
use super::{Conn, Ended, Engine, InFlight, Progress};
use crate::expect::{Check, Expectation, Unexpected};
use crate::ledger::{Cause, LONGEST_NS};
use crate::reactor::{ConnId, Reactor};
use crate::request_set::{Request, RequestSet};

/// Content from this size on is dropped in the kernel. Below, the further system call costs more
/// than the copy.
const DISCARD_FROM: u64 = 64 * 1024;

/// What was wrong with a batch of bytes.
pub(super) enum Fault {
    /// Not a response.
    Parser(ParseError),
    /// More than was asked for.
    Surplus,
}

/// Reads the responses of one connection.
pub(super) struct Reader<'e> {
    pub(super) conn: &'e mut Conn,
    /// Those of the connection's streams.
    pub(super) in_flight: &'e [InFlight],
    pub(super) requests: &'e RequestSet,
    /// Where responses are checked.
    pub(super) check: Option<&'e mut Check>,
    /// What has ended, in order.
    pub(super) ended: &'e mut Vec<Ended>,
    pub(super) stamp: u64,
}

impl<'e> Reader<'e> {
    /// The request that the next response to be complete is for.
    #[inline]
    fn asked(&self) -> &'e Request {
        let entry = &self.in_flight[usize::from(self.next_stream())];
        self.requests.get(entry.request)
    }

    /// The stream that the next response to be complete is of.
    #[inline]
    fn next_stream(&self) -> u16 {
        // No more responses end than requests are outstanding, and these fit into the pipeline.
        let depth = self.in_flight.len() as u16;
        ahead_of(self.conn.oldest, self.ended.len() as u16, depth)
    }

    /// Reads on.
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

    /// Judges the response that is complete, and expects the next one if there is to be one.
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

    /// So much of the content came and was dropped.
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

    /// Whoever reads the responses of a connection, and where its bytes are.
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

    /// A response that ends without a byte of its own: dropped in the kernel, or closed by the peer.
    pub(super) fn ended_otherwise(&mut self, id: ConnId, end: ResponseEnd, stamp: u64) {
        self.reader(id, stamp).0.complete(end);
    }

    /// Writes down what has ended and decides what becomes of the connection.
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

    /// Writes down what has ended. Says whether anything has, and whether the connection may be used
    /// on.
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

    /// Long content that nobody looks at need not leave the kernel.
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

    /// Writes the request of the response's stream down as answered.
    fn complete(&mut self, id: ConnId, response: Ended, stamp: u64) {
        let Ended {
            stream,
            end,
            first_byte,
            verdict,
        } = response;
        let key = StreamKey { conn: id, stream };
        let entry = self.request_of(key);
        let flow = usize::from(self.conns[id as usize].flow);
        let slice = entry.slice as usize;
        let of_slice = &self.plan.slices[slice];
        let measured = of_slice.measures(entry.intended - self.start);
        let since_start = |t: u64| t.saturating_sub(self.start);
        let served = of_slice.served(since_start(entry.sent), since_start(stamp));
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
                let first_byte = first_byte.saturating_sub(entry.sent);
                times.first_byte.saturating_record(first_byte);
                times.overflow += u64::from(response > LONGEST_NS);
            }
        }
        if let Some(data) = self.measured_data(flow, stamp) {
            data.completed += 1;
        }
        // One request is one error, however much of its response is wrong.
        let verdict = match (100..600).contains(&end.status) {
            true => verdict,
            false => Err(Unexpected::NoStatus),
        };
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

    /// After a response: the connection takes the next request, or has served its time.
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
