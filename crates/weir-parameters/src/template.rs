//! Directive templates: literal text with placeholders such as `{value}` and `{logs}`.

use weir_model::quantity::{parse_bytes, parse_duration};

/// The placeholder that stands for the level.
pub(crate) const VALUE: &str = "{value}";
/// Placeholder for a duration in seconds, with a fraction if needed.
const SECONDS: &str = "{seconds}";
/// Placeholder for a duration in milliseconds.
const MILLISECONDS: &str = "{milliseconds}";
/// Placeholder for a size in bytes.
const BYTES: &str = "{bytes}";

/// Placeholders that stand for the level in some unit.
pub(crate) const LEVELS: [&str; 4] = [VALUE, SECONDS, MILLISECONDS, BYTES];

/// Replaces `{value}` and the placeholders of units by `level` and leaves other placeholders alone. A level that is a
/// word is inserted as it is, whatever the unit.
pub(crate) fn fill(template: &str, level: &str) -> String {
    LEVELS
        .iter()
        .filter(|placeholder| template.contains(**placeholder))
        .fold(template.to_owned(), |text, placeholder| {
            text.replace(placeholder, &in_unit(placeholder, level))
        })
}

fn in_unit(placeholder: &str, level: &str) -> String {
    let number = match placeholder {
        SECONDS => parse_duration(level).ok().map(|time| time.as_secs_f64().to_string()),
        MILLISECONDS => parse_duration(level).ok().map(|time| time.as_millis().to_string()),
        BYTES => parse_bytes(level).ok().map(|bytes| bytes.to_string()),
        _ => None,
    };
    number.unwrap_or_else(|| level.to_owned())
}

/// Converts a number in the unit of a placeholder to a level.
fn from_unit(placeholder: &str, number: &str) -> String {
    let is_number = number.parse::<f64>().is_ok();
    match placeholder {
        SECONDS if is_number => format!("{number}s"),
        MILLISECONDS if is_number => format!("{number}ms"),
        _ => number.to_owned(),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Literal(&'a str),
    Placeholder(&'a str),
}

/// Splits a template at its placeholders: `{`, lower-case letters, `}`. Any other brace is literal text.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut literal_from = 0;
    let mut at = 0;
    while let Some(open) = template[at..].find('{').map(|i| at + i) {
        let name_ends =
            template[open + 1..].find(|c: char| !c.is_ascii_lowercase()).map(|i| open + 1 + i);
        match name_ends {
            Some(close) if close > open + 1 && template[close..].starts_with('}') => {
                pieces.push(Piece::Literal(&template[literal_from..open]));
                pieces.push(Piece::Placeholder(&template[open..=close]));
                at = close + 1;
                literal_from = at;
            }
            _ => at = open + 1,
        }
    }
    pieces.push(Piece::Literal(&template[literal_from..]));
    pieces
}

/// Returns the names of the placeholders, braces included.
pub(crate) fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    pieces(template).into_iter().filter_map(|piece| match piece {
        Piece::Placeholder(name) => Some(name),
        Piece::Literal(_) => None,
    })
}

/// Matches `text` against `template`. Returns `None` if it does not match, else the level in the place of `{value}`
/// (`Some(None)` for a template without it). Words are compared, not the white space between them.
pub(crate) fn value_in(template: &str, text: &str) -> Option<Option<String>> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut value = None;
    matches(&pieces(template), &words, &mut value).then_some(value)
}

fn matches(pieces: &[Piece<'_>], text: &str, value: &mut Option<String>) -> bool {
    let Some((piece, rest)) = pieces.split_first() else {
        return text.is_empty();
    };
    match piece {
        Piece::Literal(literal) => {
            text.strip_prefix(literal).is_some_and(|text| matches(rest, text, value))
        }
        // Shortest first; templates have two placeholders at most, so this stays small.
        Piece::Placeholder(name) => {
            (1..=text.len()).filter(|&end| text.is_char_boundary(end)).any(|end| {
                let is_match = matches(rest, &text[end..], value);
                if is_match && LEVELS.contains(name) {
                    *value = Some(from_unit(name, &text[..end]));
                }
                is_match
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_and_recognised() {
        let template = "open_file_cache {value}";
        let text = fill(template, "max=10 inactive=5s");
        assert_eq!(text, "open_file_cache max=10 inactive=5s");
        assert_eq!(
            value_in(template, "open_file_cache  max=10\tinactive=5s"),
            Some(Some("max=10 inactive=5s".to_owned()))
        );
        assert_eq!(value_in(template, "open_file_cache_valid 1s"), None);
        assert_eq!(value_in(template, "open_file_cache "), None);
    }

    #[test]
    fn a_level_is_written_in_the_unit_that_is_asked_for() {
        for (template, level, text) in [
            ("timeout client {milliseconds}", "1500ms", "timeout client 1500"),
            ("\"{seconds}s\"", "250ms", "\"0.25s\""),
            ("Timeout {seconds}", "60s", "Timeout 60"),
            ("tune.bufsize {bytes}", "16k", "tune.bufsize 16384"),
            ("Timeout {seconds}", "off", "Timeout off"),
        ] {
            assert_eq!(fill(template, level), text);
            let read = value_in(template, text).flatten().unwrap();
            assert_eq!(fill(template, &read), text, "{read}");
        }
    }

    #[test]
    fn other_placeholders_match_anything_and_stay() {
        let template = "access_log {logs}/access.log";
        assert_eq!(fill(template, "on"), template);
        assert_eq!(value_in(template, "access_log /a/é/access.log"), Some(None));
        assert_eq!(value_in(template, "access_log /a/access.log buffer=64k"), None);
        assert_eq!(placeholders("a {b} {C} {} {d").collect::<Vec<_>>(), ["{b}"]);
    }
}
