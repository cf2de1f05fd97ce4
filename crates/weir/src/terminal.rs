//! Output to the terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use weir_probe::fault;
use weir_report::secrets::{masked, visible};
use weir_sut::is_stopped;

use crate::failure::Failure;

/// Control sequence that clears the cursor's line (ECMA-48: EL, after a return to its begin).
const TAKE_AWAY: &[u8] = b"\r\x1b[2K";

/// Writes a result to standard output. Control characters, by which others could command a terminal, are made visible.
/// A reader that stops early (`weir … | head`) is no error.
///
/// # Errors
/// The kernel refuses, for example because standard output is a file on a full disk.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_as_it_is(&visible(text))
}

/// Like [`print()`], but keeps weir's own colours: the caller has made other control characters visible before.
///
/// # Errors
/// Same as [`print()`].
pub(crate) fn print_painted(text: &str) -> Result<(), Failure> {
    print_as_it_is(&painted(text, color_on_stdout()))
}

/// Like [`print`], but byte for byte: for text that is to be applied, and that no terminal shows.
///
/// # Errors
/// Same as [`print`].
pub(crate) fn print_as_it_is(text: &str) -> Result<(), Failure> {
    let mut out = Patient(stdout().lock());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a message to standard error. Errors are ignored: nobody is left to receive one, and a trial must not end
/// because nobody watches it. Control characters are made visible, and secrets are masked: proxies quote their
/// configurations.
pub(crate) fn tell(text: &str) {
    let mut out = Patient(stderr().lock());
    fault::at("terminal");
    let _ = out.write_all(masked(&visible(text)).as_bytes());
}

/// A stream of the process. A reader that takes nothing is waited for until the user wants weir to end, and for
/// [`PATIENCE`] from then on.
struct Patient<S>(S);

/// Time for a reader to take something after the user wanted weir to end.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks at the user's wish.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl<S: Write + AsFd> Write for Patient<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut wanted_end: Option<Instant> = None;
        loop {
            let mut ready = [PollFd::new(&self.0, PollFlags::OUT)];
            // What cannot be asked is left to the write itself, and so is a reader that has gone.
            if poll(&mut ready, Some(&LOOK))
                .map_or_else(|error| error != Errno::INTR, |ready| ready > 0)
            {
                return self.0.write(&bytes[..bytes.len().min(WHOLE)]);
            }
            if is_stopped() && wanted_end.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads it"));
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Longest wait of [`tell_at_once`] for a terminal or a pipe that takes nothing.
const TAKES: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// Number of bytes that a writable pipe takes as a whole (PIPE_BUF, pipe(7)).
const WHOLE: usize = 4096;

/// Like [`tell`], but writes weir's own commands to the terminal first, and is meant for a process that is about to be
/// replaced: it waits for no lock, since its holder may have panicked, and for no reader for long.
pub(crate) fn tell_at_once(commands: &[u8], text: &str) {
    // The crates that mask secrets are asked nothing here: a panic of theirs would be the last.
    let text: String =
        text.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
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

/// Like [`tell`], but keeps weir's own colours ([`print_painted`]).
pub(crate) fn tell_painted(text: &str) {
    let text = painted(text, color_on_stderr());
    let _ = Patient(stderr().lock()).write_all(masked(&text).as_bytes());
}

/// Makes control characters visible, except colours if `color` allows them.
fn painted(text: &str, color: bool) -> Cow<'_, str> {
    const BEGIN: &str = "\x1b[";
    if !color || !text.contains(BEGIN) {
        return visible(text);
    }
    let mut pieces = text.split(BEGIN);
    let mut out = visible(pieces.next().unwrap_or_default()).into_owned();
    for piece in pieces {
        // SGR alone (ECMA-48 §8.3.117).
        let end = piece
            .find(|c: char| !c.is_ascii_digit() && c != ';')
            .filter(|end| piece[*end..].starts_with('m'));
        let begin = if end.is_some() { BEGIN } else { "\\u001b[" };
        let (sequence, rest) = piece.split_at(end.map_or(0, |end| end + 1));
        out.extend([begin, sequence, &visible(rest)]);
    }
    Cow::Owned(out)
}

/// Writes the live view to standard error: weir's own commands to the terminal, and cells, which hold no control
/// characters.
pub(crate) fn draw(bytes: &[u8]) {
    let mut out = Patient(stderr().lock());
    fault::at("screen");
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Returns true if standard error is a terminal that can be drawn on.
pub(crate) fn can_draw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stderr().is_terminal() && !is_dumb
}

/// Returns true if standard output is a terminal.
pub(crate) fn is_on_stdout() -> bool {
    stdout().is_terminal()
}

/// Returns true unless NO_COLOR is set (no-color.org) or TERM is `dumb`.
fn color_allowed() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns true if colour is used on standard output.
pub(crate) fn color_on_stdout() -> bool {
    stdout().is_terminal() && color_allowed()
}

/// Returns true if colour is used on standard error.
pub(crate) fn color_on_stderr() -> bool {
    stderr().is_terminal() && color_allowed()
}

/// Returns the columns of the terminal, 40 to 160, or 100 if there is none.
pub(crate) fn width() -> usize {
    columns(stdout()).map_or(100, |columns| columns.clamp(40, 160))
}

fn columns(stream: impl AsFd) -> Option<usize> {
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col);
    (columns > 0).then_some(columns.into())
}

/// Shortens a line of parts, which have dots between them, to `most` columns. Rates and p99 are kept longest.
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
        let number = rate.split(' ').next().unwrap_or_default();
        text = format!("{number}/s {tail}");
    }
    text.chars().take(most).collect()
}

fn is_metric(part: &str) -> bool {
    part.contains("/s") || part.contains("p99")
}

/// Most lines to keep if nothing is written.
const KEPT: usize = 1000;

/// One line about work in progress: rewritten in place on a terminal, a plain line elsewhere.
pub(crate) struct StatusLine {
    rewrites: bool,
    shown: bool,
    /// Latest lines, if they are kept and not written.
    kept: Option<Vec<String>>,
    /// Kept lines that stay.
    staying: Vec<String>,
}

impl StatusLine {
    /// Creates a line on standard error, so that standard output holds results alone.
    pub(crate) fn new() -> StatusLine {
        StatusLine {
            rewrites: stderr().is_terminal() && color_allowed(),
            shown: false,
            kept: None,
            staying: Vec::new(),
        }
    }

    /// Creates a line that writes nothing, and keeps its lines.
    pub(crate) fn kept() -> StatusLine {
        StatusLine { rewrites: false, shown: false, kept: Some(Vec::new()), staying: Vec::new() }
    }

    /// Returns true if lines are kept and not written.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns the latest kept lines.
    pub(crate) fn said(&self) -> &[String] {
        self.kept.as_deref().unwrap_or_default()
    }

    /// Returns the kept lines that stay, to be written now.
    pub(crate) fn take_said(self) -> Vec<String> {
        self.staying
    }

    /// Keeps a line that is soon out of date, if lines are kept.
    pub(crate) fn keep(&mut self, line: &str) {
        if let Some(kept) = &mut self.kept {
            push(kept, line);
        }
    }

    /// Returns true if lines replace each other.
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

    /// Clears the line of work in progress.
    pub(crate) fn clear(&mut self) {
        if self.shown {
            let _ = Patient(stderr().lock()).write_all(TAKE_AWAY);
            self.shown = false;
        }
    }
}

/// Adds a line, and drops the oldest if there are more than [`KEPT`].
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
            ("\x1b[2Ja\x1b[", "\\u001b[2Ja\\u001b[", "\\u001b[2Ja\\u001b["),
            ("\x1b]0;t\x07", "\\u001b]0;t\\u0007", "\\u001b]0;t\\u0007"),
        ] {
            assert_eq!(painted(text, false), plain);
            assert_eq!(painted(text, true), colored);
        }
    }
}
