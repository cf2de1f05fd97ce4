//! Requests in flight, by connection and stream.
//!
//! HTTP/1.1 answers requests in order (RFC 9112 §9.3.2), so its streams are numbered by their position in the pipeline,
//! and the numbers wrap around. Code that records a response names its stream; only [`Engine::awaited`] and
//! [`Engine::end_request`] rely on streams ending in order. A protocol whose streams end in any order needs other
//! versions of these two.

use super::{Engine, InFlight};
use crate::reactor::{ConnId, Reactor};

/// A stream of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamKey {
    pub(super) conn: ConnId,
    /// Number of the stream, less than the flow's pipeline depth.
    pub(super) stream: u16,
}

/// Returns the stream `ahead` positions after `stream`; `ahead` is at most `depth`.
#[inline]
pub(super) fn ahead_of(stream: u16, ahead: u16, depth: u16) -> u16 {
    (stream + ahead) % depth
}

impl<R: Reactor> Engine<'_, R> {
    /// Returns the stream whose response comes next on a connection.
    #[inline]
    pub(super) fn awaited(&self, conn: ConnId) -> StreamKey {
        let stream = self.conns[conn as usize].oldest;
        StreamKey { conn, stream }
    }

    /// Returns the request of a stream.
    #[inline]
    pub(super) fn request_of(&self, key: StreamKey) -> InFlight {
        let flow = usize::from(self.conns[key.conn as usize].flow);
        let depth = self.plan.flows[flow].pipeline;
        let streams = self.flows[flow].streams_of(key.conn, depth);
        self.in_flight[streams.start + usize::from(key.stream)]
    }

    /// Ends the request of a stream, whether it was answered or not.
    pub(super) fn end_request(&mut self, key: StreamKey, now: u64) {
        let slice = self.request_of(key).slice as usize;
        let conn = &mut self.conns[key.conn as usize];
        let flow = usize::from(conn.flow);
        let state = &mut self.flows[flow];
        debug_assert_eq!(conn.oldest, key.stream);
        conn.oldest = ahead_of(key.stream, 1, self.plan.flows[flow].pipeline);
        conn.outstanding -= 1;
        self.links.remove(&mut state.awaited, key.conn);
        if conn.outstanding == 0 {
            state.busy -= 1;
        } else {
            // The next response of a pipeline is awaited from now on.
            conn.since = now;
            self.links.push(&mut state.awaited, key.conn);
        }
        self.outstanding -= 1;
        self.open_slices.release(slice);
    }
}
