//! A proxy that runs and that weir did not start: what it tells of itself where its own configuration offers that.
//!
//! Nothing is changed, nothing is asked that its configuration does not offer to this host, and only what the caller may
//! read is read: its command line, its configuration, its error log, its socket for statistics. Why something is not
//! read is told with what is missing.

mod discover;
mod process;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_model::study::ProxyKind;

use crate::admin::answer;
use crate::{caddy, envoy, haproxy, httpd, nginx};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer at most.
const MOST: u64 = 64 << 20;

/// A proxy that runs and that weir did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedProxy {
    /// Which program.
    pub kind: ProxyKind,
    /// Its error log, as this process can open it.
    pub error_log: Option<PathBuf>,
    /// Whether its error log has warnings; `None`: not known.
    pub logs_warnings: Option<bool>,
    /// Levels of its configuration by ids of the catalog, as far as they could be read.
    pub settings: BTreeMap<String, String>,
    /// Counters that stay at zero whatever happens: its configuration has nothing that they count.
    pub(crate) idle: Vec<&'static str>,
    /// Where it is asked, or why it is not.
    pub(crate) way: Result<Way, String>,
}

/// Where a proxy tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// HAProxy's socket, to which commands are lines.
    Lines(Peer),
    /// By HTTP: the peer, the Host field, and the target.
    Http(Peer, String, String),
}

/// Who is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl ObservedProxy {
    /// The proxy whose processes these are, which is asked at an address; `None`: they are no program that is known here.
    pub fn of(processes: &[u32], address: SocketAddr) -> Option<ObservedProxy> {
        discover::of(processes, address)
    }

    /// Its counters and values of the moment, by the names of `limits/counters.yaml`.
    ///
    /// # Errors
    /// Why it is not asked, or does not answer, and what would help.
    pub(crate) fn sampled(&self) -> Result<BTreeMap<String, u64>, String> {
        let way = self.way.as_ref().map_err(Clone::clone)?;
        let ask = |command: &str| {
            let asked = way.ask(command);
            asked.map_err(|error| format!("{}: {error}", way.name()))
        };
        Ok(match self.kind {
            ProxyKind::Haproxy => haproxy::sampled_of(&ask("show info")?, &ask("show stat")?),
            ProxyKind::Envoy => envoy::sampled_of(&ask("")?),
            ProxyKind::Caddy => caddy::sampled_of(&ask("")?),
            ProxyKind::Httpd => httpd::sampled_of(&ask("")?),
            _ => nginx::sampled_of(&ask("")?),
        })
    }
}

impl Way {
    /// The answer to a command, of a peer that takes lines; of any other to its target.
    fn ask(&self, command: &str) -> io::Result<String> {
        match self {
            Way::Lines(peer) => {
                let mut stream = peer.connect()?;
                stream.write_all(format!("{command}\n").as_bytes())?;
                let mut answer = Vec::new();
                stream.take(MOST).read_to_end(&mut answer)?;
                Ok(String::from_utf8_lossy(&answer).into_owned())
            }
            Way::Http(peer, host, target) => {
                let mut stream = peer.connect()?;
                let head =
                    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
                stream.write_all(head.as_bytes())?;
                answer(stream)
            }
        }
    }

    /// As messages have it: `http://127.0.0.1:8081/status`.
    fn name(&self) -> String {
        match self {
            Way::Lines(Peer::Tcp(address)) => address.to_string(),
            Way::Lines(Peer::Unix(path)) => path.display().to_string(),
            Way::Http(Peer::Tcp(address), _, target) => format!("http://{address}{target}"),
            Way::Http(Peer::Unix(path), _, target) => format!("{}, {target}", path.display()),
        }
    }
}

/// A connection of either kind.
trait Stream: Read + Write {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

impl Peer {
    fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Peer::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, PATIENCE)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Box::new(stream))
            }
            Peer::Unix(path) => {
                let stream = connect_unix(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// By way of its folder's descriptor, since a path may be too long for a socket's address.
fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let both = path.parent().zip(path.file_name());
    let (folder, name) = both.ok_or(io::ErrorKind::InvalidInput)?;
    let folder = File::open(folder)?;
    UnixStream::connect(format!(
        "/proc/self/fd/{}/{}",
        folder.as_raw_fd(),
        name.display()
    ))
}
