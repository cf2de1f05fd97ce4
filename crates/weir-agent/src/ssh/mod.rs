//! Agents on hosts that ssh reaches.
//!
//! weir starts the system's own ssh, with the user's configuration, keys and ssh-agent. Whoever can type `ssh HOST` can
//! therefore have an agent there, and nobody else. ssh never prompts (`BatchMode`), detects a dead host by itself
//! (`ServerAliveInterval`), forwards nothing, and runs in a session of its own, so that Ctrl-C on the terminal does not
//! cut the connection before weir has put things back.
//!
//! The weir on the host is a copy of this executable, stored under the hash of its bytes (`script`). The first
//! connection copies it, later ones find it, and it is never confused with another version. The users' documentation is
//! `docs/places.md`.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::client::{Client, SILENCE, Served};
use crate::frame::FrameError;
use crate::hello::{self, Hello, HelloError};
use crate::patient::Patient;
use crate::sha256;

mod address;
mod error;
mod problem;
mod process;
mod script;
mod words;

pub use error::SshError;
pub use problem::{CopyProblem, Problem};
pub use process::{Limit, Session};

use address::Lookup;
use process::{Patient as PatientReader, Ran, Ssh};

/// Time limit for ssh to end by itself once its input has ended or its output made no sense.
const GRACE: Duration = Duration::from_secs(2);
/// Longest time that a slow name server may delay an agent that has already answered.
const LOOKUP: Duration = Duration::from_secs(2);

/// A host, as ssh knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshPlace {
    /// Host as typed after `ssh`: a name, an alias of the user's configuration, or `user@host`.
    pub host: String,
    /// Further arguments of ssh, such as `-p` and `2222`. They follow weir's own `-o` options, of which ssh takes the
    /// first.
    pub options: Vec<String>,
    /// Program of ssh; searched for in PATH if it has no slash.
    pub program: PathBuf,
    /// Path of a weir that is installed on the host and is run instead of a copy.
    pub remote: Option<PathBuf>,
}

impl SshPlace {
    /// Creates a place from a host alone; everything else comes from the user's configuration.
    pub fn new(host: impl Into<String>) -> SshPlace {
        SshPlace {
            host: host.into(),
            options: Vec::new(),
            program: PathBuf::from("ssh"),
            remote: None,
        }
    }

    /// Checks what can be checked without a connection.
    fn check(&self) -> Result<(), SshError> {
        // ssh hands the host on to commands of the user's configuration (`%h` in ssh_config(5)), where
        // such a word would be an option.
        if self.host.is_empty()
            || self.host.starts_with('-')
            || self.host.contains(|c: char| c.is_control() || c == ' ')
        {
            return Err(SshError::Host(self.host.clone()));
        }
        Ok(())
    }
}

/// An agent that has sent its greeting.
///
/// Dropping it ends the agent: first the agent's input is closed, which the agent notices, then ssh ends.
#[derive(Debug)]
pub struct Connected {
    /// Output of the agent.
    pub reader: ChildStdout,
    /// Input of the agent. When it is closed, the agent puts everything back and ends.
    pub writer: ChildStdin,
    /// The ssh process. Declared after the other two, so that it is dropped after them.
    pub session: Session,
    /// The agent's greeting.
    pub hello: Hello,
    /// Address of the host, by ssh's `HostName` and this machine's name service. Load can be sent to it unless ssh uses
    /// a `ProxyJump`. `None`: this machine cannot resolve the name.
    pub address: Option<IpAddr>,
}

/// Returns a client for an agent on another host. `place` is the agent's name in errors.
pub fn client(place: &str, connected: Connected) -> Client {
    let Connected { reader, writer, session, hello, .. } = connected;
    let server = Box::new(SshProcess(session));
    // A line that takes nothing for as long as an agent may be silent is cut.
    let writer = Patient::new(writer, |waited| waited < SILENCE);
    Client::over(place, hello, reader, writer, server).distant()
}

/// The ssh process of an agent.
struct SshProcess(Session);

impl Served for SshProcess {
    fn end(mut self: Box<Self>, at_most: Duration) {
        self.0.end(at_most);
    }

    fn words(&self) -> String {
        self.0.last_words()
    }
}

/// Starts an agent on a host; copies this executable there when the host does not have it.
///
/// `weir` is the executable to copy (`/proc/self/exe` is right even when the file has been replaced
/// since), `version` what the greeting says, `limit` the time for everything together.
///
/// # Errors
/// See [`SshError`]. ssh has ended by then, and nothing runs on the host on our account but what is
/// about to notice that its input has ended.
pub fn connect<'a>(
    place: &SshPlace,
    weir: &Path,
    version: &str,
    limit: impl Into<Limit<'a>>,
) -> Result<Connected, SshError> {
    place.check()?;
    let ssh = Ssh::new(place, limit.into());
    let address = Lookup::begin(&ssh)?;
    let connected = match &place.remote {
        Some(path) => installed(&ssh, path, version)?,
        None => copied(&ssh, weir, version)?,
    };
    let patience = LOOKUP.min(ssh.left());
    Ok(Connected { address: address.wait(patience), ..connected })
}

fn installed(ssh: &Ssh<'_>, path: &Path, version: &str) -> Result<Connected, SshError> {
    let start = script::start_installed(path)?;
    let program = format!("`{}`", path.display());
    attempt(ssh, &start, version)?.map_err(|unanswered| unanswered.why(ssh, program))
}

fn copied(ssh: &Ssh<'_>, weir: &Path, version: &str) -> Result<Connected, SshError> {
    let unreadable = |source| SshError::Executable { path: weir.to_owned(), source };
    let (hash, size) = hash(weir).map_err(unreadable)?;
    let start = script::start_copy(&hash);
    let unanswered = match attempt(ssh, &start, version)? {
        Ok(connected) => return Ok(connected),
        Err(unanswered) => unanswered,
    };
    let program = "the copy of weir".to_owned();
    let Some(machine) = unanswered.machine_without_copy() else {
        return Err(unanswered.why(ssh, program));
    };
    same_machine(ssh, &machine)?;
    let file = File::open(weir).map_err(unreadable)?;
    copy(ssh, file, &script::copy(&hash, size))?;
    attempt(ssh, &start, version)?.map_err(|again| match again.machine_without_copy() {
        None => again.why(ssh, program),
        Some(_) => SshError::Copy {
            host: ssh.host().to_owned(),
            problem: CopyProblem::Vanished,
            words: String::new(),
        },
    })
}

/// Returns the SHA-256 of a file in hexadecimal digits, and its length in bytes.
fn hash(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut size = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => {
                hasher.update(&buffer[..length]);
                size += length as u64;
            }
        }
    }
    Ok((sha256::digits(hasher), size))
}

/// Checks that the host is the same kind of machine (uname(1), `-s` and `-m`), since a copy of this executable runs on
/// no other.
fn same_machine(ssh: &Ssh<'_>, theirs: &str) -> Result<(), SshError> {
    let name = rustix::system::uname();
    let ours = [name.sysname(), name.machine()].map(std::ffi::CStr::to_string_lossy).join(" ");
    if theirs == ours {
        return Ok(());
    }
    Err(SshError::Machine { host: ssh.host().to_owned(), theirs: theirs.to_owned(), ours })
}

/// Starts an agent and reads its greeting.
fn attempt(
    ssh: &Ssh<'_>,
    command: &str,
    version: &str,
) -> Result<Result<Connected, Unanswered>, SshError> {
    let (mut reader, mut writer, mut session) = ssh.spawn(command)?;
    let mut patient = PatientReader::new(&mut reader, ssh.until);
    let error = match hello::greet(&mut patient, &mut writer, version) {
        Ok(hello) => {
            return Ok(Ok(Connected { reader, writer, session, hello, address: None }));
        }
        Err(error) => error,
    };
    drop(writer);
    // What it printed can only be understood whole, and what prints it must come to its end.
    let noise = patient.rest(GRACE.min(ssh.left()));
    session.end(GRACE.min(ssh.left()));
    Ok(Err(Unanswered { session, error, noise }))
}

/// An ssh process that has ended without a greeting from an agent.
struct Unanswered {
    session: Session,
    error: HelloError,
    /// Beginning of the output that came instead.
    noise: Vec<u8>,
}

impl Unanswered {
    /// Returns the kind of the host's machine if the host has no copy of this weir; `None` if there was another reason.
    fn machine_without_copy(&self) -> Option<String> {
        (self.session.exit_code() == Some(script::ABSENT))
            .then(|| script::machine(&self.session.words()))
            .flatten()
    }

    /// Returns the reason why no valid greeting came. `what` names the program that was to be the agent.
    fn why(mut self, ssh: &Ssh<'_>, what: String) -> SshError {
        let host = ssh.host().to_owned();
        let words = self.session.words();
        match (&self.error, self.session.exit_code()) {
            (HelloError::Frame(FrameError::Io(error)), _)
                if error.kind() == io::ErrorKind::TimedOut =>
            {
                ssh.overdue(words)
            }
            (HelloError::Version { .. }, _) => SshError::Greeting { host, source: self.error },
            (_, Some(126 | 127)) => SshError::CannotRun { host, what, words },
            (HelloError::Silent | HelloError::Frame(FrameError::Io(_)), code)
                if self.noise.is_empty() || code == Some(error::OWN_FAILURE) =>
            {
                self.session.lost()
            }
            (_, _) => SshError::Noise {
                host,
                first: words::printable(&self.noise).trim().to_owned(),
                source: self.error,
            },
        }
    }
}

/// Copies the executable to the host. ssh reads the file itself, and compresses it on the way.
fn copy(ssh: &Ssh<'_>, file: File, command: &str) -> Result<(), SshError> {
    let Ran { status, words, .. } = ssh.run(ssh.compressed(command), Stdio::from(file))?;
    let problem = match status.code() {
        Some(0) => return Ok(()),
        Some(script::UNWRITABLE) => CopyProblem::of_write(&words),
        Some(script::GARBLED) => CopyProblem::Garbled,
        Some(script::UNUSABLE) => CopyProblem::Unusable,
        _ => return Err(error::ended(ssh.host(), ssh.typed(), Some(status), words)),
    };
    Err(SshError::Copy { host: ssh.host().to_owned(), problem, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_would_take_for_an_option_is_no_host() {
        for host in ["", "-oProxyCommand=id", "a b", "a\nb"] {
            let error =
                connect(&SshPlace::new(host), Path::new("/bin/true"), "1", Duration::from_secs(5));
            assert!(matches!(error, Err(SshError::Host(_))), "{host}");
        }
    }

    #[test]
    fn a_hash_is_the_one_that_sha256sum_prints() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        // FIPS 180-4, the example of one block.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(file.path()).unwrap(), (expected.to_owned(), 3));
    }
}
