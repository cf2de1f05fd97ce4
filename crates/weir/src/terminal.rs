//! What the terminal can show.

use std::io::{IsTerminal, stderr, stdout};

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
            eprint!("\r\x1b[2K{line}");
            self.shown = true;
        } else {
            eprintln!("{line}");
        }
    }

    /// Writes a line that stays.
    pub(crate) fn say(&mut self, line: &str) {
        self.clear();
        eprintln!("{line}");
    }

    /// Takes the line of work in progress away.
    pub(crate) fn clear(&mut self) {
        if self.shown {
            eprint!("\r\x1b[2K");
            self.shown = false;
        }
    }
}
