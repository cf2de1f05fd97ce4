//! What can go wrong with a proxy, and what to do about it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use weir_model::study::ProxyKind;
use weir_probe::ProbeError;

use weir_configuration::ConfigurationError;
use weir_configuration::nginx::syntax::SyntaxError;

/// Why a proxy cannot be had, configured, started or trusted. Where the proxy itself said
/// something, its own words are kept.
#[derive(Debug, thiserror::Error)]
pub enum SutError {
    /// The program is not installed, or not where it was said to be.
    #[error("{program} was not found {searched}")]
    NotFound {
        /// Which proxy it is.
        kind: ProxyKind,
        /// Its name, or the path that was given.
        program: String,
        /// Where it was looked for.
        searched: String,
        /// How it is installed.
        install: &'static str,
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
    #[error("{} does not look like {}: `{words}`", program.display(), kind.title())]
    NotTheProgram {
        /// Which proxy it was to be.
        kind: ProxyKind,
        /// Its path.
        program: PathBuf,
        /// What it printed.
        words: String,
    },
    /// A file, folder or socket of weir's own could not be written, read or opened.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// `create`, `write`, `read`, `remove` or `open a socket for`.
        doing: &'static str,
        /// The path, or the socket's address.
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
    #[error("`{id}` is not a parameter of {} in the catalog", kind.title())]
    UnknownParameter {
        /// The proxy.
        kind: ProxyKind,
        /// The parameter's id.
        id: String,
    },
    /// A setting that is no part of a proxy's configuration, such as a kernel parameter.
    #[error("`{id}` is not a setting of the proxy's configuration")]
    NotOfProxy {
        /// Its id.
        id: String,
    },
    /// weir has no way to start it.
    #[error("weir does not start {}", kind.title())]
    NotStartable {
        /// The proxy.
        kind: ProxyKind,
    },
    /// The proxy cannot do what it is asked to.
    #[error("{} cannot {what}", kind.title())]
    Unable {
        /// The proxy.
        kind: ProxyKind,
        /// What was wanted, with the reason: `read its configuration again: …`.
        what: String,
    },
    /// The proxy's socket for administration does not answer as it should.
    #[error("{} does not answer `{asked}` on its administration socket: {source}", kind.title())]
    Admin {
        /// The proxy.
        kind: ProxyKind,
        /// What was asked.
        asked: String,
        /// What happened.
        source: io::Error,
    },
    /// What the proxy says of itself cannot be read.
    #[error("cannot read what {} reports about itself: {what}", kind.title())]
    Unreadable {
        /// The proxy.
        kind: ProxyKind,
        /// What was read, and what is wrong with it.
        what: String,
    },
    /// A configuration of the user's that cannot be understood or changed.
    #[error(transparent)]
    Own(#[from] ConfigurationError),
    /// What a proxy is to be started through is not there.
    #[error("launcher `{name}`: {what}")]
    Launcher {
        /// Its name in the study.
        name: String,
        /// What is missing.
        what: String,
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
    #[error("{} refuses the configuration {}:{}{}", kind.title(), file.display(), said(words), shown(change))]
    Refused {
        /// The proxy.
        kind: ProxyKind,
        /// The configuration that was written, or the user's that it is a copy of.
        file: PathBuf,
        /// What it said.
        words: String,
        /// What the arm changes in the user's configuration, where it is one: a diff, which may be
        /// empty.
        change: Option<String>,
    },
    /// The configuration that the proxy prints cannot be read back.
    #[error("cannot read back the configuration that nginx prints: {0}")]
    Syntax(#[from] SyntaxError),
    /// Somebody else listens at the proxy's address.
    #[error("{} cannot listen at {address}:{}", kind.title(), said(words))]
    PortTaken {
        /// The proxy.
        kind: ProxyKind,
        /// The address.
        address: SocketAddr,
        /// What it said.
        words: String,
    },
    /// The proxy ended before it listened.
    #[error("{} ended before it listened at {address} ({status}):{}", kind.title(), said(words))]
    NotStarted {
        /// The proxy.
        kind: ProxyKind,
        /// The address.
        address: SocketAddr,
        /// How it ended.
        status: String,
        /// What it said.
        words: String,
    },
    /// The proxy runs, but does not accept connections.
    #[error("{} does not accept connections at {address} after {seconds} s:{}", kind.title(), said(words))]
    NotListening {
        /// The proxy.
        kind: ProxyKind,
        /// The address.
        address: SocketAddr,
        /// How long it was waited for.
        seconds: u64,
        /// What it said.
        words: String,
    },
    /// A process of the proxy ended while it should have served.
    #[error("the {what} of {} at {address} (process {pid}) ended during the run:{}", kind.title(), said(words))]
    Died {
        /// The proxy.
        kind: ProxyKind,
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
            SutError::NotFound { install, .. } => {
                format!("install it: {install}; or name it under proxy.executable")
            }
            SutError::Spawn { .. } | SutError::NotTheProgram { .. } => {
                "name the proxy's executable under proxy.executable".to_owned()
            }
            SutError::Own(error) => return error.hint.clone(),
            SutError::NotReadable { path, .. } => format!(
                "set TMPDIR to a folder that everybody may enter, or run: chmod o+x {}",
                path.display()
            ),
            SutError::Refused {
                change: Some(change),
                ..
            } => {
                let lines = match change.is_empty() {
                    true => "your file",
                    false => "your file with this change",
                };
                format!(
                    "this is the proxy's own output about your configuration; line numbers are those of {lines}"
                )
            }
            SutError::Refused { kind, .. } => format!(
                "these are {}'s own output; change the setting that it names in the study",
                kind.title()
            ),
            SutError::PortTaken { address, .. } => format!(
                "another program listens there; `ss -ltnp 'sport = {}'` names it; stop it or choose another port",
                address.port()
            ),
            SutError::Died { .. } => {
                "`dmesg` shows whether the kernel killed it because memory ran out".to_owned()
            }
            _ => return None,
        };
        Some(hint)
    }

    /// Whether the study, or a file that it names, has to be changed: nothing else would help.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            SutError::Own(_)
                | SutError::Unable { .. }
                | SutError::Refused {
                    change: Some(_),
                    ..
                }
        )
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

/// A proxy's own words, on lines of their own.
fn said(words: &str) -> String {
    match words.trim_end() {
        "" => " it printed nothing".to_owned(),
        words => format!("\n{words}"),
    }
}

/// The change that a refusal is about.
fn shown(change: &Option<String>) -> String {
    let change = change.as_deref().filter(|change| !change.is_empty());
    change.map_or_else(String::new, |change| {
        format!("\nwith this change:\n{change}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_ended_without_a_word_is_said_so() {
        let died = |words: &str| {
            let address = SocketAddr::from(([127, 0, 0, 1], 80));
            SutError::Died {
                kind: ProxyKind::Caddy,
                what: "process",
                pid: 7,
                address,
                words: words.to_owned(),
            }
            .to_string()
        };
        assert!(died("\n").ends_with("ended during the run: it printed nothing"));
        assert!(died("a signal\n").ends_with("ended during the run:\na signal"));
    }
}
