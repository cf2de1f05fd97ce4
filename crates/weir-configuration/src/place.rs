//! Reads files as text, and makes errors with a place.

use std::path::{Path, PathBuf};

use crate::{ConfigurationError, SourceFile};

/// Maximum size of a file, bytes: enough for 10,000 servers some ten times over.
const MAX_BYTES: u64 = 64 << 20;

/// Returns the line and column of a byte in a text, both counted from 1; columns are characters.
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line_from = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let in_line = String::from_utf8_lossy(&before[line_from..]);
    // An editor shows no column for a byte order mark.
    let column = in_line.trim_start_matches('\u{feff}').chars().count() + 1;
    (line, column)
}

/// Returns an error at a byte of a file.
pub fn error(file: &SourceFile, at: usize, what: impl Into<String>) -> ConfigurationError {
    ConfigurationError::at(&file.path, &file.text, at, what)
}

/// Reads a file as text. The path becomes absolute, and links stay as the user named them.
///
/// # Errors
/// Returns an error if the file cannot be read, is too large, or is not UTF-8; in the last case with the place of the
/// first invalid byte.
pub fn read(path: &Path) -> Result<SourceFile, ConfigurationError> {
    let path = absolute(path);
    let content = bytes(&path).map_err(|e| about(&path, format!("cannot be read: {e}")))?;
    file(path, content)
}

/// Creates a file from its bytes.
///
/// # Errors
/// Returns an error with the place of the first invalid byte if the bytes are not UTF-8.
pub fn file(path: PathBuf, bytes: Vec<u8>) -> Result<SourceFile, ConfigurationError> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceFile { path, text }),
        Err(e) => {
            let good = e.utf8_error().valid_up_to();
            let bad = e.as_bytes()[good];
            let text = String::from_utf8_lossy(&e.as_bytes()[..good]).into_owned();
            let file = SourceFile { path, text };
            let message = format!("the byte 0x{bad:02x} is not UTF-8");
            Err(error(&file, good, message).hint("save the file as UTF-8"))
        }
    }
}

/// Reads a file's bytes.
///
/// # Errors
/// Returns an error if the file cannot be read, is no regular file, or is too large.
pub fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    crate::read_regular(path, MAX_BYTES)
}

/// Returns an error about a whole file.
pub fn about(path: &Path, what: impl Into<String>) -> ConfigurationError {
    ConfigurationError { file: path.to_owned(), line: 1, column: 1, what: what.into(), hint: None }
}

/// Returns the path as an absolute one, with links as they are.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the path of a socket of a copy.
///
/// # Errors
/// Returns an error if the path is longer than proxies can bind: sockaddr_un has 108 bytes (unix(7)), and HAProxy first
/// binds a temporary name with up to ten bytes more.
pub fn socket(prefix: &Path, name: &str, main: &SourceFile) -> Result<String, ConfigurationError> {
    const LONGEST: usize = 97;
    let path = prefix.join("run").join(name).display().to_string();
    if path.len() > LONGEST {
        let message = format!("a copy's socket {path} has a path of more than {LONGEST} bytes");
        return Err(about(&main.path, message).hint("give weir a work folder with a shorter path"));
    }
    Ok(path)
}

/// Returns true if a word is in a list whose words are separated by `, `.
pub fn is_among(word: &str, list: &str) -> bool {
    list.split(", ").any(|one| one == word)
}

/// Hint for a configuration with a part that no copy may have.
pub const LEAVE_OUT: &str = "name a copy of your configuration without it in the study";

/// Returns the reason why no copy may have a part that is on no list of harmless ones.
pub fn unknown(name: &str) -> String {
    format!("weir does not know what `{name}` contacts or writes, so a copy must not have it")
}

/// Returns the reason why no copy may have a part that runs a program of the user's.
pub fn runs_code(name: &str) -> String {
    format!("`{name}` runs code that could contact or write anything, which a copy must not do")
}

/// Returns the line end that a text uses.
pub fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(i) if text[..i].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Returns the letters behind a number.
pub fn unit(quantity: &str) -> &str {
    quantity.trim_start_matches(|c: char| c.is_ascii_digit())
}

/// Returns a number of the smallest unit in the unit of another quantity. None if that unit is not among `units`, or if
/// the number does not come out even.
pub fn like(other: &str, number: u64, units: &[(&str, u64)]) -> Option<String> {
    let suffix = unit(other);
    let (_, size) = units.iter().find(|(name, _)| *name == suffix)?;
    let is_even = number.is_multiple_of(*size) && (number > 0 || suffix.is_empty());
    is_even.then(|| format!("{}{suffix}", number / size))
}

/// Returns the width in columns of the beginning of a line, with tab stops every eight.
pub fn width(text: &str) -> usize {
    text.chars().fold(0, |column, c| match c {
        '\t' => column / 8 * 8 + 8,
        _ => column + 1,
    })
}

/// Returns the blanks from one column to another, at least one, with tabs if `like` has some.
pub fn filled(from: usize, to: usize, like: &str) -> String {
    if like.contains('\t') {
        "\t".repeat((to.div_ceil(8)).saturating_sub(from / 8).max(1))
    } else {
        " ".repeat(to.saturating_sub(from).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_has_no_column() {
        for (text, at, expected) in
            [("\u{feff}ab", 4, (1, 2)), ("\u{feff}a\né b", 8, (2, 3)), ("ab", 9, (1, 3))]
        {
            assert_eq!(line_and_column(text, at), expected, "{text:?}");
        }
    }
}
