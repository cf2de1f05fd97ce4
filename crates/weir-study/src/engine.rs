//! Interface to the load engine, as functions, for checks of a load that this crate cannot make itself.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use weir_model::flow::FlowSpec;
use weir_model::flow::words::Fault;
use weir_model::request::WeightedRequest;

/// Functions of the load engine that check a study.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// Reads a file that a request names for its content.
    pub read: fn(&Path) -> io::Result<Vec<u8>>,
    /// Resolves `name:port` to its first address.
    pub resolve: fn(&str) -> io::Result<SocketAddr>,
    /// Finds all faults that keep requests from being sent, such as slots that do not exist.
    pub requests: fn(&[WeightedRequest]) -> Vec<RequestFault>,
    /// Finds all faults in the files that a flow names.
    pub flow: fn(&FlowSpec) -> Vec<Fault>,
}

/// A fault that keeps a request from being sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFault {
    /// Index of the request in the list, from 0.
    pub index: usize,
    /// Key of the request that is wrong. `None`: the request as a whole.
    pub key: Option<&'static str>,
    /// Header that is wrong, for the key `fields`.
    pub header: Option<String>,
    /// Description of the fault.
    pub message: String,
    /// Advice on how to resolve the fault.
    pub hint: Option<String>,
}

impl Default for Engine {
    /// Returns an engine that finds no faults, resolves no names, and reads files up to 16 MiB.
    fn default() -> Engine {
        Engine {
            read: read_small,
            resolve: |_| Err(io::Error::other("names are not looked up here")),
            requests: |_| Vec::new(),
            flow: |_| Vec::new(),
        }
    }
}

/// Maximum size of a file that a study names, in bytes. A special file could be endless.
pub(crate) const LARGEST: u64 = 16 << 20;

/// Reads a file that a study names.
///
/// # Errors
/// Returns an error if the file cannot be read, is not a regular file, or is larger than 16 MiB.
pub fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let is = std::fs::metadata(path)?;
    if !is.is_file() || is.len() > LARGEST {
        let message = format!("it is not a file of at most {} MiB", LARGEST >> 20);
        return Err(io::Error::other(message));
    }
    std::fs::read(path)
}
