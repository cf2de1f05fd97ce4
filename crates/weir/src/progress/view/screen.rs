//! The terminal during the live view, and its restoration whatever happens.
//!
//! ratatui's usual backends read the keyboard in raw mode, in which Ctrl-C is a key like any other. Here it stays a
//! signal to everybody in the foreground, as without a view: only line editing and echo are off.

use std::io::{self, stderr, stdin};
use std::sync::{Mutex, PoisonError};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};

use crate::terminal;

/// Control sequences that switch to the other screen and back (xterm's private mode 1049), with the cursor hidden
/// meanwhile (25).
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// Settings of the terminal before the view; `None` if the view does not have the terminal.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Returns columns and lines; `None` if there is no terminal for output and keys, or another process group is in the
/// foreground.
pub(super) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(stderr()).ok()?;
    let is_ours = tcgetpgrp(stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
    is_ours.then_some((size.ws_col, size.ws_row))
}

/// Takes the terminal for the view.
///
/// # Errors
/// The kernel refuses.
pub(super) fn enter() -> io::Result<()> {
    let settings = tcgetattr(stdin())?;
    let mut quiet = settings.clone();
    quiet.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings);
    tcsetattr(stdin(), OptionalActions::Now, &quiet)?;
    terminal::draw(ENTER);
    Ok(())
}

/// Restores the terminal, if the view has it.
pub(crate) fn leave() {
    let last = give_back();
    if !last.is_empty() {
        terminal::draw(last);
    }
}

/// Restores the terminal's settings, and returns the bytes to write to restore its screen: none if the view does not
/// have the terminal.
pub(crate) fn give_back() -> &'static [u8] {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    match before {
        Some(before) => {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
            LEAVE
        }
        None => &[],
    }
}

/// Returns true if the view has the terminal.
pub(super) fn is_entered() -> bool {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Returns true if the user has pressed `q`.
pub(super) fn is_left() -> bool {
    let mut keys = [0; 64];
    let input = stdin();
    let mut ready = [PollFd::new(&input, PollFlags::IN)];
    let is_there = poll(&mut ready, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
    is_there
        && rustix::io::read(stdin(), &mut keys)
            .is_ok_and(|read| keys[..read].iter().any(|key| matches!(key, b'q' | b'Q')))
}

/// Backend of ratatui: changes are written at once.
#[derive(Debug, Default)]
pub(super) struct Screen {
    waiting: Vec<u8>,
}

impl Screen {
    fn put(&mut self, text: &str) {
        self.waiting.extend_from_slice(text.as_bytes());
    }
}

impl Backend for Screen {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut style = None;
        let mut expected = None;
        for (x, y, cell) in content {
            if expected != Some((x, y)) {
                self.put(&format!("\x1b[{};{}H", y + 1, x + 1));
            }
            if style != Some((cell.fg, cell.modifier)) {
                self.put(&select(cell.fg, cell.modifier));
                style = Some((cell.fg, cell.modifier));
            }
            self.put(cell.symbol());
            expected = Some((x + 1, y));
        }
        self.put("\x1b[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, _: P) -> io::Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.put("\x1b[2J");
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(stderr())?;
        Ok(Size::new(size.ws_col, size.ws_row))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        let columns_rows = self.size()?;
        Ok(WindowSize { columns_rows, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        // What was drawn after the terminal was given back would stay on it.
        if is_entered() {
            terminal::draw(&self.waiting);
        }
        self.waiting.clear();
        Ok(())
    }
}

/// Returns the control sequence for a colour: SGR (ECMA-48 §8.3.117).
fn select(color: Color, modifier: Modifier) -> String {
    let mut codes = "0".to_owned();
    for (one, code) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2")] {
        if modifier.contains(one) {
            codes += code;
        }
    }
    codes += match color {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Cyan => ";36",
        _ => "",
    };
    format!("\x1b[{codes}m")
}
