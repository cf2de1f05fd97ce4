//! A page for a terminal: lines that fit its width, with colours if requested.

use weir_model::record::Validity;

use crate::secrets::{commands, masked};
use crate::tree::{Outputs, Role, Text, Tone};

/// Minimum width of a page. A narrower terminal is treated as this wide.
pub(super) const NARROWEST: usize = 40;
/// Maximum width of running text, because longer lines are hard to read.
const WIDEST_TEXT: usize = 100;

/// SGR parameters (ECMA-48 §8.3.117).
pub(super) mod sgr {
    pub(in crate::render) const BOLD: &str = "1";
    pub(in crate::render) const DIM: &str = "2";
    pub(in crate::render) const GREEN: &str = "32";
    pub(in crate::render) const YELLOW: &str = "33";
    pub(in crate::render) const RED: &str = "1;31";
    pub(in crate::render) const CYAN: &str = "36";
}

/// A page during rendering, with the properties of its terminal.
pub(super) struct Page {
    pub(super) out: String,
    pub(super) output: Outputs,
    /// Maximum number of rows, items and paragraphs of one kind.
    pub(super) most: usize,
    pub(super) color: bool,
    pub(super) width: usize,
    /// True if no blank line may precede the next block.
    pub(super) is_joined: bool,
}

impl Page {
    pub(super) fn paint(&self, text: &str, style: &str) -> String {
        let text = clean(text);
        if self.color && !style.is_empty() && !text.trim().is_empty() {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text
        }
    }

    /// Returns text with its colours. Parts without a colour get `base`.
    pub(super) fn painted(&self, text: &Text, base: &str) -> String {
        text.0
            .iter()
            .map(|(role, text)| match style_of(*role) {
                "" => self.paint(text, base),
                style => self.paint(text, style),
            })
            .collect()
    }

    /// Writes a line that has its colours already.
    pub(super) fn put(&mut self, line: &str) {
        self.is_joined = false;
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    pub(super) fn line(&mut self, text: &str, style: &str) {
        let painted = self.paint(text.trim_end(), style);
        self.put(&painted);
    }

    /// Writes a blank line, but not two in a row and not at the top.
    pub(super) fn gap(&mut self) {
        if !self.is_joined && !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Writes wrapped running text. Every line after the first is indented by `hang`.
    pub(super) fn text(&mut self, text: &Text, style: &str, hang: usize) {
        let width = self.width.min(WIDEST_TEXT);
        for line in wrapped(text, width, hang) {
            let painted = self.painted(&line, style);
            self.put(&painted);
        }
    }
}

/// Breaks text into lines. Words keep their roles.
fn wrapped(text: &Text, width: usize, hang: usize) -> Vec<Text> {
    let cleaned: Vec<(Role, String)> = text.0.iter().map(|(role, t)| (*role, clean(t))).collect();
    let words: String = cleaned.iter().map(|(_, text)| text.as_str()).collect();
    let mut roles = cleaned
        .iter()
        .flat_map(|(role, text)| text.chars().map(move |c| (*role, c)))
        .filter(|(_, c)| !c.is_whitespace())
        .map(|(role, _)| role);
    let lines = wrap(&words, width, hang).into_iter().map(|line| {
        let mut pieces: Vec<(Role, String)> = Vec::new();
        for c in line.chars() {
            // A space is of the role of what stands before it.
            let role = if c.is_whitespace() {
                pieces.last().map_or(Role::Plain, |(role, _)| *role)
            } else {
                roles.next().unwrap_or(Role::Plain)
            };
            match pieces.last_mut() {
                Some((last, text)) if *last == role => text.push(c),
                _ => pieces.push((role, c.to_string())),
            }
        }
        Text(pieces)
    });
    lines.collect()
}

/// Returns the style of a role. Empty: the style of the surrounding text.
fn style_of(role: Role) -> &'static str {
    match role {
        Role::Plain | Role::Code | Role::Picture => "",
        Role::Strong => sgr::BOLD,
        Role::Soft => sgr::DIM,
        Role::Badge(validity) => validity_style(validity),
        Role::Tone(tone) => match tone {
            Tone::Better => sgr::GREEN,
            Tone::Worse | Tone::Differs => sgr::RED,
            Tone::Equivalent => sgr::CYAN,
            Tone::Inconclusive => sgr::DIM,
            Tone::Invalid | Tone::Inert => sgr::YELLOW,
        },
    }
}

fn validity_style(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => sgr::GREEN,
        Validity::Suspect => sgr::YELLOW,
        Validity::Invalid => sgr::RED,
    }
}

/// Masks secrets and replaces control characters, including the first byte of escape sequences.
pub(super) fn clean(text: &str) -> String {
    masked(text)
        .chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if commands(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

pub(super) fn width_of(text: &str) -> usize {
    text.chars().count()
}

pub(super) fn pad_right(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

pub(super) fn pad_left(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// Units that stay on the same line as their number.
const UNITS: [&str; 18] = [
    "%", "ns", "µs", "ms", "s", "min", "h", "bytes", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB",
    "MB/s", "CPU", "CPUs",
];

/// Splits a text into words. A number and its unit are one word: `12 ms`, also before a comma.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut tail = text.trim_start();
    while !tail.is_empty() {
        let (word, after) = tail.split_once(char::is_whitespace).unwrap_or((tail, ""));
        let unit = after.split(char::is_whitespace).next().unwrap_or_default();
        let is_figure = word.ends_with(|c: char| c.is_ascii_digit());
        let is_unit = UNITS.contains(&unit.trim_end_matches([',', '.', ';', ':', ')']));
        let end =
            if is_figure && is_unit { tail.len() - after.len() + unit.len() } else { word.len() };
        words.push(&tail[..end]);
        tail = tail[end..].trim_start();
    }
    words
}

/// Breaks text at spaces into lines of at most `width` characters; lines after the first are
/// indented by `hang`. Leading spaces are kept; a word longer than a line is broken.
pub(super) fn wrap(text: &str, width: usize, hang: usize) -> Vec<String> {
    let lead = width_of(text) - width_of(text.trim_start());
    let hanging_indent = " ".repeat(hang.min(width / 2));
    let mut lines = Vec::new();
    let mut line = " ".repeat(lead.min(width / 2));
    let mut empty = true;
    for mut word in words(text) {
        loop {
            let space = usize::from(!empty);
            let room = width.saturating_sub(width_of(&line) + space);
            if width_of(word) <= room {
                line.push_str(&" ".repeat(space));
                line.push_str(word);
                empty = false;
                break;
            }
            if empty {
                let cut = word.char_indices().nth(room).map_or(word.len(), |(i, _)| i);
                line.push_str(&word[..cut]);
                word = &word[cut..];
            }
            lines.push(std::mem::replace(&mut line, hanging_indent.clone()));
            empty = true;
        }
    }
    if !empty || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_text_keeps_every_word_and_the_width() {
        let text = "  generator-busy: the generator's CPU was busy for 97 % of the slice";
        let lines = wrap(text, 24, 4);
        assert!(lines.iter().all(|line| width_of(line) <= 24), "{lines:?}");
        assert!(lines[0].starts_with("  generator-busy:"));
        assert!(lines[1].starts_with("    "));
        let words: Vec<&str> = lines.iter().flat_map(|l| l.split_whitespace()).collect();
        assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn a_unit_stays_with_its_figure() {
        for (text, width, lines) in [
            ("at most 12 ms late", 10, &["at most", "12 ms late"][..]),
            ("busy 97 %, idle 3 %", 7, &["busy", "97 %,", "idle", "3 %"]),
            ("p99 of 5 requests", 8, &["p99 of 5", "requests"]),
            ("12\u{a0}ms", 9, &["12\u{a0}ms"]),
            ("5 ", 4, &["5"]),
        ] {
            assert_eq!(wrap(text, width, 0), lines, "{text:?}");
        }
    }

    #[test]
    fn wrapped_words_keep_their_roles() {
        let text = Text::of(Role::Strong, "one two").plain(" three  four");
        let lines = wrapped(&text, 9, 2);
        assert_eq!(lines[0].0, [(Role::Strong, "one two".to_owned())]);
        assert_eq!(lines[1].0, [(Role::Plain, "  three".to_owned())]);
        assert_eq!(lines[2].0, [(Role::Plain, "  four".to_owned())]);
    }

    #[test]
    fn a_word_longer_than_the_line_is_broken_and_nothing_is_lost() {
        let lines = wrap("abcdefghij kl", 4, 0);
        assert_eq!(lines, ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("", 10, 2), [""]);
    }

    #[test]
    fn control_characters_cannot_steer_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\u{9b}c\nd"), "a\u{fffd}[31mb\u{fffd}c d");
    }
}
