//! Lines as HAProxy's configuration manual cuts them into words (§2.1 and §2.2).
//!
//! Blanks separate words, `#` begins a comment, a backslash or quotes protect. In single quotes
//! nothing is interpreted; in double quotes a backslash is, and variables are, which are left as
//! they stand here: their values are the proxy's to know. A backslash at the end of a line protects
//! nothing: no version that was read or tried joins lines.

use std::borrow::Cow;
use std::ops::Range;

/// One word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'t> {
    /// What it means: without quotes and backslashes, variables not expanded.
    pub text: Cow<'t, str>,
    /// Its bytes in the file's text, quotes included.
    pub span: Range<usize>,
}

/// A quote that nothing closes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unbalanced {
    /// Byte of the text where it opens.
    pub(super) at: usize,
}

/// The words of the line that stands at `line` in `text`.
pub(super) fn split(text: &str, line: Range<usize>) -> Result<Vec<Word<'_>>, Unbalanced> {
    let bytes = &text.as_bytes()[..line.end];
    let mut words = Vec::new();
    let mut at = line.start;
    loop {
        while at < bytes.len() && is_blank(bytes[at]) {
            at += 1;
        }
        if at >= bytes.len() || bytes[at] == b'#' {
            return Ok(words);
        }
        let word = word(text, bytes, at)?;
        at = word.span.end;
        words.push(word);
    }
}

/// What isspace(3) says in the C locale, which HAProxy asks.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn word<'t>(text: &'t str, bytes: &[u8], from: usize) -> Result<Word<'t>, Unbalanced> {
    let plain = bytes[from..]
        .iter()
        .position(|&b| is_blank(b) || matches!(b, b'#' | b'"' | b'\'' | b'\\'))
        .map_or(bytes.len(), |i| from + i);
    if plain == bytes.len() || is_blank(bytes[plain]) || bytes[plain] == b'#' {
        return Ok(Word {
            text: Cow::Borrowed(&text[from..plain]),
            span: from..plain,
        });
    }
    let mut meaning = bytes[from..plain].to_vec();
    let end = protected(bytes, plain, &mut meaning)?;
    Ok(Word {
        // `\xNN` can make bytes that are no characters; the span still has what the user wrote.
        text: Cow::Owned(String::from_utf8_lossy(&meaning).into_owned()),
        span: from..end,
    })
}

/// Reads on to the end of a word with quotes or backslashes, and says where that is.
fn protected(bytes: &[u8], from: usize, meaning: &mut Vec<u8>) -> Result<usize, Unbalanced> {
    let mut quote: Option<(u8, usize)> = None;
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match (quote.map(|(mark, _)| mark), byte) {
            (None, b'#') => break,
            (None, byte) if is_blank(byte) => break,
            (None, b'"' | b'\'') => quote = Some((byte, at)),
            (Some(mark), byte) if mark == byte => quote = None,
            (None | Some(b'"'), b'\\') => {
                at += escape(&bytes[at..], quote.is_some(), meaning);
                continue;
            }
            _ => meaning.push(byte),
        }
        at += 1;
    }
    match quote {
        None => Ok(at),
        Some((_, at)) => Err(Unbalanced { at }),
    }
}

/// Appends what a backslash sequence means; how many bytes it has.
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
        let words = split(line, 0..line.len()).unwrap();
        words
            .into_iter()
            .map(|word| word.text.into_owned())
            .collect()
    }

    /// The examples that the manual calls strictly equivalent.
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
        assert_eq!(
            texts(r#"a 'b#\' "\$C\x41" d\#e f#g"#),
            ["a", r"b#\", "$CA", "d#e", "f"]
        );
        assert_eq!(texts("\t a\tb \r"), ["a", "b"]);
        assert_eq!(texts(r#"a "" b"#), ["a", "", "b"]);
        assert_eq!(texts("a \\"), ["a", "\\"]);
        assert_eq!(texts("# only a comment"), Vec::<String>::new());
    }

    #[test]
    fn a_quote_that_is_left_open_has_its_place() {
        assert_eq!(split("a \"b c", 0..6), Err(Unbalanced { at: 2 }));
        assert_eq!(split("a \"b\\\" c", 0..8), Err(Unbalanced { at: 2 }));
        assert_eq!(split("a 'b\\'", 0..6).unwrap()[1].text, "b\\");
    }
}
