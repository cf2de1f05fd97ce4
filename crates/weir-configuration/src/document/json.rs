//! Reader of JSON that records the position of every value.

use super::tree::{Entry, MOST_VALUES, Node, Style, Value};
use crate::place::error;
use crate::{ConfigurationError, SourceFile};

/// Reads a document.
///
/// # Errors
/// Returns an error if the text is not JSON, with the reason and the position from serde_json, which also limits the
/// depth to 128; or if it has too many values.
pub(super) fn parse(file: &SourceFile) -> Result<Node, ConfigurationError> {
    // Every value but the first comes behind one of these; some stand in texts.
    let mut before = file.text.bytes().enumerate();
    if let Some((at, _)) =
        before.by_ref().filter(|(_, byte)| matches!(byte, b',' | b'[' | b'{')).nth(MOST_VALUES)
    {
        return Err(error(file, at, "too many values"));
    }
    serde_json::from_str::<serde_json::Value>(&file.text).map_err(|e| {
        let at = byte_of(&file.text, e.line(), e.column());
        let text = e.to_string();
        let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
        let message = format!("this is not JSON: {reason}");
        error(file, at, message).hint("check commas, quotes and braces here and in the line above")
    })?;
    Ok(Reader { text: &file.text, at: 0 }.node())
}

/// Converts a position from serde_json to a byte offset. serde_json counts columns in bytes, and includes the one that
/// it complains about.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let at = (before + column.saturating_sub(1)).min(text.len());
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Finds the positions of values in a text that is known to be JSON.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn node(&mut self) -> Node {
        self.blanks();
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.map(),
            Some(b'[') => self.list(),
            Some(b'"') => Value::Scalar { text: self.string(), style: Style::Double },
            _ => self.word(),
        };
        Node { span: start..self.at, value, anchor: None }
    }

    fn map(&mut self) -> Value {
        let mut entries = Vec::new();
        while self.next_item(b'}') {
            let start = self.at;
            let key = self.string();
            let key_span = start..self.at;
            self.blanks();
            self.at += 1;
            let value = self.node();
            entries.push(Entry { key, key_span, value });
        }
        Value::Map { entries, flow: true }
    }

    fn list(&mut self) -> Value {
        let mut items = Vec::new();
        while self.next_item(b']') {
            items.push(self.node());
        }
        Value::List(items)
    }

    /// Steps over an opening bracket or a comma; returns true if something follows before `close`.
    fn next_item(&mut self, close: u8) -> bool {
        self.blanks();
        if self.peek() != Some(close) {
            self.at += 1;
            self.blanks();
        }
        let ends = self.peek().is_none_or(|byte| byte == close);
        if ends {
            self.at = (self.at + 1).min(self.text.len());
        }
        !ends
    }

    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        serde_json::from_str(&self.text[start..self.at]).unwrap_or_default()
    }

    fn word(&mut self) -> Value {
        let tail = &self.text[self.at..];
        let end = tail.find(|c: char| c.is_ascii_whitespace() || matches!(c, ',' | ']' | '}'));
        let word = &tail[..end.unwrap_or(tail.len())];
        self.at += word.len();
        Value::Scalar { text: word.to_owned(), style: Style::Plain }
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}
