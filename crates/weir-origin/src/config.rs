//! Configuration of an origin server.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

#[cfg(doc)]
use weir_model::study::file_target;
use weir_model::study::{DelaySpec, OriginSpec};

use crate::Content;

/// A period in which the server neither accepts, reads nor answers, as if it were stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Start, counted from the first request that the server received.
    pub at: Duration,
    /// Duration of the stall.
    pub length: Duration,
}

/// Configuration of an origin server.
#[derive(Debug, Clone, PartialEq)]
pub struct OriginConfig {
    /// Addresses to listen on from the start; port 0 selects a free one. More can be opened later
    /// ([`crate::Origin::open`]).
    pub listen: Vec<SocketAddr>,
    /// CPUs to run on, with a pinned thread for each. Empty: one unpinned thread.
    pub cpus: Vec<u32>,
    /// Status code of every response, 200 to 599. 204 and 304 have no content.
    pub status: u16,
    /// Content of every response.
    pub content: Content,
    /// Sizes of additional content in bytes, each at [`file_target`]: a request for such a target is answered with that
    /// size, every other target with [`OriginConfig::content`]. At most 40.
    pub sizes: Vec<u64>,
    /// Value of Content-Type; empty to omit the field.
    pub content_type: String,
    /// Additional fields of every response, in this order.
    pub fields: Vec<(String, String)>,
    /// Delay between a request and its response. Each request is delayed independently, unless
    /// [`OriginConfig::concurrency`] limits them; responses of one connection still leave in the order of the requests.
    pub delay: DelaySpec,
    /// Maximum number of requests, over all connections, that are served at the same time; the others wait in a queue.
    /// `None`: unlimited.
    pub concurrency: Option<NonZeroU32>,
    /// Stalls, in any order.
    pub stalls: Vec<Stall>,
    /// Length of each listener's accept queue; the kernel limits it to `net.core.somaxconn`.
    pub backlog: u32,
    /// Seed of random delays. The same seed gives the same delays, in the order of each thread's requests.
    pub seed: u64,
}

impl OriginConfig {
    /// Creates the configuration of a server that answers 1 KiB of text at once, from one unpinned thread.
    pub fn new(listen: Vec<SocketAddr>) -> OriginConfig {
        OriginConfig::from_spec(&OriginSpec::default(), listen)
    }

    /// Creates the configuration of a server that answers as a study specifies, from one unpinned thread.
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
