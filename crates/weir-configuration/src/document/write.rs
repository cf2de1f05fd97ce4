//! Writes values as text, in the style of their surroundings.

use serde_json::Value as Json;

use super::tree::{Format, Style, plain};

/// Style of a document's text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout<'t> {
    pub(super) format: Format,
    /// One step of indentation.
    pub(super) unit: &'t str,
    pub(super) line_end: &'static str,
    /// True if the document has more than one line.
    pub(super) many_lines: bool,
    /// True if keys and texts are in quotes even if they need none.
    pub(super) quotes: bool,
    /// True if dashes of YAML's lists stand below the first letter of their key, and not further in.
    pub(super) dashes_at_key: bool,
    /// True if there are blanks inside of YAML's braces.
    pub(super) padded: bool,
    /// True if a list of scalars is written on one line.
    pub(super) short_lists: bool,
}

impl Layout<'_> {
    /// Returns a scalar as text, in the style of the one that it replaces.
    pub(super) fn scalar(&self, value: &Json, style: Style) -> String {
        match (self.format, value, style) {
            (Format::Yaml, Json::String(text), Style::Plain) if is_plain(text) => text.clone(),
            (Format::Yaml, Json::String(text), Style::Single) if is_printable(text) => {
                format!("'{}'", text.replace('\'', "''"))
            }
            _ => value.to_string(),
        }
    }

    /// Returns a value as JSON, on as many lines as the document would use, the first one not indented.
    pub(super) fn brackets(&self, value: &Json, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let (open, items, close) = match value {
            Json::Object(map) if !map.is_empty() && self.many_lines => (
                "{",
                map.iter()
                    .map(|(key, value)| format!("{}: {}", quote(key), self.brackets(value, &inner)))
                    .collect::<Vec<_>>(),
                "}",
            ),
            Json::Array(list) if !list.is_empty() && self.many_lines && !self.is_short(list) => {
                ("[", list.iter().map(|value| self.brackets(value, &inner)).collect(), "]")
            }
            _ => return print_spaced(value),
        };
        let end = self.line_end;
        let joined = items.join(&format!(",{end}{inner}"));
        format!("{open}{end}{inner}{joined}{end}{indent}{close}")
    }

    fn is_short(&self, list: &[Json]) -> bool {
        self.short_lists && !list.iter().any(|item| item.is_object() || item.is_array())
    }

    /// Returns an entry in YAML's block style, the first line not indented.
    pub(super) fn entry(&self, key: &str, value: &Json, indent: &str) -> String {
        format!("{}:{}", self.key(key), self.after_colon(value, indent))
    }

    fn key(&self, key: &str) -> String {
        if self.format == Format::Yaml && !self.quotes && is_plain(key) {
            key.to_owned()
        } else {
            quote(key)
        }
    }

    /// Returns a scalar that replaces no other as text.
    fn new_scalar(&self, value: &Json) -> String {
        let style = if self.quotes { Style::Double } else { Style::Plain };
        self.scalar(value, style)
    }

    /// Returns a key and its value for an object in braces, whose entries have lines of their own with this
    /// indentation, or are all on one line.
    pub(super) fn flow_entry(&self, key: &str, value: &Json, indent: Option<&str>) -> String {
        let value = match indent {
            Some(indent) => self.collection(value, indent),
            None => self.flow(value),
        };
        format!("{}: {value}", self.key(key))
    }

    /// Returns a value for a place within brackets, or in place of another value in brackets: on as many lines as a
    /// JSON document uses, in YAML on one.
    pub(super) fn collection(&self, value: &Json, indent: &str) -> String {
        if self.format == Format::Json || self.quotes {
            self.brackets(value, indent)
        } else {
            self.flow(value)
        }
    }

    /// Returns a value on one line.
    pub(super) fn flow(&self, value: &Json) -> String {
        if self.format == Format::Json || self.quotes {
            return print_spaced(value);
        }
        match value {
            Json::Object(map) if !map.is_empty() => {
                let entries = map
                    .iter()
                    .map(|(key, value)| self.flow_entry(key, value, None))
                    .collect::<Vec<_>>()
                    .join(", ");
                if self.padded { format!("{{ {entries} }}") } else { format!("{{{entries}}}") }
            }
            Json::Array(list) if !list.is_empty() => {
                let items = list.iter().map(|item| self.flow(item));
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
            value => self.new_scalar(value),
        }
    }

    /// Returns the text behind a key in YAML's block style, when the key is indented by `indent`.
    pub(super) fn after_colon(&self, value: &Json, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        match value {
            Json::Object(map) if !map.is_empty() => map
                .iter()
                .map(|(key, value)| {
                    format!("{}{inner}{}", self.line_end, self.entry(key, value, &inner))
                })
                .collect(),
            Json::Array(list) if !list.is_empty() => {
                let dash = if self.dashes_at_key { indent } else { &inner };
                list.iter()
                    .map(|item| format!("{}{dash}- {}", self.line_end, self.item(item, dash)))
                    .collect()
            }
            value => format!(" {}", self.new_scalar(value)),
        }
    }

    /// Returns an item of a list in YAML's block style, to be written behind its dash, which is indented by `indent`.
    pub(super) fn item(&self, value: &Json, indent: &str) -> String {
        match value {
            Json::Object(map) if !map.is_empty() => {
                let inner = format!("{indent}  ");
                let entries = map.iter().map(|(key, value)| self.entry(key, value, &inner));
                let entries: Vec<String> = entries.collect();
                entries.join(&format!("{}{inner}", self.line_end))
            }
            Json::Array(list) if !list.is_empty() => self.flow(value),
            value => self.new_scalar(value),
        }
    }
}

/// Returns a text in quotes, as JSON.
fn quote(text: &str) -> String {
    Json::from(text).to_string()
}

/// Returns a value on one line with blanks behind colons and commas, valid in JSON and in YAML's flow style.
fn print_spaced(value: &Json) -> String {
    match value {
        Json::Object(map) if !map.is_empty() => {
            let entry =
                |(key, value): (&String, &Json)| format!("{}: {}", quote(key), print_spaced(value));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Json::Array(list) if !list.is_empty() => {
            format!("[{}]", list.iter().map(print_spaced).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// Returns true if YAML reads a text without quotes as itself, in any place.
fn is_plain(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '/');
    let all = text.chars().all(|c| c.is_ascii_alphanumeric() || "._/@+-".contains(c));
    let old_words = ["yes", "no", "on", "off", "y", "n"];
    let is_word = old_words.contains(&text.to_ascii_lowercase().as_str());
    first && all && !is_word && !is_number_like(text) && matches!(plain(text), Json::String(_))
}

/// Returns true if some reader of YAML takes a text for a number: `0x1f`, `1_000`, `1e3`. An address has more dots than
/// any number.
fn is_number_like(text: &str) -> bool {
    let number = text.chars().all(|c| c.is_ascii_hexdigit() || "._+-xo".contains(c));
    number && text.starts_with(|c: char| c.is_ascii_digit()) && text.matches('.').count() < 2
}

fn is_printable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
