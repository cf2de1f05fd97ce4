//! Text from outside sources, made safe to show to a person.

use std::borrow::Cow;

/// Text without what commands a terminal, turns the direction of writing or is not seen: such characters are shown by
/// their numbers, as JSON writes them (`\u001b`). Ends of lines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            // Before a line feed it is a part of the line's end.
            '\r' if characters.peek() == Some(&'\n') => {}
            c if commands(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    shown.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Returns true if a character is a control (ECMA-48: C0, DEL and C1), sets the direction of writing (Unicode
/// Standard Annex 9) or has no form of its own (Unicode's category Cf), by which text can be made to read as another.
pub fn commands(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Does the same as [`visible`], and also escapes line ends so that the text stays on one line.
pub fn in_a_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// Escapes a cell of a CSV file so that no spreadsheet takes it for a formula: an apostrophe is put before text that
/// begins like one (OWASP, CSV injection). [`from_cell`] removes it.
pub fn as_cell(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\'']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the text of a cell that [`as_cell`] has escaped.
pub fn from_cell(cell: &str) -> &str {
    let text = cell.strip_prefix('\'').unwrap_or(cell);
    if as_cell(text) == cell { text } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_shown_by_number() {
        for (text, shown) in [
            ("plain\ttext\nž\n", "plain\ttext\nž\n"),
            ("\u{1b}[2J\u{1b}]0;t\u{7}", "\\u001b[2J\\u001b]0;t\\u0007"),
            ("a\r\nb\rc", "a\nb\\u000dc"),
            ("\u{9b}31m\u{7f}", "\\u009b31m\\u007f"),
            ("user\u{202e}nimda", "user\\u202enimda"),
            ("a\u{200b}\u{ad}\u{2064}\u{feff}", "a\\u200b\\u00ad\\u2064\\ufeff"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn no_cell_is_a_formula() {
        for (text, cell) in [
            ("nginx: worker", "nginx: worker"),
            ("=1+1", "'=1+1"),
            ("@a", "'@a"),
            ("'=1", "''=1"),
            ("'s", "''s"),
            ("", ""),
        ] {
            assert_eq!((&*as_cell(text), from_cell(cell)), (cell, text));
        }
        // An apostrophe that escapes nothing.
        assert_eq!(from_cell("'s"), "'s");
    }

    #[test]
    fn a_line_stays_one() {
        assert_eq!(in_a_line("a\r\nb\u{1b}\tc\n"), "a\\nb\\u001b\tc\\n");
    }
}
