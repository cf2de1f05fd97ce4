//! Reasons why ssh or a copy failed, recognized from the programs' messages.

use std::fmt;

use super::error::last_line;

/// Reason why ssh failed, as far as its messages tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// ssh would have had to prompt for a password or a passphrase, or no key is accepted.
    Denied,
    /// The host's key is not known yet.
    UnknownKey,
    /// The host's key differs from the known one.
    ChangedKey,
    /// The host name cannot be resolved.
    Unresolved,
    /// The host refuses connections to this port.
    Refused,
    /// There is no route to the host.
    Unreachable,
    /// The host does not answer.
    TimedOut,
    /// The connection was lost.
    Lost,
    /// Any other reason.
    Other,
}

/// Messages of ssh(1) and their meaning; the first match counts. ssh is not translated, and takes the system's messages
/// without a locale.
const SIGNS: [(&str, Problem); 17] = [
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", Problem::ChangedKey),
    ("Host key verification failed", Problem::UnknownKey),
    ("Permission denied (", Problem::Denied),
    ("Too many authentication failures", Problem::Denied),
    ("Could not resolve hostname", Problem::Unresolved),
    ("Connection refused", Problem::Refused),
    ("No route to host", Problem::Unreachable),
    ("Network is unreachable", Problem::Unreachable),
    ("Connection timed out", Problem::TimedOut),
    ("Operation timed out", Problem::TimedOut),
    ("not responding", Problem::Lost),
    ("Connection closed", Problem::Lost),
    ("closed by remote host", Problem::Lost),
    ("Connection reset", Problem::Lost),
    ("Broken pipe", Problem::Lost),
    ("Software caused connection abort", Problem::Lost),
    ("client_loop: send disconnect", Problem::Lost),
];

impl Problem {
    /// Recognizes the problem from ssh's messages.
    pub(super) fn of(words: &str) -> Problem {
        let sign = SIGNS.iter().find(|(sign, _)| words.contains(sign));
        sign.map_or(Problem::Other, |&(_, problem)| problem)
    }

    /// Returns the line that shows the problem, or the last line if no line does.
    pub(super) fn line(self, words: &str) -> &str {
        words
            .lines()
            .rfind(|line| {
                SIGNS.iter().any(|&(sign, problem)| problem == self && line.contains(sign))
            })
            .map_or_else(|| last_line(words), str::trim)
    }

    pub(super) fn hint(self, host: &str, typed: &str, words: &str) -> String {
        match self {
            Problem::Denied => format!(
                "weir allows ssh no prompts. Make this work without a prompt first, with a key in \
                 ~/.ssh or in ssh-agent: {typed} true"
            ),
            Problem::UnknownKey => {
                format!("connect once by hand and compare the fingerprint: {typed} true")
            }
            Problem::ChangedKey => format!(
                "find out why before you trust it; then forget the old key: {}",
                removal(words).unwrap_or_else(|| format!("ssh-keygen -R {}", bare(host)))
            ),
            Problem::Unresolved => {
                "is the name right, and is it an alias of another ssh configuration?".to_owned()
            }
            Problem::Refused => format!("does sshd run there, on this port? {typed} true"),
            Problem::Unreachable | Problem::TimedOut => {
                format!("is it up, and does a firewall let ssh through? {typed} true")
            }
            Problem::Lost => format!(
                "check the host; its agent restores what weir changed there, or do it with: weir \
                 restore --host {host}"
            ),
            Problem::Other => format!("try it by hand: {typed} -v true"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Problem::Denied => "ssh cannot log in without a prompt",
            Problem::UnknownKey => "its host key is not known",
            Problem::ChangedKey => "its host key has changed",
            Problem::Unresolved => "ssh knows no such host",
            Problem::Refused => "ssh gets no answer there",
            Problem::Unreachable => "there is no route to this host",
            Problem::TimedOut => "it does not answer",
            Problem::Lost => "the connection was lost",
            Problem::Other => "ssh failed",
        })
    }
}

/// Reason why weir could not be copied to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyProblem {
    /// No space is left, or a quota is exceeded.
    Full,
    /// The file cannot be written.
    Unwritable,
    /// The received bytes differ from those sent.
    Garbled,
    /// The copy does not run there: the file system is mounted `noexec`, or the C library is too old.
    Unusable,
    /// The copy was gone when it was to be run.
    Vanished,
}

impl CopyProblem {
    /// Recognizes why a write failed, from the messages of the host's tools.
    pub(super) fn of_write(words: &str) -> CopyProblem {
        if ["No space left", "Disk quota exceeded", "Disc quota"]
            .iter()
            .any(|sign| words.contains(sign))
        {
            CopyProblem::Full
        } else {
            CopyProblem::Unwritable
        }
    }

    pub(super) fn hint(self) -> &'static str {
        match self {
            CopyProblem::Full => "make room there, or install weir there and name it: --agent PATH",
            CopyProblem::Unwritable | CopyProblem::Vanished => {
                "weir keeps its copy in ~/.cache/weir/agent; or install weir there and name it: --agent \
                 PATH"
            }
            CopyProblem::Garbled => {
                "try again; if it stays so, copy weir there by hand: --agent PATH"
            }
            CopyProblem::Unusable => {
                "is the home mounted noexec, or its C library older than the one weir was built with? \
                 Install weir there and name it: --agent PATH"
            }
        }
    }
}

impl fmt::Display for CopyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CopyProblem::Full => "no room for a copy of weir",
            CopyProblem::Unwritable => "a copy of weir cannot be written",
            CopyProblem::Garbled => "the copy of weir was damaged on its way",
            CopyProblem::Unusable => "the copy of weir does not run there",
            CopyProblem::Vanished => "the copy of weir was gone before it could be run",
        })
    }
}

/// Returns the command that Debian's ssh suggests for forgetting an old key, with file and port.
fn removal(words: &str) -> Option<String> {
    let line = words.lines().map(str::trim);
    let mut removals = line.filter(|line| line.starts_with("ssh-keygen -f"));
    removals.next().map(str::to_owned)
}

/// Returns the host without its user.
fn bare(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}
