//! Values as text, in the style of their surroundings.

use serde_json::Value as Json;

use super::tree::{Format, Style, plain};

/// How the lines of a document begin and end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout<'t> {
    pub(super) format: Format,
    /// One step of indentation.
    pub(super) unit: &'t str,
    pub(super) line_end: &'static str,
    /// Whether the document has more than one line.
    pub(super) many_lines: bool,
}

impl Layout<'_> {
    /// A scalar in the place of one that was written in some style.
    pub(super) fn scalar(&self, value: &Json, style: Style) -> String {
        match (self.format, value, style) {
            (Format::Yaml, Json::String(text), Style::Plain) if is_plain(text) => text.clone(),
            (Format::Yaml, Json::String(text), Style::Single) if is_printable(text) => {
                format!("'{}'", text.replace('\'', "''"))
            }
            _ => value.to_string(),
        }
    }

    /// A value as JSON on as many lines as the document would take, the first one not indented.
    pub(super) fn brackets(&self, value: &Json, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let item = |value: &Json| self.brackets(value, &inner);
        let (open, items, close) = match value {
            Json::Object(map) if !map.is_empty() && self.many_lines => {
                let entry =
                    |(key, value): (&String, &Json)| format!("{}: {}", quoted(key), item(value));
                ("{", map.iter().map(entry).collect::<Vec<_>>(), "}")
            }
            Json::Array(list) if !list.is_empty() && self.many_lines => {
                ("[", list.iter().map(item).collect(), "]")
            }
            _ => return spaced(value),
        };
        let end = self.line_end;
        let items = items.join(&format!(",{end}{inner}"));
        format!("{open}{end}{inner}{items}{end}{indent}{close}")
    }

    /// An entry in YAML's block style, the first line not indented.
    pub(super) fn entry(&self, key: &str, value: &Json, indent: &str) -> String {
        let key = if is_plain(key) {
            key.to_owned()
        } else {
            quoted(key)
        };
        format!("{key}:{}", self.after_colon(value, indent))
    }

    /// What stands behind a key in YAML's block style, when the key is indented by `indent`.
    pub(super) fn after_colon(&self, value: &Json, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let line = |text: String| format!("{}{inner}{text}", self.line_end);
        match value {
            Json::Object(map) if !map.is_empty() => map
                .iter()
                .map(|(key, value)| line(self.entry(key, value, &inner)))
                .collect(),
            Json::Array(list) if !list.is_empty() => list
                .iter()
                .map(|item| line(format!("- {}", self.item(item))))
                .collect(),
            value => format!(" {}", self.item(value)),
        }
    }

    /// An item of a list in YAML's block style.
    pub(super) fn item(&self, value: &Json) -> String {
        match value {
            Json::Object(_) | Json::Array(_) => spaced(value),
            value => self.scalar(value, Style::Plain),
        }
    }
}

/// A text as JSON has it.
pub(super) fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}

/// A value on one line with the blanks that people write: JSON, and YAML's flow style too.
pub(super) fn spaced(value: &Json) -> String {
    match value {
        Json::Object(map) if !map.is_empty() => {
            let entry =
                |(key, value): (&String, &Json)| format!("{}: {}", quoted(key), spaced(value));
            format!(
                "{{{}}}",
                map.iter().map(entry).collect::<Vec<_>>().join(", ")
            )
        }
        Json::Array(list) if !list.is_empty() => {
            format!(
                "[{}]",
                list.iter().map(spaced).collect::<Vec<_>>().join(", ")
            )
        }
        value => value.to_string(),
    }
}

/// Whether YAML reads a text without quotes as itself, wherever it stands.
fn is_plain(text: &str) -> bool {
    let first = text
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric() || c == '/');
    let all = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._/@+-".contains(c));
    let old_words = ["yes", "no", "on", "off", "y", "n"];
    let is_word = old_words.contains(&text.to_ascii_lowercase().as_str());
    first && all && !is_word && !is_number_like(text) && matches!(plain(text), Json::String(_))
}

/// Whether some reader of YAML takes a text for a number: `0x1f`, `1_000`, `1e3`. An address has more
/// dots than any number.
fn is_number_like(text: &str) -> bool {
    let number = text
        .chars()
        .all(|c| c.is_ascii_hexdigit() || "._+-xo".contains(c));
    number && text.starts_with(|c: char| c.is_ascii_digit()) && text.matches('.').count() < 2
}

fn is_printable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
