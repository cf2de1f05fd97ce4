//! Values as text, in the style of their surroundings.

use serde_json::Value as Json;

use super::tree::{Format, Style, plain};
use crate::place::like;

/// How the lines of a document begin and end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout<'t> {
    pub(super) format: Format,
    /// One step of indentation.
    pub(super) unit: &'t str,
    pub(super) line_end: &'static str,
    /// Whether the document has more than one line.
    pub(super) many_lines: bool,
    /// Whether keys and texts are in quotes that need none.
    pub(super) quotes: bool,
    /// Whether dashes of YAML's lists stand below the first letter of their key, and not further in.
    pub(super) dashes_at_key: bool,
    /// Whether there are blanks inside of YAML's braces.
    pub(super) padded: bool,
    /// Whether lists of scalars have one line for all of them.
    pub(super) short_lists: bool,
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
            Json::Array(list) if !list.is_empty() && self.many_lines && !self.is_short(list) => {
                ("[", list.iter().map(item).collect(), "]")
            }
            _ => return spaced(value),
        };
        let end = self.line_end;
        let items = items.join(&format!(",{end}{inner}"));
        format!("{open}{end}{inner}{items}{end}{indent}{close}")
    }

    fn is_short(&self, list: &[Json]) -> bool {
        self.short_lists && !list.iter().any(|item| item.is_object() || item.is_array())
    }

    /// An entry in YAML's block style, the first line not indented.
    pub(super) fn entry(&self, key: &str, value: &Json, indent: &str) -> String {
        format!("{}:{}", self.key(key), self.after_colon(value, indent))
    }

    fn key(&self, key: &str) -> String {
        match self.format == Format::Yaml && !self.quotes && is_plain(key) {
            true => key.to_owned(),
            false => quoted(key),
        }
    }

    /// A value that stands in no other's place.
    fn new_scalar(&self, value: &Json) -> String {
        let style = match self.quotes {
            true => Style::Double,
            false => Style::Plain,
        };
        self.scalar(value, style)
    }

    /// A key and its value in braces that are there, whose entries have lines of their own with this
    /// indentation, or one line for all.
    pub(super) fn flow_entry(&self, key: &str, value: &Json, indent: Option<&str>) -> String {
        let value = match indent {
            Some(indent) => self.collection(value, indent),
            None => self.flow(value),
        };
        format!("{}: {value}", self.key(key))
    }

    /// A value in brackets that are there, or in the place of another one: on as many lines as a JSON
    /// document takes, in YAML on one.
    pub(super) fn collection(&self, value: &Json, indent: &str) -> String {
        match self.format == Format::Json || self.quotes {
            true => self.brackets(value, indent),
            false => self.flow(value),
        }
    }

    /// A value on one line.
    pub(super) fn flow(&self, value: &Json) -> String {
        if self.format == Format::Json || self.quotes {
            return spaced(value);
        }
        match value {
            Json::Object(map) if !map.is_empty() => {
                let entries = map
                    .iter()
                    .map(|(key, value)| self.flow_entry(key, value, None));
                let entries = entries.collect::<Vec<_>>().join(", ");
                match self.padded {
                    true => format!("{{ {entries} }}"),
                    false => format!("{{{entries}}}"),
                }
            }
            Json::Array(list) if !list.is_empty() => {
                let items = list.iter().map(|item| self.flow(item));
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
            value => self.new_scalar(value),
        }
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
            Json::Array(list) if !list.is_empty() => {
                let dash = match self.dashes_at_key {
                    true => indent,
                    false => &inner,
                };
                let item = |item| format!("{}{dash}- {}", self.line_end, self.item(item, dash));
                list.iter().map(item).collect()
            }
            value => format!(" {}", self.new_scalar(value)),
        }
    }

    /// An item of a list in YAML's block style, behind its dash, which is indented by `indent`.
    pub(super) fn item(&self, value: &Json, indent: &str) -> String {
        match value {
            Json::Object(map) if !map.is_empty() => {
                let inner = format!("{indent}  ");
                let entries = map
                    .iter()
                    .map(|(key, value)| self.entry(key, value, &inner));
                let entries: Vec<String> = entries.collect();
                entries.join(&format!("{}{inner}", self.line_end))
            }
            Json::Array(list) if !list.is_empty() => self.flow(value),
            value => self.new_scalar(value),
        }
    }
}

/// A duration of Caddy's as the author of the one that it replaces would have written it: in minutes or
/// hours, where it comes out even. Anything else stays as it is.
pub(super) fn in_style(found: &Json, value: String) -> String {
    const SECONDS: [(&str, u64); 2] = [("m", 60), ("h", 3600)];
    let wanted = serde_json::from_str::<String>(&value).ok();
    let seconds = wanted.and_then(|it| it.strip_suffix('s')?.parse().ok());
    let styled = seconds.zip(found.as_str());
    let styled = styled.and_then(|(seconds, found)| like(found, seconds, &SECONDS));
    styled.map_or(value, |styled| quoted(&styled))
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}

/// A value on one line with the blanks that people write: JSON, and YAML's flow style too.
fn spaced(value: &Json) -> String {
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
