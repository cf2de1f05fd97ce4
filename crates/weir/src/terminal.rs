//! What the terminal can show.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_probe::fault;
use weir_report::foreign::{masked, visible};

use crate::failure::Failure;

/// Takes the line away that the cursor is in (ECMA-48: EL, after a return to its begin).
const TAKE_AWAY: &[u8] = b"\r\x1b[2K";

/// Writes a result to standard output, without what others have put into it to command a terminal. A reader
/// who has seen enough (`weir … | head`) is no error.
///
/// # Errors
/// The kernel refuses, for example because standard output is a file on a full disk.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_as_it_is(&visible(text))
}

/// As [`print()`], of text that has colours of weir's own: whoever paints it has made what others wrote visible
/// before.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_painted(text: &str) -> Result<(), Failure> {
    print_as_it_is(&painted(text, color_on_stdout()))
}

/// As [`print`], byte for byte: for what is to be applied, and no terminal shows.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_as_it_is(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes to standard error what goes beside the results. Nobody is left to be told when that
/// fails, and a trial must not end because nobody watches it. What others have put into it to command a
/// terminal is made visible, and secrets are masked: proxies quote their configurations.
pub(crate) fn tell(text: &str) {
    let mut out = stderr().lock();
    fault::at("terminal");
    let _ = out.write_all(masked(&visible(text)).as_bytes());
}

/// How long a terminal or a pipe that takes nothing is waited for by [`tell_at_once`].
const TAKES: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// What a pipe that can be written to takes whole, in bytes (PIPE_BUF, pipe(7)).
const WHOLE: usize = 4096;

/// As [`tell`], after commands of weir's own to the terminal, in a process that is about to be another one: no lock is
/// waited for, since its holder may have panicked, and no reader for long.
pub(crate) fn tell_at_once(commands: &[u8], text: &str) {
    // The crates that mask secrets are asked nothing here: a panic of theirs would be the last.
    let plain = |c: char| if c.is_control() && c != '\n' { '?' } else { c };
    let text: String = text.chars().map(plain).collect();
    let bytes = [commands, text.as_bytes()].concat();
    let out = rustix::stdio::stderr();
    for piece in bytes.chunks(WHOLE) {
        let mut ready = [PollFd::new(&out, PollFlags::OUT)];
        if !poll(&mut ready, Some(&TAKES)).is_ok_and(|ready| ready > 0) {
            return;
        }
        let _ = rustix::io::write(out, piece);
    }
}

/// As [`tell`], of text that has colours of weir's own ([`print_painted`]).
pub(crate) fn tell_painted(text: &str) {
    let text = painted(text, color_on_stderr());
    let _ = stderr().lock().write_all(masked(&text).as_bytes());
}

/// Text with nothing in it that commands a terminal, but colours where there may be any.
fn painted(text: &str, color: bool) -> Cow<'_, str> {
    const BEGIN: &str = "\x1b[";
    if !color || !text.contains(BEGIN) {
        return visible(text);
    }
    let mut pieces = text.split(BEGIN);
    let mut out = visible(pieces.next().unwrap_or_default()).into_owned();
    for piece in pieces {
        // SGR alone (ECMA-48 §8.3.117).
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != ';');
        let end = end.filter(|end| piece[*end..].starts_with('m'));
        let begin = if end.is_some() { BEGIN } else { "\\u001b[" };
        let (sequence, rest) = piece.split_at(end.map_or(0, |end| end + 1));
        out.extend([begin, sequence, &visible(rest)]);
    }
    Cow::Owned(out)
}

/// Writes what the live view has drawn to standard error: commands to the terminal of weir's own, and cells, which
/// hold no control characters.
pub(crate) fn draw(bytes: &[u8]) {
    let mut out = stderr().lock();
    fault::at("screen");
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Whether standard error is a terminal that can be drawn on.
pub(crate) fn can_draw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stderr().is_terminal() && !is_dumb
}

/// Whether standard output is a terminal.
pub(crate) fn is_on_stdout() -> bool {
    stdout().is_terminal()
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
    columns(stdout()).map_or(100, |columns| columns.clamp(40, 160))
}

fn columns(stream: impl AsFd) -> Option<usize> {
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col);
    (columns > 0).then_some(columns.into())
}

/// A line of parts, with dots between them, fitted to so many columns: rates and p99 stay longest.
fn narrowed(line: &str, most: usize) -> String {
    let mut parts: Vec<&str> = line.split(" · ").collect();
    let mut text = line.to_owned();
    while text.chars().count() > most
        && parts.iter().any(|part| is_metric(part))
        && let Some(place) = parts.iter().rposition(|part| !is_metric(part))
    {
        parts.remove(place);
        text = parts.join(" · ");
    }
    if let [rate, tail] = parts[..]
        && is_metric(rate)
        && text.chars().count() > most
    {
        // `2,000 of 2,000 responses/s · p99 1.20 ms` says the same as `2,000/s p99 1.20 ms`.
        let rate = rate.split(' ').next().unwrap_or_default();
        text = format!("{rate}/s {tail}");
    }
    text.chars().take(most).collect()
}

fn is_metric(part: &str) -> bool {
    part.contains("/s") || part.contains("p99")
}

/// Lines that are kept where nothing is to be written.
const KEPT: usize = 1000;

/// One line about work in progress: rewritten in place on a terminal, a plain line elsewhere.
pub(crate) struct StatusLine {
    rewrites: bool,
    shown: bool,
    /// What was said, where nothing is to be written.
    kept: Option<Vec<String>>,
    /// Lines among them that stay.
    staying: Vec<String>,
}

impl StatusLine {
    /// On standard error, so that standard output holds results alone.
    pub(crate) fn new() -> StatusLine {
        StatusLine {
            rewrites: stderr().is_terminal() && color_allowed(),
            shown: false,
            kept: None,
            staying: Vec::new(),
        }
    }

    /// Nowhere: lines that stay are kept.
    pub(crate) fn kept() -> StatusLine {
        StatusLine {
            rewrites: false,
            shown: false,
            kept: Some(Vec::new()),
            staying: Vec::new(),
        }
    }

    /// Whether nothing is written.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// The lines that were kept.
    pub(crate) fn said(&self) -> &[String] {
        self.kept.as_deref().unwrap_or_default()
    }

    /// Kept lines that stay, to be written now.
    pub(crate) fn take_said(self) -> Vec<String> {
        self.staying
    }

    /// Keeps a line that is soon out of date, where nothing is to be written.
    pub(crate) fn keep(&mut self, line: &str) {
        if let Some(kept) = &mut self.kept {
            push(kept, line);
        }
    }

    /// Whether lines replace each other.
    pub(crate) fn rewrites(&self) -> bool {
        self.rewrites
    }

    /// Shows a line of work in progress.
    pub(crate) fn show(&mut self, line: &str) {
        if self.is_kept() {
            return;
        }
        if self.rewrites {
            self.clear();
            // A line that the terminal breaks could not be taken away.
            let most = columns(stderr()).map_or(usize::MAX, |columns| columns - 1);
            tell(&narrowed(line, most));
            self.shown = true;
        } else {
            tell(&format!("{line}\n"));
        }
    }

    /// Writes a line that stays.
    pub(crate) fn say(&mut self, line: &str) {
        if self.is_kept() {
            self.keep(line);
            return push(&mut self.staying, line);
        }
        self.clear();
        tell(&format!("{line}\n"));
    }

    /// Takes the line of work in progress away.
    pub(crate) fn clear(&mut self) {
        if self.shown {
            let _ = stderr().lock().write_all(TAKE_AWAY);
            self.shown = false;
        }
    }
}

/// Keeps a line, and the latest [`KEPT`] of all.
fn push(lines: &mut Vec<String>, line: &str) {
    if lines.len() == KEPT {
        lines.remove(0);
    }
    lines.push(line.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_keeps_rate_and_p99() {
        let load = "12 of 30 s · 2,000 of 2,000 responses/s · p99 1.20 ms · 3 in flight · 0 errors · 18 s left";
        let block = "web: block 12 of 40 · baseline 12,000/s · about 5 min left · about 16 min left of the run";
        for (line, columns, expected) in [
            (load, 99, load),
            (load, 38, "2,000/s p99 1.20 ms"),
            (load, 19, "2,000/s p99 1.20 ms"),
            (block, 39, "web: block 12 of 40 · baseline 12,000/s"),
        ] {
            assert_eq!(narrowed(line, columns), expected, "{columns}");
        }
    }

    #[test]
    fn colours_stay_where_there_may_be_any_and_nothing_else_does() {
        for (text, plain, colored) in [
            (
                "\x1b[1;31mweir:\x1b[0m no",
                "\\u001b[1;31mweir:\\u001b[0m no",
                "\x1b[1;31mweir:\x1b[0m no",
            ),
            (
                "\x1b[2Ja\x1b[",
                "\\u001b[2Ja\\u001b[",
                "\\u001b[2Ja\\u001b[",
            ),
            ("\x1b]0;t\x07", "\\u001b]0;t\\u0007", "\\u001b]0;t\\u0007"),
        ] {
            assert_eq!(painted(text, false), plain);
            assert_eq!(painted(text, true), colored);
        }
    }
}
