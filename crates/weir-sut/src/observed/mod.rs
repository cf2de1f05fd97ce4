//! A proxy that runs and that weir did not start: what it tells of itself where its own configuration offers that.
//!
//! Nothing is changed, nothing is asked that its configuration does not offer to this host, and only what the caller may
//! read is read: its command line, its configuration, its error log, its socket for statistics. No file that another
//! user's process names is read, no program of another user's is run, and nothing is asked where another user listens
//! ([`crate::trust`]). Why something is not read is told with what is missing.

mod process;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_model::study::ProxyKind;

pub use self::process::Process;
use crate::admin::{answer, answer_to_line};
use crate::timed::TimedStream;
use crate::trust;

/// Functions to observe a kind of proxy that weir did not start.
#[derive(Debug)]
pub struct Running {
    /// Looks for what one offers that is asked at an address; an error is why its configuration cannot be read.
    pub find: fn(&Process, SocketAddr) -> Result<Offers, String>,
    /// True if that needs its files.
    pub needs_files: bool,
    /// Maximum length of an answer, bytes.
    pub most: usize,
    /// Reads counters and momentary values, by the names in `limits/counters.yaml`, through a function that sends
    /// requests.
    pub sampled: fn(&Ask<'_>) -> Result<BTreeMap<String, u64>, String>,
}

/// Function that queries a proxy: with a command if the proxy accepts lines; other proxies ignore the text.
pub type Ask<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// Settings, log and counters that a running proxy's configuration offers.
#[derive(Debug, Clone)]
pub struct Offers {
    /// Path of the error log.
    pub error_log: Option<PathBuf>,
    /// True if the error log contains warnings; `None` if not known.
    pub logs_warnings: Option<bool>,
    /// Levels by ids of the catalog.
    pub settings: BTreeMap<String, String>,
    /// Counters that always stay at zero, because the configuration has nothing that they count.
    pub idle: Vec<&'static str>,
    /// Endpoint of the counters, or the reason why there is none.
    pub endpoint: Result<StatusEndpoint, String>,
}

/// A running proxy that weir did not start.
#[derive(Debug, Clone)]
pub struct ObservedProxy {
    /// Kind of the proxy.
    pub kind: ProxyKind,
    /// Levels of the proxy's configuration by ids of the catalog, as far as they could be read.
    pub settings: BTreeMap<String, String>,
    pub(crate) offers: Offers,
    pub log: Option<LogFile>,
    running: &'static Running,
}

/// A log of a proxy's.
#[derive(Debug, Clone)]
pub struct LogFile {
    /// The folder that stands for `/` where the proxy is; `None`: it has the file systems that this process has.
    pub root: Option<PathBuf>,
    pub path: PathBuf,
}

impl LogFile {
    /// Opens it for reading, if it is a regular file and no link of others leads to it.
    pub(crate) fn open(&self) -> io::Result<File> {
        match &self.root {
            Some(root) => weir_files::open_regular_below(root, &self.path),
            None => weir_files::open_regular(&self.path),
        }
    }
}

/// The endpoint of a proxy's own counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusEndpoint {
    /// HAProxy's socket, which accepts commands as lines.
    Lines(Peer),
    /// HTTP endpoint: the peer, the Host field, and the target.
    Http(Peer, String, String),
}

/// Other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl ObservedProxy {
    /// Creates a proxy that listens at an address.
    pub fn of(process: &Process, running: &'static Running, address: SocketAddr) -> ObservedProxy {
        let distrust = if running.needs_files {
            process.distrust()
        } else {
            trust::against_process(process.pid)
        };
        let offers = match distrust {
            Some(why) => Offers::none(&why),
            None => (running.find)(process, address).unwrap_or_else(|why| Offers::none(&why)),
        };
        let configured = offers.error_log.clone().filter(|path| path.exists());
        let log = match configured {
            Some(path) => Some(LogFile { root: None, path }),
            None => process.open_log(),
        };
        ObservedProxy {
            kind: process.kind,
            settings: offers.settings.clone(),
            offers,
            log,
            running,
        }
    }

    /// Creates a proxy with an error log alone, for tests.
    #[cfg(test)]
    pub(crate) fn with_log(kind: ProxyKind, error_log: PathBuf) -> ObservedProxy {
        const RUNNING: Running = Running {
            find: |_, _| Ok(Offers::none("")),
            needs_files: false,
            most: 0,
            sampled: |_| Ok(BTreeMap::new()),
        };
        ObservedProxy {
            kind,
            settings: BTreeMap::new(),
            offers: Offers::none("there is none"),
            log: Some(LogFile { root: None, path: error_log }),
            running: &RUNNING,
        }
    }

    /// Its counters and values of the moment, by the names of `limits/counters.yaml`: all answers together may take
    /// so long.
    ///
    /// # Errors
    /// Why it is not asked, or does not answer, and what would help.
    pub fn sampled(&self, patience: Duration) -> Result<BTreeMap<String, u64>, String> {
        let endpoint = self.offers.endpoint.as_ref().map_err(Clone::clone)?;
        let until = Instant::now() + patience;
        (self.running.sampled)(&|command| {
            endpoint
                .ask(command, until, self.running.most)
                .map_err(|error| format!("{}: {error}", endpoint.name()))
        })
    }
}

impl Offers {
    /// Returns empty offers, for a configuration that cannot be read.
    pub fn none(why: &str) -> Offers {
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
    /// Sends a command to a peer that accepts lines, or a request for the target to any other peer; returns the answer.
    fn ask(&self, command: &str, until: Instant, most: usize) -> io::Result<String> {
        match self {
            StatusEndpoint::Lines(peer) => answer_to_line(peer.connect(until)?, command, most),
            StatusEndpoint::Http(peer, host, target) => {
                let mut stream = peer.connect(until)?;
                let head =
                    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
                stream.write_all(head.as_bytes())?;
                answer(stream, most)
            }
        }
    }

    /// Returns the endpoint's name for messages: `http://127.0.0.1:8081/status`.
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

impl Peer {
    /// Returns the peer for a listening address; an unspecified address becomes this host.
    pub fn listening_at(listen: &str) -> Option<Peer> {
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

    /// Connects to it, if root or this process's user listens there.
    fn connect(&self, until: Instant) -> io::Result<TimedStream> {
        match self {
            Peer::Tcp(address) => {
                let users = weir_probe::users_listening_at(*address);
                refuse_strangers(users)?;
                TimedStream::to_address(address, until)
            }
            Peer::Unix(path) => {
                let stream = TimedStream::to_socket(path, until)?;
                refuse_strangers([stream.peer_user()?])?;
                Ok(stream)
            }
        }
    }
}

/// Refuses to ask where other users listen: what they answer could be anything.
fn refuse_strangers(users: impl IntoIterator<Item = u32>) -> io::Result<()> {
    match users.into_iter().find(|user| !trust::is_own(*user)) {
        Some(user) => Err(io::Error::other(format!(
            "not asked: user {user} listens there, neither root nor you"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use rustix::process::{Uid, geteuid};
    use rustix::thread::set_thread_res_uid;

    use super::*;

    /// A port of the proxy's configuration may be anybody's by now.
    #[test]
    fn nothing_is_asked_where_another_user_listens() {
        if !geteuid().is_root() {
            return;
        }
        let until = Instant::now() + Duration::from_secs(20);
        for (user, is_asked) in [(0, true), (65_534, false)] {
            let listener = listener_of(user);
            let peer = Peer::Tcp(listener.local_addr().unwrap());
            let error = peer.connect(until).err().map(|error| error.to_string());
            assert_eq!(error.is_none(), is_asked, "{error:?}");
            assert!(error.is_none_or(|error| error.contains("user 65534 listens there")));
        }
    }

    fn listener_of(user: u32) -> TcpListener {
        let bound = thread::spawn(move || {
            let user = Uid::from_raw(user);
            set_thread_res_uid(user, user, user).unwrap();
            TcpListener::bind("127.0.0.1:0").unwrap()
        });
        bound.join().unwrap()
    }
}
