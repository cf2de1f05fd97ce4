//! Files read as text, and errors with their place.

use std::path::{Path, PathBuf};

use crate::{ConfigurationError, SourceFile};

/// The largest file that is read, in bytes: enough for 10,000 servers some ten times over.
const MAX_BYTES: u64 = 64 << 20;

/// Line and column, both counted from 1, of a byte of the text; columns are characters.
pub(crate) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line_from = before
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |i| i + 1);
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let in_line = String::from_utf8_lossy(&before[line_from..]);
    // An editor shows no column for a byte order mark.
    let column = in_line.trim_start_matches('\u{feff}').chars().count() + 1;
    (line, column)
}

/// An error at a byte of a file.
pub(crate) fn error(file: &SourceFile, at: usize, what: impl Into<String>) -> ConfigurationError {
    ConfigurationError::at(&file.path, &file.text, at, what)
}

/// A file's text. The path becomes absolute, and links stay as the user named them.
///
/// # Errors
/// The file cannot be read, is too large, or is not UTF-8; then with the place of the first byte
/// that is not.
pub(crate) fn read(path: &Path) -> Result<SourceFile, ConfigurationError> {
    let path = absolute(path);
    let bytes = bytes(&path).map_err(|e| about(&path, format!("cannot be read: {e}")))?;
    file(path, bytes)
}

/// A file of these bytes.
///
/// # Errors
/// They are not UTF-8; with the place of the first byte that is not.
pub(crate) fn file(path: PathBuf, bytes: Vec<u8>) -> Result<SourceFile, ConfigurationError> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceFile { path, text }),
        Err(e) => {
            let good = e.utf8_error().valid_up_to();
            let bad = e.as_bytes()[good];
            let text = String::from_utf8_lossy(&e.as_bytes()[..good]).into_owned();
            let file = SourceFile { path, text };
            let what = format!("the byte 0x{bad:02x} is not UTF-8");
            Err(error(&file, good, what).hint("save the file as UTF-8"))
        }
    }
}

/// A file's bytes.
///
/// # Errors
/// The file cannot be read, is no regular file, or is too large.
pub(crate) fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    crate::read_regular(path, MAX_BYTES)
}

/// An error about a whole file.
pub(crate) fn about(path: &Path, what: impl Into<String>) -> ConfigurationError {
    ConfigurationError {
        file: path.to_owned(),
        line: 1,
        column: 1,
        what: what.into(),
        hint: None,
    }
}

/// The path from the root.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Where a copy may put a socket.
///
/// # Errors
/// The path would be longer than what proxies can bind: sockaddr_un has 108 bytes (unix(7)), and
/// HAProxy binds a temporary name of up to ten bytes more first.
pub(crate) fn socket(
    prefix: &Path,
    name: &str,
    main: &SourceFile,
) -> Result<String, ConfigurationError> {
    const LONGEST: usize = 97;
    let path = prefix.join("run").join(name).display().to_string();
    if path.len() > LONGEST {
        let what = format!("a copy's socket {path} has a path of more than {LONGEST} bytes");
        return Err(about(&main.path, what).hint("give weir a work folder with a shorter path"));
    }
    Ok(path)
}

/// Whether a word is one of a list's, which has `, ` between its words.
pub(crate) fn is_among(word: &str, list: &str) -> bool {
    list.split(", ").any(|one| one == word)
}

/// What to do where a configuration has something that no copy may have.
pub(crate) const LEAVE_OUT: &str = "name a copy of your configuration without it in the study";

/// Why no copy may have something that is on no list of what does no harm.
pub(crate) fn unknown(name: &str) -> String {
    format!("weir does not know what `{name}` contacts or writes, so a copy must not have it")
}

/// Why no copy may have something that runs a program of the user's.
pub(crate) fn runs_code(name: &str) -> String {
    format!("`{name}` runs code that could contact or write anything, which a copy must not do")
}

/// The line end that a text uses.
pub(crate) fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(i) if text[..i].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The letters behind a number.
pub(crate) fn unit(quantity: &str) -> &str {
    quantity.trim_start_matches(|c: char| c.is_ascii_digit())
}

/// A number of some smallest unit, written in the unit of another quantity, where that is one of these and
/// the number comes out even.
pub(crate) fn like(other: &str, number: u64, units: &[(&str, u64)]) -> Option<String> {
    let own = unit(other);
    let (_, size) = units.iter().find(|(name, _)| *name == own)?;
    let is_even = number.is_multiple_of(*size) && (number > 0 || own.is_empty());
    is_even.then(|| format!("{}{own}", number / size))
}

/// Columns that the begin of a line takes, with tab stops every eight.
pub(crate) fn width(text: &str) -> usize {
    text.chars().fold(0, |column, c| match c {
        '\t' => column / 8 * 8 + 8,
        _ => column + 1,
    })
}

/// Blanks from one column to another, at least one of them, as those that somebody else filled a line with.
pub(crate) fn filled(from: usize, to: usize, like: &str) -> String {
    match like.contains('\t') {
        true => "\t".repeat((to.div_ceil(8)).saturating_sub(from / 8).max(1)),
        false => " ".repeat(to.saturating_sub(from).max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_has_no_column() {
        for (text, at, expected) in [
            ("\u{feff}ab", 4, (1, 2)),
            ("\u{feff}a\né b", 8, (2, 3)),
            ("ab", 9, (1, 3)),
        ] {
            assert_eq!(line_and_column(text, at), expected, "{text:?}");
        }
    }
}
