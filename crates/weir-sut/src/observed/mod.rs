//! A proxy that runs and that weir did not start: what it tells of itself where its own configuration offers that.
//!
//! Nothing is changed, nothing is asked that its configuration does not offer to this host, and only what the caller may
//! read is read: its command line, its configuration, its error log, its socket for statistics. No file that another
//! user's process names is read, and no program of another user's is run ([`crate::trust`]). Why something is not read is
//! told with what is missing.

mod process;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_model::study::ProxyKind;

pub(crate) use self::process::Process;
use crate::admin::answer;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer at most.
const MOST: u64 = 64 << 20;

/// How a kind of proxy is observed where weir did not start it.
#[derive(Debug)]
pub(crate) struct Running {
    /// Looks for what one offers that is asked at an address; an error is why its configuration cannot be read.
    pub(crate) find: fn(&Process, SocketAddr) -> Result<Offers, String>,
    /// True if that needs its files.
    pub(crate) needs_files: bool,
    /// Its counters and values of the moment, by the names of `limits/counters.yaml`, with what asks it.
    pub(crate) sampled: fn(&Ask<'_>) -> Result<BTreeMap<String, u64>, String>,
}

/// Asks a proxy: by a command, where it takes lines.
pub(crate) type Ask<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// Settings, log and counters that a running proxy offers by its configuration.
#[derive(Debug, Clone)]
pub(crate) struct Offers {
    /// Its error log.
    pub(crate) error_log: Option<PathBuf>,
    /// True if its error log has warnings; `None`: not known.
    pub(crate) logs_warnings: Option<bool>,
    /// Levels by ids of the catalog.
    pub(crate) settings: BTreeMap<String, String>,
    /// Counters that stay at zero whatever happens: its configuration has nothing that they count.
    pub(crate) idle: Vec<&'static str>,
    /// The endpoint of its counters, or why there is none.
    pub(crate) endpoint: Result<StatusEndpoint, String>,
}

/// A proxy that runs and that weir did not start.
#[derive(Debug, Clone)]
pub struct ObservedProxy {
    /// The program.
    pub kind: ProxyKind,
    /// Levels of its configuration by ids of the catalog, as far as they could be read.
    pub settings: BTreeMap<String, String>,
    /// With the error log as this process can open it.
    pub(crate) offers: Offers,
    running: &'static Running,
}

/// The endpoint of a proxy's own counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatusEndpoint {
    /// HAProxy's socket, to which commands are lines.
    Lines(Peer),
    /// By HTTP: the peer, the Host field, and the target.
    Http(Peer, String, String),
}

/// The other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl ObservedProxy {
    /// One that is asked at an address.
    pub(crate) fn of(
        process: &Process,
        running: &'static Running,
        address: SocketAddr,
    ) -> ObservedProxy {
        let ours: Vec<u32> = process.trusted().collect();
        let open = weir_probe::error_log_of(&ours).map(|(_, path)| path);
        let distrust = process.distrust().filter(|_| running.needs_files);
        let mut offers = match distrust {
            Some(why) => Offers::none(&why),
            None => (running.find)(process, address).unwrap_or_else(|why| Offers::none(&why)),
        };
        offers.error_log = offers.error_log.filter(|path| path.exists()).or(open);
        ObservedProxy {
            kind: process.kind,
            settings: offers.settings.clone(),
            offers,
            running,
        }
    }

    /// One that is asked nowhere.
    #[cfg(test)]
    pub(crate) fn with_log(kind: ProxyKind, error_log: PathBuf) -> ObservedProxy {
        const RUNNING: Running = Running {
            find: |_, _| Ok(Offers::none("")),
            needs_files: false,
            sampled: |_| Ok(BTreeMap::new()),
        };
        ObservedProxy {
            kind,
            settings: BTreeMap::new(),
            offers: Offers {
                error_log: Some(error_log),
                ..Offers::none("there is none")
            },
            running: &RUNNING,
        }
    }

    /// Its counters and values of the moment, by the names of `limits/counters.yaml`.
    ///
    /// # Errors
    /// Why it is not asked, or does not answer, and what would help.
    pub(crate) fn sampled(&self) -> Result<BTreeMap<String, u64>, String> {
        let endpoint = self.offers.endpoint.as_ref().map_err(Clone::clone)?;
        (self.running.sampled)(&|command| {
            let asked = endpoint.ask(command);
            asked.map_err(|error| format!("{}: {error}", endpoint.name()))
        })
    }
}

impl Offers {
    /// Nothing: its configuration cannot be read.
    pub(crate) fn none(why: &str) -> Offers {
        Offers {
            error_log: None,
            logs_warnings: None,
            settings: BTreeMap::new(),
            idle: Vec::new(),
            endpoint: Err(format!("its configuration cannot be read: {why}")),
        }
    }
}

impl StatusEndpoint {
    /// The answer to a command, of a peer that takes lines; of any other to its target.
    fn ask(&self, command: &str) -> io::Result<String> {
        match self {
            StatusEndpoint::Lines(peer) => {
                let mut stream = peer.connect()?;
                stream.write_all(format!("{command}\n").as_bytes())?;
                let mut answer = Vec::new();
                stream.take(MOST).read_to_end(&mut answer)?;
                Ok(String::from_utf8_lossy(&answer).into_owned())
            }
            StatusEndpoint::Http(peer, host, target) => {
                let mut stream = peer.connect()?;
                let head =
                    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
                stream.write_all(head.as_bytes())?;
                answer(stream)
            }
        }
    }

    /// Writes it for messages: `http://127.0.0.1:8081/status`.
    fn name(&self) -> String {
        match self {
            StatusEndpoint::Lines(Peer::Tcp(address)) => address.to_string(),
            StatusEndpoint::Lines(Peer::Unix(path)) => path.display().to_string(),
            StatusEndpoint::Http(Peer::Tcp(address), _, target) => {
                format!("http://{address}{target}")
            }
            StatusEndpoint::Http(Peer::Unix(path), _, target) => {
                format!("{}, {target}", path.display())
            }
        }
    }
}

/// A connection of either kind.
trait Stream: Read + Write {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

impl Peer {
    /// Finds the peer for an address that is listened at: this host where it is any.
    pub(crate) fn listening_at(listen: &str) -> Option<Peer> {
        if let Some(path) = listen.strip_prefix("unix:") {
            return Some(Peer::Unix(path.into()));
        }
        let local = IpAddr::from(Ipv4Addr::LOCALHOST);
        let (host, port) = match listen.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => match listen.parse::<u16>() {
                Ok(port) => ("*", port),
                Err(_) => (listen, 80),
            },
        };
        let host = match host.trim_start_matches('[').trim_end_matches(']') {
            "*" | "" | "localhost" => local,
            address => address.parse().ok()?,
        };
        let host = if host.is_unspecified() { local } else { host };
        Some(Peer::Tcp(SocketAddr::from((host, port))))
    }

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

/// Connects by way of its folder's descriptor, since a path may be too long for a socket's address.
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
