//! What the terminal can show.

use std::io::{self, IsTerminal, Write, stderr, stdout};

use crate::failure::Failure;

/// Writes a result to standard output. A reader who has seen enough (`weir … | head`) is no error.
///
/// # Errors
/// The kernel refuses, for example because standard output is a file on a full disk.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes to standard error what goes beside the results. Nobody is left to be told when that
/// fails, and a trial must not end because nobody watches it.
pub(crate) fn tell(text: &str) {
    let _ = stderr().lock().write_all(text.as_bytes());
}

/// Colour is used on a terminal unless NO_COLOR is set (no-color.org) or TERM is `dumb`.
fn color_allowed() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Colour on standard output.
pub(crate) fn color_on_stdout() -> bool {
    stdout().is_terminal() && color_allowed()
}

/// Colour on standard error.
pub(crate) fn color_on_stderr() -> bool {
    stderr().is_terminal() && color_allowed()
}

/// Columns of the terminal, or 100 when there is none.
pub(crate) fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(stdout()).map_or(0, |size| size.ws_col);
    if columns == 0 {
        100
    } else {
        usize::from(columns).clamp(60, 160)
    }
}

/// One line about work in progress: rewritten in place on a terminal, a plain line elsewhere.
pub(crate) struct StatusLine {
    rewrites: bool,
    shown: bool,
}

impl StatusLine {
    /// On standard error, so that standard output holds results alone.
    pub(crate) fn new() -> StatusLine {
        StatusLine {
            rewrites: stderr().is_terminal() && color_allowed(),
            shown: false,
        }
    }

    /// Whether lines replace each other.
    pub(crate) fn rewrites(&self) -> bool {
        self.rewrites
    }

    /// Shows a line of work in progress.
    pub(crate) fn show(&mut self, line: &str) {
        if self.rewrites {
            tell(&format!("\r\x1b[2K{line}"));
            self.shown = true;
        } else {
            tell(&format!("{line}\n"));
        }
    }

    /// Writes a line that stays.
    pub(crate) fn say(&mut self, line: &str) {
        self.clear();
        tell(&format!("{line}\n"));
    }

    /// Takes the line of work in progress away.
    pub(crate) fn clear(&mut self) {
        if self.shown {
            tell("\r\x1b[2K");
            self.shown = false;
        }
    }
}
