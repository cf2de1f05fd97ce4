//! What the load engine knows of a load, which this crate does not know: it is asked through functions.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use weir_model::flow::FlowSpec;
use weir_model::flow::words::Fault;
use weir_model::request::WeightedRequest;

/// The load engine, as far as a study is checked with it.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// Reads a file that a request names for its content.
    pub read: fn(&Path) -> io::Result<Vec<u8>>,
    /// The first address of `name:port`.
    pub resolve: fn(&str) -> io::Result<SocketAddr>,
    /// Finds everything that keeps requests from being sent, such as slots that do not exist.
    pub requests: fn(&[WeightedRequest]) -> Vec<RequestFault>,
    /// Finds everything that is wrong with the files that a flow names.
    pub flow: fn(&FlowSpec) -> Vec<Fault>,
}

/// Why a request cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFault {
    /// The request's place in the list, from 0.
    pub index: usize,
    /// The key of the request that is wrong; none: the request as a whole.
    pub key: Option<&'static str>,
    /// Of the key `fields`, the header.
    pub header: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Default for Engine {
    /// Finds nothing wrong.
    fn default() -> Engine {
        Engine {
            read: read_small,
            resolve: |_| Err(io::Error::other("names are not looked up here")),
            requests: |_| Vec::new(),
            flow: |_| Vec::new(),
        }
    }
}

/// Largest file that a study names: a file of another kind may never end.
pub(crate) const LARGEST: u64 = 16 << 20;

/// Reads a file that a study names.
///
/// # Errors
/// It cannot be read, is no regular file, or is larger than 16 MiB.
pub fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let is = std::fs::metadata(path)?;
    if !is.is_file() || is.len() > LARGEST {
        let message = format!("it is not a file of at most {} MiB", LARGEST >> 20);
        return Err(io::Error::other(message));
    }
    std::fs::read(path)
}
