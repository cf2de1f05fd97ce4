//! Errors of handling a proxy, with hints on what to do about them.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use weir_model::study::ProxyKind;
use weir_probe::ProbeError;

use weir_configuration::ConfigurationError;

/// Error of finding, configuring, starting or checking a proxy. If the proxy itself gave a message, its wording is
/// kept.
#[derive(Debug, thiserror::Error)]
pub enum SutError {
    /// The program is not installed, or not at the given path.
    #[error("{program} was not found {searched}")]
    NotFound {
        /// Kind of the proxy.
        kind: ProxyKind,
        /// Name of the program, or the path that was given.
        program: String,
        /// Description of the places that were searched.
        searched: String,
        /// Command that installs the program.
        install: &'static str,
    },
    /// The program could not be started, or did not answer in time.
    #[error("cannot run {}: {source}", program.display())]
    Spawn {
        /// Path of the program.
        program: PathBuf,
        /// Error from the kernel.
        source: io::Error,
    },
    /// The program's answer is not that of the expected proxy.
    #[error("{} does not look like {}: `{words}`", program.display(), kind.title())]
    NotTheProgram {
        /// Kind of the proxy that was expected.
        kind: ProxyKind,
        /// Path of the program.
        program: PathBuf,
        /// First line that the program printed.
        words: String,
    },
    /// A file, folder or socket of weir's own could not be written, read or opened.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// Action that was attempted: `create`, `write`, `read`, `remove` or `open a socket for`.
        doing: &'static str,
        /// The path, or the socket's address.
        path: PathBuf,
        /// Error from the kernel.
        source: io::Error,
    },
    /// No file can be made in the folder for temporary files.
    #[error("cannot make files in `{}`, {}: {source}", path.display(), folder_origin())]
    TemporaryFolder {
        /// The folder.
        path: PathBuf,
        /// Error from the kernel.
        source: io::Error,
    },
    /// The proxy's workers run as another user, who cannot reach the files meant for them.
    #[error("{} cannot be entered by {user}, as whom the proxy's workers run", path.display())]
    NotReadable {
        /// Folder that the workers' user cannot enter.
        path: PathBuf,
        /// User that the workers run as.
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
    /// A setting is not part of a proxy's configuration, such as a kernel parameter.
    #[error("`{id}` is not a setting of the proxy's configuration")]
    NotOfProxy {
        /// Id of the setting.
        id: String,
    },
    /// weir has no way to start the proxy.
    #[error("weir does not start {}", kind.title())]
    NotStartable {
        /// The proxy.
        kind: ProxyKind,
    },
    /// The proxy does not have a function that is needed.
    #[error("{} cannot {what}", kind.title())]
    Unable {
        /// The proxy.
        kind: ProxyKind,
        /// Missing function and reason, as in "the proxy cannot {what}": `read its configuration again: …`.
        what: String,
    },
    /// The proxy's administration socket does not answer as it should.
    #[error("{} does not answer `{asked}` on its administration socket: {source}", kind.title())]
    Admin {
        /// The proxy.
        kind: ProxyKind,
        /// Line or target of the request.
        asked: String,
        /// Error of the request.
        source: io::Error,
    },
    /// The proxy's report about itself cannot be read.
    #[error("cannot read what {} reports about itself: {what}", kind.title())]
    Unreadable {
        /// The proxy.
        kind: ProxyKind,
        /// Name of the report, and description of the error in it.
        what: String,
    },
    /// The user's configuration cannot be understood or changed.
    #[error(transparent)]
    UserConfiguration(#[from] ConfigurationError),
    /// A part of the launcher through which a proxy is to be started is missing.
    #[error("launcher `{name}`: {what}")]
    Launcher {
        /// Name of the launcher in the study.
        name: String,
        /// Description of the missing part.
        what: String,
    },
    /// A reverse proxy is to be set up without an origin server.
    #[error("a reverse proxy needs the address of an origin server")]
    NoOrigin,
    /// The certificate for the proxies' TLS listeners cannot be made.
    #[error("cannot make a certificate for `{name}`: {words}")]
    Certificate {
        /// Hosts that the certificate was to be for.
        name: String,
        /// Error message of the library.
        words: String,
    },
    /// The proxy does not accept the configuration.
    #[error("{} refuses the configuration {}:{}{}", kind.title(), file.display(), output_lines(words), change_lines(change))]
    Refused {
        /// The proxy.
        kind: ProxyKind,
        /// Path of the configuration that was written, or of the user's file that it is a copy of.
        file: PathBuf,
        /// Message of the proxy.
        words: String,
        /// Diff of the arm's changes to the user's configuration, which may be empty. None if weir wrote the
        /// configuration.
        change: Option<String>,
    },
    /// The configuration that the proxy prints cannot be read back.
    #[error("cannot read back the configuration that {} prints: {words}", kind.title())]
    NotReadBack {
        /// Kind of the proxy.
        kind: ProxyKind,
        /// Description of what is wrong with it.
        words: String,
    },
    /// Another program listens at the proxy's address.
    #[error("{} cannot listen at {address}:{}", kind.title(), output_lines(words))]
    PortTaken {
        /// The proxy.
        kind: ProxyKind,
        /// The address.
        address: SocketAddr,
        /// Message of the proxy.
        words: String,
    },
    /// The proxy ended before it listened.
    #[error("{} ended before it listened at {address} ({status}):{}", kind.title(), output_lines(words))]
    NotStarted {
        /// The proxy.
        kind: ProxyKind,
        /// The address.
        address: SocketAddr,
        /// Exit status of the proxy.
        status: String,
        /// Message of the proxy.
        words: String,
    },
    /// The proxy runs, but does not accept connections.
    #[error("{} does not accept connections at {address} after {seconds} s:{}", kind.title(), output_lines(words))]
    NotListening {
        /// The proxy.
        kind: ProxyKind,
        /// The address.
        address: SocketAddr,
        /// Time waited for the proxy, seconds.
        seconds: u64,
        /// Message of the proxy.
        words: String,
    },
    /// A process of the proxy ended although it should have served.
    #[error("the {what} of {} at {address} (process {pid}) ended during the run:{}", kind.title(), output_lines(words))]
    Died {
        /// The proxy.
        kind: ProxyKind,
        /// Role of the process: `master process` or `worker process`.
        what: &'static str,
        /// Number of the process that ended.
        pid: u32,
        /// The proxy's address.
        address: SocketAddr,
        /// Last lines of the proxy's error log.
        words: String,
    },
    /// There are not enough free ports for the arms.
    #[error("no free port was found at {address} in {tries} tries")]
    NoFreePort {
        /// IP address on which ports were tried.
        address: std::net::IpAddr,
        /// Number of ports that were tried.
        tries: u32,
    },
    /// A counter of the kernel could not be read.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

/// Returns a description of where the name of the folder for temporary files comes from.
fn folder_origin() -> &'static str {
    match std::env::var_os("TMPDIR") {
        Some(_) => "which TMPDIR names for temporary files",
        None => "the folder for temporary files without TMPDIR",
    }
}

impl SutError {
    /// Returns advice on what to do about the error, as a sentence for a line of its own; `None` if the error is clear
    /// by itself.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            SutError::NotFound { install, .. } => {
                format!("install it: {install}; or name it under proxy.executable")
            }
            SutError::Spawn { .. } | SutError::NotTheProgram { .. } => {
                "name the proxy's executable under proxy.executable".to_owned()
            }
            SutError::UserConfiguration(error) => return error.hint.clone(),
            SutError::TemporaryFolder { .. } => {
                "set TMPDIR to a folder in which you can make files".to_owned()
            }
            SutError::NotReadable { path, .. } => format!(
                "set TMPDIR to a folder that everybody may enter, or run: chmod o+x {}",
                path.display()
            ),
            SutError::Refused { change: Some(change), .. } => {
                let lines =
                    if change.is_empty() { "your file" } else { "your file with this change" };
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

    /// Returns true if only a change to the study, or to a file that it names, can help.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            SutError::UserConfiguration(_)
                | SutError::Unable { .. }
                | SutError::TemporaryFolder { .. }
                | SutError::Refused { change: Some(_), .. }
        )
    }

    /// Wraps the kernel's error about a file of weir's own.
    pub fn file(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> SutError {
        let owned_path = path.as_ref().to_owned();
        move |source| SutError::File { doing, path: owned_path, source }
    }
}

/// Formats a proxy's own words on lines of their own.
fn output_lines(words: &str) -> String {
    match words.trim_end() {
        "" => " it printed nothing".to_owned(),
        words => format!("\n{words}"),
    }
}

/// Formats the change that a refusal is about.
fn change_lines(change: &Option<String>) -> String {
    change
        .as_deref()
        .filter(|change| !change.is_empty())
        .map_or_else(String::new, |change| format!("\nwith this change:\n{change}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_ended_without_a_word_is_said_so() {
        assert!(death_with("\n").ends_with("ended during the run: it printed nothing"));
        assert!(death_with("a signal\n").ends_with("ended during the run:\na signal"));
    }

    fn death_with(words: &str) -> String {
        SutError::Died {
            kind: ProxyKind::Caddy,
            what: "process",
            pid: 7,
            address: SocketAddr::from(([127, 0, 0, 1], 80)),
            words: words.to_owned(),
        }
        .to_string()
    }
}
