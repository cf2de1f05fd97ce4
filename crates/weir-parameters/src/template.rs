//! Directive templates: literal text with placeholders such as `{value}` and `{logs}`.

/// The placeholder that stands for the level.
pub(crate) const VALUE: &str = "{value}";

/// Puts `level` where `{value}` stands and leaves other placeholders alone.
pub(crate) fn fill(template: &str, level: &str) -> String {
    template.replace(VALUE, level)
}

/// One piece of a template.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Literal(&'a str),
    Placeholder(&'a str),
}

/// Splits at placeholders: `{`, lower-case letters, `}`. Any other brace is literal text.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut literal_from = 0;
    let mut at = 0;
    while let Some(open) = template[at..].find('{').map(|i| at + i) {
        let name_ends = template[open + 1..]
            .find(|c: char| !c.is_ascii_lowercase())
            .map(|i| open + 1 + i);
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

/// The names of the placeholders, braces included.
pub(crate) fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    pieces(template)
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Placeholder(name) => Some(name),
            Piece::Literal(_) => None,
        })
}

/// Whether `text` was made from `template`: `None` if not, else the text that stands where
/// `{value}` does (`Some(None)` in a template without it). Words are compared, not the white space
/// between them.
pub(crate) fn value_in(template: &str, text: &str) -> Option<Option<String>> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut value = None;
    matches(&pieces(template), &text, &mut value).then_some(value)
}

fn matches(pieces: &[Piece<'_>], text: &str, value: &mut Option<String>) -> bool {
    let Some((piece, rest)) = pieces.split_first() else {
        return text.is_empty();
    };
    match piece {
        Piece::Literal(literal) => text
            .strip_prefix(literal)
            .is_some_and(|text| matches(rest, text, value)),
        // Shortest first; templates have two placeholders at most, so this stays small.
        Piece::Placeholder(name) => (1..=text.len())
            .filter(|&end| text.is_char_boundary(end))
            .any(|end| {
                let found = matches(rest, &text[end..], value);
                if found && *name == VALUE {
                    *value = Some(text[..end].to_owned());
                }
                found
            }),
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
    fn other_placeholders_match_anything_and_stay() {
        let template = "access_log {logs}/access.log";
        assert_eq!(fill(template, "on"), template);
        assert_eq!(value_in(template, "access_log /a/é/access.log"), Some(None));
        assert_eq!(
            value_in(template, "access_log /a/access.log buffer=64k"),
            None
        );
        assert_eq!(placeholders("a {b} {C} {} {d").collect::<Vec<_>>(), ["{b}"]);
    }
}
