//! What an origin server is to do.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

#[cfg(doc)]
use weir_model::study::file_target;
use weir_model::study::{DelaySpec, OriginSpec};

use crate::Content;

/// A time during which the server neither accepts, reads nor answers, as if it were stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// When it begins, counted from the first request that the server received.
    pub at: Duration,
    /// How long it lasts.
    pub length: Duration,
}

/// What an origin server is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct OriginConfig {
    /// Addresses to listen on from the start; port 0 takes a free one. More can be opened later
    /// ([`crate::Origin::open`]).
    pub listen: Vec<SocketAddr>,
    /// CPUs to run on, a pinned thread for each. Empty: one thread, wherever the kernel puts it.
    pub cpus: Vec<u32>,
    /// Status code of every response, 200 to 599. 204 and 304 have no content.
    pub status: u16,
    /// Content of every response.
    pub content: Content,
    /// Sizes of other content in bytes, each at [`file_target`]: what the request target says is
    /// answered with that size, every other target with [`OriginConfig::content`]. At most 40.
    pub sizes: Vec<u64>,
    /// Value of Content-Type; empty: no such field.
    pub content_type: String,
    /// Further fields of every response, in this order.
    pub fields: Vec<(String, String)>,
    /// How long a request waits for its response. Each one waits by itself, unless
    /// [`OriginConfig::concurrency`] says otherwise; responses of one connection still leave in the order of the
    /// requests.
    pub delay: DelaySpec,
    /// Requests of all connections that wait at the same time; the others stand in line. `None`: any number.
    pub concurrency: Option<NonZeroU32>,
    /// Stalls, in any order.
    pub stalls: Vec<Stall>,
    /// Length of each listener's accept queue; the kernel cuts it to `net.core.somaxconn`.
    pub backlog: u32,
    /// Seed of random delays. The same seed gives the same delays, in the order of requests of
    /// each thread.
    pub seed: u64,
}

impl OriginConfig {
    /// A server that answers 1 KiB of text at once, from one unpinned thread.
    pub fn new(listen: Vec<SocketAddr>) -> OriginConfig {
        OriginConfig::from_spec(&OriginSpec::default(), listen)
    }

    /// A server that answers as a study wants it, from one unpinned thread.
    pub fn from_spec(spec: &OriginSpec, listen: Vec<SocketAddr>) -> OriginConfig {
        OriginConfig {
            listen,
            cpus: Vec::new(),
            status: spec.status,
            content: Content::text(spec.size),
            sizes: Vec::new(),
            content_type: spec.content_type.clone(),
            fields: Vec::new(),
            delay: spec.delay,
            concurrency: spec.concurrency.and_then(NonZeroU32::new),
            stalls: Vec::new(),
            backlog: 65_535,
            seed: 1,
        }
    }
}
