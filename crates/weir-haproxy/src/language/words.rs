//! Splits lines into words as described in HAProxy's configuration manual (§2.1 and §2.2).
//!
//! Blanks separate words, `#` begins a comment, a backslash or quotes protect. In single quotes nothing is interpreted;
//! in double quotes backslashes and variables are ([`Variables`]). In addresses variables are interpreted regardless of
//! quotes. A backslash at the end of a line protects nothing: no version that was read or tried joins lines.

use std::borrow::Cow;
use std::ops::Range;

use super::variables::{Variables, Written};

/// One word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'t> {
    /// Meaning of the word: without quotes and backslashes, with variables replaced.
    pub text: Cow<'t, str>,
    /// Byte range in the file's text, with quotes.
    pub span: Range<usize>,
    /// Name of the first variable in the word whose value is not known; all such variables stand in the text as they
    /// are written.
    pub variable: Option<String>,
}

/// Error for a quote that is not closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unbalanced {
    /// Byte offset of the opening quote.
    pub(super) at: usize,
}

/// Splits the line at `line` in `text` into words, with these values of variables.
pub(super) fn split<'t>(
    text: &'t str,
    line: Range<usize>,
    variables: &Variables,
) -> Result<Vec<Word<'t>>, Unbalanced> {
    let text = &text[..line.end];
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let mut at = line.start;
    loop {
        while at < bytes.len() && is_blank(bytes[at]) {
            at += 1;
        }
        if at >= bytes.len() || bytes[at] == b'#' {
            return Ok(words);
        }
        let word = parse(text, at, variables)?;
        at = word.span.end;
        words.push(word);
    }
}

/// Returns true for a blank as isspace(3) defines it in the C locale, which HAProxy uses.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn parse<'t>(text: &'t str, from: usize, variables: &Variables) -> Result<Word<'t>, Unbalanced> {
    let bytes = text.as_bytes();
    let plain = bytes[from..]
        .iter()
        .position(|&b| is_blank(b) || matches!(b, b'#' | b'"' | b'\'' | b'\\'))
        .map_or(bytes.len(), |i| from + i);
    if plain == bytes.len() || is_blank(bytes[plain]) || bytes[plain] == b'#' {
        return Ok(Word {
            text: Cow::Borrowed(&text[from..plain]),
            span: from..plain,
            variable: None,
        });
    }
    let mut protected =
        Protected { text, variables, meaning: bytes[from..plain].to_vec(), variable: None };
    let end = protected.read(plain)?;
    Ok(Word {
        // `\xNN` can make bytes that are no characters; the span still has what the user wrote.
        text: Cow::Owned(String::from_utf8_lossy(&protected.meaning).into_owned()),
        span: from..end,
        variable: protected.variable,
    })
}

/// A word with quotes or backslashes, as far as it has been read.
struct Protected<'t, 'v> {
    text: &'t str,
    variables: &'v Variables,
    meaning: Vec<u8>,
    variable: Option<String>,
}

impl Protected<'_, '_> {
    /// Reads the rest of the word, and returns its end.
    fn read(&mut self, from: usize) -> Result<usize, Unbalanced> {
        let bytes = self.text.as_bytes();
        let mut quote: Option<(u8, usize)> = None;
        let mut at = from;
        while let Some(&byte) = bytes.get(at) {
            match (quote.map(|(mark, _)| mark), byte) {
                (None, b'#') => break,
                (None, byte) if is_blank(byte) => break,
                (None, b'"' | b'\'') => quote = Some((byte, at)),
                (Some(mark), byte) if mark == byte => quote = None,
                (None | Some(b'"'), b'\\') => {
                    at += escape(&bytes[at..], quote.is_some(), &mut self.meaning);
                    continue;
                }
                (Some(b'"'), b'$') => {
                    at += self.expand(at);
                    continue;
                }
                _ => self.meaning.push(byte),
            }
            at += 1;
        }
        match quote {
            None => Ok(at),
            Some((_, at)) => Err(Unbalanced { at }),
        }
    }

    /// Appends the value of a variable, or the variable itself if the value is not known. Returns the length of the
    /// variable in the text.
    fn expand(&mut self, at: usize) -> usize {
        let tail = &self.text[at..];
        let Some(written) = Written::first(tail) else {
            self.meaning.push(b'$');
            return 1;
        };
        let raw = &tail[..written.length];
        let value = self.variables.value(&written);
        if value.is_none() {
            self.variable.get_or_insert_with(|| written.name.to_owned());
        }
        let expansion = value.unwrap_or_else(|| raw.to_owned());
        self.meaning.extend_from_slice(expansion.as_bytes());
        written.length
    }
}

/// Appends the meaning of a backslash sequence. Returns the length of the sequence.
fn escape(bytes: &[u8], in_quotes: bool, meaning: &mut Vec<u8>) -> usize {
    let (byte, length) = match bytes.get(1) {
        Some(b't') => (b'\t', 2),
        Some(b'n') => (b'\n', 2),
        Some(b'r') => (b'\r', 2),
        Some(b'x') => match bytes.get(2..4).and_then(hexadecimal) {
            Some(byte) => (byte, 4),
            None => (b'\\', 1),
        },
        Some(byte @ (b' ' | b'\\' | b'#' | b'\'' | b'"')) => (*byte, 2),
        Some(b'$') if in_quotes => (b'$', 2),
        _ => (b'\\', 1),
    };
    meaning.push(byte);
    length
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let words = split_line(line).unwrap();
        words.into_iter().map(|word| word.text.into_owned()).collect()
    }

    fn split_line(line: &str) -> Result<Vec<Word<'_>>, Unbalanced> {
        split(line, 0..line.len(), &Variables::default())
    }

    /// Checks the examples that the manual calls strictly equivalent.
    #[test]
    fn quotes_and_backslashes_are_the_manuals() {
        for line in [
            r#"log-format %{+Q}o\ %t\ %s\ %{-Q}r"#,
            r#"log-format "%{+Q}o %t %s %{-Q}r""#,
            r#"log-format '%{+Q}o %t %s %{-Q}r'"#,
            r#"log-format "%{+Q}o %t"' %s %{-Q}r'"#,
            r#"log-format "%{+Q}o %t"' %s'\ %{-Q}r"#,
        ] {
            assert_eq!(texts(line), ["log-format", "%{+Q}o %t %s %{-Q}r"], "{line}");
        }
        assert_eq!(texts(r#"a 'b#\' "\$C\x41" d\#e f#g"#), ["a", r"b#\", "$CA", "d#e", "f"]);
        assert_eq!(texts("\t a\tb \r"), ["a", "b"]);
        assert_eq!(texts(r#"a "" b"#), ["a", "", "b"]);
        assert_eq!(texts("a \\"), ["a", "\\"]);
        assert_eq!(texts("# only a comment"), Vec::<String>::new());
    }

    #[test]
    fn a_quote_that_is_left_open_has_its_place() {
        assert_eq!(split_line("a \"b c"), Err(Unbalanced { at: 2 }));
        assert_eq!(split_line("a \"b\\\" c"), Err(Unbalanced { at: 2 }));
        assert_eq!(split_line("a 'b\\'").unwrap()[1].text, "b\\");
    }
}
