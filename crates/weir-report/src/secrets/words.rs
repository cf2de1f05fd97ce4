//! Words of a line, and what is shown of a value.

use super::secret::{MASK, is_harmless, is_harmless_key};

/// A piece of YAML or JSON of which all values are secret but those of harmless keys.
pub(super) fn nested(piece: &str) -> String {
    let (mut out, mut at, mut is_harmless_one) = (String::new(), 0, false);
    while let Some(c) = piece[at..].chars().next() {
        if matches!(c, ' ' | '\t' | '{' | '}' | '[' | ']' | ',' | ':' | ';') {
            out.push(c);
            at += c.len_utf8();
            continue;
        }
        let word =
            word(&piece[at..], |c| matches!(c, ' ' | '\t' | '{' | '}' | '[' | ']' | ',' | ':'));
        at += word.len();
        let inner = unquoted(word);
        let is_key = piece[at..].trim_start().starts_with(':');
        if is_key {
            is_harmless_one = is_harmless_key(inner);
        } else if !is_harmless_one {
            out += &mask_of(word);
            continue;
        }
        out += word;
    }
    out
}

/// The quoted string that a text begins with, or else all up to a character that ends it. A backslash
/// belongs to what stands behind it.
pub(super) fn word(text: &str, ends: impl Fn(char) -> bool) -> &str {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(usize::from(quote.is_some())) {
        match quote {
            _ if is_escaped => is_escaped = false,
            // In single quotes a backslash is one.
            _ if c == '\\' && quote != Some('\'') => is_escaped = true,
            Some(quote) if c == quote => return &text[..at + 1],
            None if ends(c) => return &text[..at],
            _ => {}
        }
    }
    text
}

pub(super) fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '\''])
}

/// Returns the text shown for a value: itself where it is no secret, in quotes where it was.
pub(super) fn mask_of(word: &str) -> String {
    let inner = unquoted(word);
    let quote = word.chars().next().filter(|c| matches!(c, '"' | '\''));
    match quote {
        _ if is_harmless(inner) => word.to_owned(),
        Some(quote) => format!("{quote}{MASK}{quote}"),
        // Where a number may stand without quotes, text may not.
        None if inner.parse::<f64>().is_ok() => format!("\"{MASK}\""),
        None => MASK.to_owned(),
    }
}

/// Length of the value in the query of a URL that a text begins with, and what is shown of it.
pub(super) fn query_value(text: &str) -> (usize, &str) {
    if text.starts_with(MASK) {
        return (MASK.len(), MASK);
    }
    if text.starts_with(['"', '\'']) {
        return (0, "");
    }
    // What stands behind a URL in prose or in a list is not its own.
    let value = word(text, |c| " \t&;#<>\"'`".contains(c)).trim_end_matches([',', ')', ']']);
    let shown = if is_harmless(value) { value } else { MASK };
    (value.len(), shown)
}

/// Bytes up to the end of the list or mapping that a text begins with.
pub(super) fn closed(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(c) = text[at..].chars().next() {
        let length = match c {
            '"' | '\'' => word(&text[at..], |_| false).len(),
            c => c.len_utf8(),
        };
        at += length;
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
