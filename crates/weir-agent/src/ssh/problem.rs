//! What hinders ssh or a copy, read from what the programs say.

use std::fmt;

use super::error::last_line;

/// What hindered ssh, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// It would have had to ask for a password or a passphrase, or no key is good.
    Denied,
    /// The host's key is not known yet.
    UnknownKey,
    /// The host has another key than it had.
    ChangedKey,
    /// There is no such name.
    Unresolved,
    /// Nobody listens there.
    Refused,
    /// There is no way there.
    Unreachable,
    /// It does not answer.
    TimedOut,
    /// It was there and is gone.
    Lost,
    /// Something else.
    Other,
}

/// What ssh(1) writes, and what it means; the first that is found counts. ssh is not translated, and
/// asks the system for its messages without a locale.
const SIGNS: [(&str, Problem); 17] = [
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        Problem::ChangedKey,
    ),
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
    /// Reads it from what ssh wrote.
    pub(super) fn of(words: &str) -> Problem {
        let sign = SIGNS.iter().find(|(sign, _)| words.contains(sign));
        sign.map_or(Problem::Other, |&(_, problem)| problem)
    }

    /// The line that says so; the last one where none does.
    pub(super) fn line(self, words: &str) -> &str {
        let says = |line: &&str| {
            SIGNS
                .iter()
                .any(|&(sign, problem)| problem == self && line.contains(sign))
        };
        words
            .lines()
            .rfind(says)
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

/// Why weir could not be copied to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyProblem {
    /// No space, or no quota.
    Full,
    /// It cannot be written there.
    Unwritable,
    /// Other bytes arrived than were sent.
    Garbled,
    /// It does not run there: mounted `noexec`, or an older C library.
    Unusable,
    /// It was gone when it was to be run.
    Vanished,
}

impl CopyProblem {
    /// Why a write failed, by what the host's tools say.
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

/// The command with which Debian's ssh says an old key is forgotten, file and port included.
fn removal(words: &str) -> Option<String> {
    let line = words.lines().map(str::trim);
    let mut removals = line.filter(|line| line.starts_with("ssh-keygen -f"));
    removals.next().map(str::to_owned)
}

/// The host without its user.
fn bare(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}
