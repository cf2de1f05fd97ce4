//! A page for a terminal: lines that fit its width, and colours where they are wanted.

use weir_model::record::Validity;

use crate::view::words;

/// Widths below this are taken for it: a table cannot be narrower.
pub(super) const NARROWEST: usize = 60;
/// Running text is not set wider than this: longer lines are hard to read.
const WIDEST_TEXT: usize = 100;

/// SGR parameters (ECMA-48 §8.3.117).
pub(super) mod sgr {
    pub(in crate::terminal) const BOLD: &str = "1";
    pub(in crate::terminal) const DIM: &str = "2";
    pub(in crate::terminal) const GREEN: &str = "32";
    pub(in crate::terminal) const YELLOW: &str = "33";
    pub(in crate::terminal) const RED: &str = "1;31";
    pub(in crate::terminal) const CYAN: &str = "36";
}

/// What was written so far, and for which terminal.
pub(super) struct Page {
    pub(super) out: String,
    pub(super) color: bool,
    pub(super) width: usize,
    /// Whether what the arms change was already said.
    pub(super) changes_said: bool,
}

/// One line of a table: text and style of each cell.
pub(super) type Cells = Vec<(String, &'static str)>;

impl Page {
    pub(super) fn paint(&self, text: &str, style: &str) -> String {
        let text = clean(text);
        if self.color && !style.is_empty() && !text.trim().is_empty() {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text
        }
    }

    pub(super) fn line(&mut self, text: &str, style: &str) {
        let painted = self.paint(text.trim_end(), style);
        self.out.push_str(&painted);
        self.out.push('\n');
    }

    /// Running text, wrapped, every line after the first indented by `hang`.
    pub(super) fn text(&mut self, text: &str, style: &str, hang: usize) {
        for line in wrap(&clean(text), self.width.min(WIDEST_TEXT), hang) {
            self.line(&line, style);
        }
    }

    /// A validity and what is said about it, wrapped.
    pub(super) fn badged(&mut self, validity: Validity, text: &str, style: &str) {
        let word = words::validity(validity);
        let whole = format!("{word}, {}", clean(text));
        let lines = wrap(&whole, self.width.min(WIDEST_TEXT), word.len() + 2);
        for (index, line) in lines.iter().enumerate() {
            let rest = match line.strip_prefix(word).filter(|_| index == 0) {
                Some(rest) => {
                    let badge = self.paint(word, validity_style(validity));
                    self.out.push_str(&badge);
                    rest
                }
                None => line,
            };
            self.line(rest, style);
        }
    }
}

fn validity_style(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => sgr::GREEN,
        Validity::Suspect => sgr::YELLOW,
        Validity::Invalid => sgr::RED,
    }
}

pub(super) fn column_widths(rows: &[Cells]) -> Vec<usize> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|(text, _)| width_of(text)).max().unwrap_or(0)
        })
        .collect()
}

/// Replaces control characters, escape sequences' first byte among them.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
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

/// Breaks text at spaces into lines of at most `width` characters; lines after the first are
/// indented by `hang`. Leading spaces are kept; a word longer than a line is broken.
pub(super) fn wrap(text: &str, width: usize, hang: usize) -> Vec<String> {
    let lead = width_of(text) - width_of(text.trim_start());
    let hang = hang.min(width / 2);
    let mut lines = Vec::new();
    let mut line = " ".repeat(lead.min(width / 2));
    let mut empty = true;
    for word in text.split_whitespace() {
        let mut word = word;
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
            lines.push(std::mem::replace(&mut line, " ".repeat(hang)));
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
