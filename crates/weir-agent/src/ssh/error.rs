//! Why there is no agent on a host, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::problem::{CopyProblem, Problem};
use crate::hello::HelloError;

/// Exit code of ssh when the failure is its own and not the command's (ssh(1), EXIT STATUS).
pub(super) const OWN_FAILURE: i32 = 255;

/// Why there is no agent on a host, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// ssh would take it for something else.
    #[error("`{0}` is not a host as ssh takes it: a name, an alias, or user@host")]
    Host(String),
    /// The host's shell would take it for something else.
    #[error(
        "`{}` cannot be named to the host's shell: it begins with `-`, or has a quote, a backslash, \
         or one of $ ! in it",
        .0.display()
    )]
    RemotePath(PathBuf),
    /// weir's own executable cannot be read, so it cannot be copied.
    #[error("cannot read weir's own executable {}: {source}", path.display())]
    Executable {
        /// The executable.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// ssh cannot be started or talked to.
    #[error("cannot start {}: {source}", program.display())]
    Program {
        /// What was to be ssh.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// ssh does not understand its configuration or the options it was given.
    #[error(
        "ssh refuses its options or its configuration for {host}: {}",
        last_line(words)
    )]
    Configuration {
        /// The host.
        host: String,
        /// What ssh says.
        words: String,
    },
    /// ssh did not get there, or the line was cut.
    #[error("{host}: {problem}{}", in_brackets(problem.line(words)))]
    Connection {
        /// The host.
        host: String,
        /// What one would type to reach it.
        typed: String,
        /// Of which kind.
        problem: Problem,
        /// What ssh says.
        words: String,
    },
    /// Somebody asked for an end.
    #[error("interrupted before there was an agent on {0}")]
    Interrupted(String),
    /// It took too long.
    #[error("{host}: no agent within {} s{}", at_most.as_secs(), in_brackets(last_line(words)))]
    Overdue {
        /// The host.
        host: String,
        /// What one would type to reach it.
        typed: String,
        /// How long was waited.
        at_most: Duration,
        /// What ssh says.
        words: String,
    },
    /// This executable cannot run there.
    #[error(
        "{host} is another kind of machine ({theirs}) than this one ({ours}), so this weir cannot be \
         copied there"
    )]
    Machine {
        /// The host.
        host: String,
        /// Its kind, as uname(1) has it.
        theirs: String,
        /// The kind of this machine.
        ours: String,
    },
    /// weir could not be copied there.
    #[error("{host}: {problem}{}", in_brackets(last_line(words)))]
    Copy {
        /// The host.
        host: String,
        /// Why.
        problem: CopyProblem,
        /// What the host says.
        words: String,
    },
    /// What was to be the agent cannot be run.
    #[error("{host}: {what} cannot be run there{}", in_brackets(last_line(words)))]
    CannotRun {
        /// The host.
        host: String,
        /// What was to be run.
        what: String,
        /// What the host says.
        words: String,
    },
    /// Something else has spoken before the agent, or instead of it.
    #[error("{host} sent `{}` where an agent says hello", first_line(first))]
    Noise {
        /// The host.
        host: String,
        /// The beginning of what came.
        first: String,
        /// What was wrong with it.
        source: HelloError,
    },
    /// It is an agent, and not ours.
    #[error("{host}: {source}")]
    Greeting {
        /// The host.
        host: String,
        /// Why the two do not talk.
        source: HelloError,
    },
    /// The agent, or ssh, has ended.
    #[error("{host}: the agent ended ({how}){}", in_brackets(last_line(words)))]
    Ended {
        /// The host.
        host: String,
        /// With which exit code, or by which signal.
        how: String,
        /// What it said.
        words: String,
    },
}

impl SshError {
    /// Whether what the user gave is wrong, the host, the way to it or what is installed there, as
    /// opposed to a host or a line that fails.
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

    /// What to do about it, where that is known.
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

/// Why ssh has ended although it was not told to.
pub(super) fn ended(
    host: &str,
    typed: &str,
    status: Option<ExitStatus>,
    words: String,
) -> SshError {
    let host = host.to_owned();
    if status.and_then(|status| status.code()) == Some(OWN_FAILURE) {
        return SshError::Connection {
            host,
            typed: typed.to_owned(),
            problem: Problem::of(&words),
            words,
        };
    }
    let how = status.map_or_else(|| "it did not end by itself".to_owned(), |s| s.to_string());
    SshError::Ended { host, how, words }
}

fn first_line(words: &str) -> &str {
    words.lines().next().unwrap_or_default()
}

pub(super) fn last_line(words: &str) -> &str {
    words
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or_default()
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
        ended(
            "root@web",
            "ssh -p 2222 root@web",
            Some(status),
            words.to_owned(),
        )
    }

    /// As OpenSSH 9.2 writes them.
    #[test]
    fn the_words_of_ssh_are_understood() {
        let known = [
            ("root@web: Permission denied (publickey).", Problem::Denied),
            (
                "No ED25519 host key is known for web and you have requested strict checking.\n\
                 Host key verification failed.",
                Problem::UnknownKey,
            ),
            (
                "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n\
                 Host key verification failed.",
                Problem::ChangedKey,
            ),
            (
                "ssh: Could not resolve hostname web: Name or service not known",
                Problem::Unresolved,
            ),
            (
                "ssh: connect to host web port 22: Connection refused",
                Problem::Refused,
            ),
            (
                "ssh: connect to host web port 22: No route to host",
                Problem::Unreachable,
            ),
            (
                "ssh: connect to host web port 22: Connection timed out",
                Problem::TimedOut,
            ),
            (
                "Connection timed out during banner exchange",
                Problem::TimedOut,
            ),
            ("Timeout, server web not responding.", Problem::Lost),
            ("Connection to web closed by remote host.", Problem::Lost),
            (
                "kex_exchange_identification: read: Connection reset by peer",
                Problem::Lost,
            ),
            ("something new", Problem::Other),
            ("", Problem::Other),
        ];
        for (words, expected) in known {
            let error = failed(&format!("Warning: a banner\n{words}\n"));
            assert!(
                matches!(error, SshError::Connection { problem, .. } if problem == expected),
                "{words}: {error}"
            );
            let last = words.lines().next_back().unwrap_or("a banner");
            let text = error.to_string();
            assert!(
                text.contains(last) || expected == Problem::ChangedKey,
                "{text}"
            );
            assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
        }
    }

    #[test]
    fn a_hint_can_be_typed() {
        let hint = failed("root@web: Permission denied (publickey).")
            .hint()
            .unwrap();
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
        let error = ended(
            "web",
            "ssh web",
            Some(status),
            "weir: out of memory".to_owned(),
        );
        assert_eq!(
            error.to_string(),
            "web: the agent ended (exit status: 1) (weir: out of memory)"
        );
    }
}
