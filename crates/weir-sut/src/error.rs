//! What can go wrong with a proxy, and what to do about it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use weir_probe::ProbeError;

use crate::nginx::syntax::SyntaxError;

/// Why a proxy cannot be had, configured, started or trusted. Where the proxy itself said
/// something, its own words are kept.
#[derive(Debug, thiserror::Error)]
pub enum SutError {
    /// The program is not installed, or not where it was said to be.
    #[error("{program} was not found {searched}")]
    NotFound {
        /// Its name, or the path that was given.
        program: String,
        /// Where it was looked for.
        searched: String,
    },
    /// The program could not be asked or started.
    #[error("cannot run {}: {source}", program.display())]
    Spawn {
        /// Its path.
        program: PathBuf,
        /// The kernel's words.
        source: io::Error,
    },
    /// The program answers in a way that weir does not understand.
    #[error("{} does not look like nginx: `{words}`", program.display())]
    NotNginx {
        /// Its path.
        program: PathBuf,
        /// What it printed.
        words: String,
    },
    /// A file or folder of weir's own could not be written or read.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// `create`, `write`, `read` or `remove`.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's words.
        source: io::Error,
    },
    /// The proxy's workers run as another user, who could not reach the files meant for them.
    #[error("{} cannot be entered by {user}, as whom the proxy's workers run", path.display())]
    NotReadable {
        /// The folder in the way.
        path: PathBuf,
        /// The workers' user.
        user: String,
    },
    /// A setting names a parameter that the catalog does not have for this proxy.
    #[error("`{id}` is not a parameter of nginx in the catalog")]
    UnknownParameter {
        /// The parameter's id.
        id: String,
    },
    /// A setting that is no part of a proxy's configuration, such as a kernel parameter.
    #[error("`{id}` is no setting of the proxy's configuration")]
    NotOfProxy {
        /// Its id.
        id: String,
    },
    /// A reverse proxy was asked for without an origin server.
    #[error("a reverse proxy needs the address of an origin server")]
    NoOrigin,
    /// The certificate for the proxies' TLS listeners cannot be made.
    #[error("cannot make a certificate for `{name}`: {words}")]
    Certificate {
        /// The host that it was to be for.
        name: String,
        /// What the library says.
        words: String,
    },
    /// The proxy does not accept the configuration.
    #[error("nginx refuses the configuration {}:\n{words}", file.display())]
    Refused {
        /// The configuration that was written.
        file: PathBuf,
        /// What it said.
        words: String,
    },
    /// The configuration that the proxy prints cannot be read back.
    #[error("cannot read back the configuration that nginx prints: {0}")]
    Syntax(#[from] SyntaxError),
    /// Somebody else listens at the proxy's address.
    #[error("nginx cannot listen at {address}:\n{words}")]
    PortTaken {
        /// The address.
        address: SocketAddr,
        /// What it said.
        words: String,
    },
    /// The proxy ended before it listened.
    #[error("nginx ended before it listened at {address} ({status}):\n{words}")]
    NotStarted {
        /// The address.
        address: SocketAddr,
        /// How it ended.
        status: String,
        /// What it said.
        words: String,
    },
    /// The proxy runs, but does not accept connections.
    #[error("nginx does not accept connections at {address} after {seconds} s:\n{words}")]
    NotListening {
        /// The address.
        address: SocketAddr,
        /// How long it was waited for.
        seconds: u64,
        /// What it said.
        words: String,
    },
    /// A process of the proxy ended while it should have served.
    #[error("the {what} of nginx at {address} (process {pid}) ended during the run:\n{words}")]
    Died {
        /// `master process` or `worker process`.
        what: &'static str,
        /// The process that is no more.
        pid: u32,
        /// The proxy's address.
        address: SocketAddr,
        /// The last lines of its error log.
        words: String,
    },
    /// There are not enough free ports for the arms.
    #[error("no free port was found at {address} in {tries} tries")]
    NoFreePort {
        /// The address.
        address: std::net::IpAddr,
        /// Ports that were tried.
        tries: u32,
    },
    /// A counter of the kernel could not be read.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

impl SutError {
    /// What somebody can do about it, as a sentence for a line of its own; `None` where the error
    /// says it all.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            SutError::NotFound { .. } => {
                "install it: apt-get install nginx-light, or name it under proxy.executable"
                    .to_owned()
            }
            SutError::Spawn { .. } | SutError::NotNginx { .. } => {
                "name nginx's executable under proxy.executable".to_owned()
            }
            SutError::NotReadable { path, .. } => format!(
                "set TMPDIR to a folder that everybody may enter, or run: chmod o+x {}",
                path.display()
            ),
            SutError::Refused { .. } => {
                "these are nginx's own words; change the setting that they name in the study"
                    .to_owned()
            }
            SutError::PortTaken { address, .. } => format!(
                "another program listens there; `ss -ltnp 'sport = {}'` names it; stop it or choose another port",
                address.port()
            ),
            SutError::Died { .. } => {
                "`dmesg` says whether the kernel ended it for want of memory".to_owned()
            }
            _ => return None,
        };
        Some(hint)
    }

    /// Wraps the kernel's words about a file of weir's own.
    pub(crate) fn file(
        doing: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> SutError {
        let path = path.as_ref().to_owned();
        move |source| SutError::File {
            doing,
            path,
            source,
        }
    }
}
