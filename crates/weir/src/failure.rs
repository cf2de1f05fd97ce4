//! Failures of commands: message, hint and exit code.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use weir_lab::{Blame, LabError};
use weir_record::HEADER_FILE;
use weir_report::secrets::visible;
use weir_sut::is_stopped;

/// Exit code if the work failed although the input was right.
pub(crate) const FAILED: u8 = 1;
/// Exit code for bad input: nothing was measured or changed.
pub(crate) const BAD_INPUT: u8 = 2;
/// Exit code if a condition of `--fail-if` is true: everything was measured and reported.
pub(crate) const CONDITION: u8 = 3;
/// Exit code after a panic in any thread: that of Rust programs.
pub(crate) const BUG: u8 = 101;
/// Exit code after Ctrl-C or SIGTERM; what was measured has been reported.
pub(crate) const INTERRUPTED: u8 = 130;

/// The failure of a command, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
    /// True if the message is a complete text (study errors) and gets no prefix.
    verbatim: bool,
    /// Further failures, reported together with this one.
    also: Vec<Failure>,
}

impl Failure {
    /// Creates a failure for bad input.
    pub(crate) fn input(message: impl Display) -> Failure {
        Failure::new(BAD_INPUT, message)
    }

    /// Creates a failure for work that failed with right input.
    pub(crate) fn failed(message: impl Display) -> Failure {
        Failure::new(FAILED, message)
    }

    /// Creates a failure for a true condition of `--fail-if`.
    pub(crate) fn condition(message: impl Display) -> Failure {
        Failure::new(CONDITION, message)
    }

    fn new(code: u8, message: impl Display) -> Failure {
        Failure {
            code,
            message: message.to_string(),
            hint: None,
            verbatim: false,
            also: Vec::new(),
        }
    }

    /// Combines failures into one that reports all of them; `None` if there are none.
    pub(crate) fn all(failures: impl IntoIterator<Item = Failure>) -> Option<Failure> {
        let mut remaining = failures.into_iter();
        let mut first = remaining.next()?;
        first.also.extend(remaining);
        Some(first)
    }

    /// Creates a failure for a run that was not made, or not to its end. `folder` is that of its records, if it exists.
    pub(crate) fn of_run(cause: impl Into<LabError>, folder: Option<&Path>) -> Failure {
        let error = cause.into();
        let hint = error.hint();
        let begun = folder.filter(|folder| folder.join(HEADER_FILE).exists());
        let failure = match (error.blame(begun.is_some()), begun) {
            _ if error.is_interruption() || is_stopped() => Failure::interrupted(error),
            (Blame::Input, _) => Failure::input(error),
            (Blame::Work, None) => Failure::failed(error),
            (Blame::Work, Some(folder)) => {
                Failure::failed(format!("{error}\nwhat was recorded is in {}", folder.display()))
            }
        };
        failure.maybe_hint(hint)
    }

    /// Creates a failure for a command that the user stopped before there was anything to report.
    pub(crate) fn interrupted(message: impl Display) -> Failure {
        Failure::new(INTERRUPTED, message)
    }

    /// Creates a failure for bad input with a complete text.
    pub(crate) fn described(message: String) -> Failure {
        Failure { verbatim: true, ..Failure::input(message) }
    }

    /// Adds the part of the input that the failure is about to its message.
    pub(crate) fn within(mut self, part: &str) -> Failure {
        self.message = format!("{part}: {}", self.message);
        self.also = self.also.into_iter().map(|failure| failure.within(part)).collect();
        self
    }

    /// Adds a hint about what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint about what to do, if there is one.
    pub(crate) fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Failure {
        self.hint = hint.map(Into::into);
        self
    }

    /// Returns the text for the terminal.
    pub(crate) fn rendered(&self, color: bool) -> String {
        let (red, cyan, plain) =
            if color { ("\x1b[1;31m", "\x1b[36m", "\x1b[0m") } else { ("", "", "") };
        let mut text = if self.verbatim {
            self.message.trim_end().to_owned()
        } else {
            // Without colours of others: a path, a proxy's words.
            format!("{red}weir:{plain} {}", visible(self.message.trim_end()))
        };
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n{cyan}hint:{plain} {}", visible(hint)));
        }
        for one in &self.also {
            text.push_str(&format!("\n{}", one.rendered(color)));
        }
        text
    }

    /// Returns true if the failure is about bad input.
    pub(crate) fn is_input(&self) -> bool {
        self.code == BAD_INPUT
    }

    /// Returns the exit code for the shell.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that text of a host, a proxy or a path cannot send commands to the terminal.
    #[test]
    fn nothing_of_others_commands_the_terminal_in_a_message() {
        let failure = Failure::failed("agent: \x1b[31mred\x1b[2J").hint("\x1b]0;title\x07");
        let expected = "\x1b[1;31mweir:\x1b[0m agent: \\u001b[31mred\\u001b[2J\n\
                        \x1b[36mhint:\x1b[0m \\u001b]0;title\\u0007";
        assert_eq!(failure.rendered(true), expected);
    }
}
