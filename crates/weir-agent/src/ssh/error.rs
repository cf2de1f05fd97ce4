//! Errors of reaching an agent over ssh, with advice.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::problem::{CopyProblem, Problem};
use crate::hello::HelloError;

/// Exit code of ssh if ssh itself fails, not the remote command (ssh(1), EXIT STATUS).
pub(super) const OWN_FAILURE: i32 = 255;

/// Reason why there is no agent on a host, or no longer one.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// The host name would mean something else to ssh.
    #[error("`{0}` is not a host as ssh takes it: a name, an alias, or user@host")]
    Host(String),
    /// The path would mean something else to the host's shell.
    #[error(
        "`{}` cannot be named to the host's shell: it begins with `-`, or has a quote, a backslash, \
         or one of $ ! in it",
        .0.display()
    )]
    RemotePath(PathBuf),
    /// weir's own executable cannot be read, and therefore not be copied.
    #[error("cannot read weir's own executable {}: {source}", path.display())]
    Executable {
        /// Path of the executable.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// ssh cannot be started, or its pipes cannot be used.
    #[error("cannot start {}: {source}", program.display())]
    Program {
        /// Program that was to be started as ssh.
        program: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// ssh refuses its configuration or its options.
    #[error("ssh refuses its options or its configuration for {host}: {}", last_line(words))]
    Configuration {
        /// The host.
        host: String,
        /// Output of ssh on standard error.
        words: String,
    },
    /// ssh could not connect, or the connection was lost.
    #[error("{host}: {problem}{}", in_brackets(problem.line(words)))]
    Connection {
        /// The host.
        host: String,
        /// Command that a user would type to reach the host.
        typed: String,
        /// Kind of problem.
        problem: Problem,
        /// Output of ssh on standard error.
        words: String,
    },
    /// Somebody asked for an end.
    #[error("interrupted before there was an agent on {0}")]
    Interrupted(String),
    /// The connection took too long.
    #[error("{host}: no agent within {} s{}", at_most.as_secs(), in_brackets(last_line(words)))]
    Overdue {
        /// The host.
        host: String,
        /// Command that a user would type to reach the host.
        typed: String,
        /// Time limit that was exceeded.
        at_most: Duration,
        /// Output of ssh on standard error.
        words: String,
    },
    /// The host is another kind of machine, so this executable cannot run there.
    #[error(
        "{host} is another kind of machine ({theirs}) than this one ({ours}), so this weir cannot be \
         copied there"
    )]
    Machine {
        /// The host.
        host: String,
        /// Kind of the host, as uname(1) prints it.
        theirs: String,
        /// Kind of this machine.
        ours: String,
    },
    /// weir could not be copied to the host.
    #[error("{host}: {problem}{}", in_brackets(last_line(words)))]
    Copy {
        /// The host.
        host: String,
        /// Reason of the failure.
        problem: CopyProblem,
        /// Output of the host on standard error.
        words: String,
    },
    /// The agent's program cannot be run on the host.
    #[error("{host}: {what} cannot be run there{}", in_brackets(last_line(words)))]
    CannotRun {
        /// The host.
        host: String,
        /// Program that was to be run.
        what: String,
        /// Output of the host on standard error.
        words: String,
    },
    /// Something else was received before the agent's greeting, or instead of it.
    #[error("{host} sent `{}` where an agent says hello", first_line(first))]
    Noise {
        /// The host.
        host: String,
        /// Beginning of what was received.
        first: String,
        /// Reason why it is not a greeting.
        source: HelloError,
    },
    /// The agent has another version of the protocol.
    #[error("{host}: {source}")]
    Greeting {
        /// The host.
        host: String,
        /// Mismatch between the two.
        source: HelloError,
    },
    /// The agent, or ssh, has ended.
    #[error("{host}: the agent ended ({how}){}", in_brackets(last_line(words)))]
    Ended {
        /// The host.
        host: String,
        /// Exit code or signal of the end.
        how: String,
        /// Last output on standard error.
        words: String,
    },
}

impl SshError {
    /// Returns true if the user's input must change (the host, the way to it, or what is installed there), as opposed
    /// to a host or a connection that fails.
    pub fn is_input(&self) -> bool {
        match self {
            SshError::Host(_)
            | SshError::RemotePath(_)
            | SshError::Configuration { .. }
            | SshError::Machine { .. }
            | SshError::CannotRun { .. }
            | SshError::Noise { .. }
            | SshError::Greeting { .. } => true,
            // Not let in, or not there: the same now as in a minute.
            SshError::Connection { problem, .. } => {
                !matches!(problem, Problem::Lost | Problem::Other)
            }
            _ => false,
        }
    }

    /// Returns advice on what to do about the error; `None` if there is none.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            SshError::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "install OpenSSH's client (Debian: apt-get install openssh-client)".to_owned()
            }
            SshError::Connection {
                host,
                typed,
                problem,
                words,
            } => problem.hint(host, typed, words),
            SshError::Overdue { typed, .. } => {
                format!("see how long this takes: {typed} true")
            }
            SshError::Machine { .. } => {
                "install weir of this version there, and name it: --agent PATH".to_owned()
            }
            SshError::Copy { problem, .. } => problem.hint().to_owned(),
            SshError::CannotRun { .. } => {
                "install weir of this version there, and name it: --agent PATH; the account's login \
                 shell must be able to run `sh -c`"
                    .to_owned()
            }
            SshError::Noise { .. } => {
                "something on the host writes to standard output before the agent does, most often a \
                 line in ~/.bashrc or ~/.zshenv: let it write in interactive shells only. An account without a login shell has the same effect"
                    .to_owned()
            }
            SshError::Greeting {
                source: HelloError::Version { .. },
                ..
            } => "install the same version of weir there, or leave out --agent: weir then copies \
                  itself"
                .to_owned(),
            _ => return None,
        };
        Some(hint)
    }
}

/// Converts the unexpected end of an ssh process to an error.
pub(super) fn ended(
    host: &str,
    typed: &str,
    status: Option<ExitStatus>,
    words: String,
) -> SshError {
    if status.and_then(|status| status.code()) == Some(OWN_FAILURE) {
        return SshError::Connection {
            host: host.to_owned(),
            typed: typed.to_owned(),
            problem: Problem::of(&words),
            words,
        };
    }
    let how = status.map_or_else(|| "it did not end by itself".to_owned(), |s| s.to_string());
    SshError::Ended { host: host.to_owned(), how, words }
}

fn first_line(words: &str) -> &str {
    words.lines().next().unwrap_or_default()
}

pub(super) fn last_line(words: &str) -> &str {
    words.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default()
}

fn in_brackets(words: &str) -> String {
    match words {
        "" => String::new(),
        words => format!(" ({words})"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn failed(words: &str) -> SshError {
        let status = ExitStatus::from_raw(OWN_FAILURE << 8);
        ended("root@web", "ssh -p 2222 root@web", Some(status), words.to_owned())
    }

    /// Messages as OpenSSH 9.2 writes them.
    #[test]
    fn the_words_of_ssh_are_understood() {
        let rows = [
            ("root@web: Permission denied (publickey).", Problem::Denied),
            (
                "No ED25519 host key is rows for web and you have requested strict checking.\n\
                 Host key verification failed.",
                Problem::UnknownKey,
            ),
            (
                "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n\
                 Host key verification failed.",
                Problem::ChangedKey,
            ),
            ("ssh: Could not resolve hostname web: Name or service not known", Problem::Unresolved),
            ("ssh: connect to host web port 22: Connection refused", Problem::Refused),
            ("ssh: connect to host web port 22: No route to host", Problem::Unreachable),
            ("ssh: connect to host web port 22: Connection timed out", Problem::TimedOut),
            ("Connection timed out during banner exchange", Problem::TimedOut),
            ("Timeout, server web not responding.", Problem::Lost),
            ("Connection to web closed by remote host.", Problem::Lost),
            ("kex_exchange_identification: read: Connection reset by peer", Problem::Lost),
            ("something new", Problem::Other),
            ("", Problem::Other),
        ];
        for (words, expected) in rows {
            let error = failed(&format!("Warning: a banner\n{words}\n"));
            assert!(
                matches!(error, SshError::Connection { problem, .. } if problem == expected),
                "{words}: {error}"
            );
            let last = words.lines().next_back().unwrap_or("a banner");
            let text = error.to_string();
            assert!(text.contains(last) || expected == Problem::ChangedKey, "{text}");
            assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
        }
    }

    #[test]
    fn a_hint_can_be_typed() {
        let hint = failed("root@web: Permission denied (publickey).").hint().unwrap();
        assert!(hint.ends_with("ssh -p 2222 root@web true"), "{hint}");
        let changed = "REMOTE HOST IDENTIFICATION HAS CHANGED";
        let hint = failed(changed).hint().unwrap();
        assert!(hint.ends_with("ssh-keygen -R web"), "{hint}");
        let debians = "  ssh-keygen -f \"/home/u/.ssh/known_hosts\" -R \"[web]:2222\"";
        let hint = failed(&format!("{changed}\n{debians}")).hint().unwrap();
        assert!(hint.ends_with(debians.trim()), "{hint}");
    }

    #[test]
    fn what_the_agent_exits_with_is_not_ssh_failing() {
        let status = ExitStatus::from_raw(1 << 8);
        let error = ended("web", "ssh web", Some(status), "weir: out of memory".to_owned());
        assert_eq!(
            error.to_string(),
            "web: the agent ended (exit status: 1) (weir: out of memory)"
        );
    }
}
