//! Matchers of Caddy's routes, as far as their result can be determined (`modules/caddyhttp/matchers.go`).

use serde_json::Value as Json;
use weir_configuration::names::is_found;

use super::passage::Passage;

/// Returns true if one of several sets of matchers takes a request; no sets at all take any request. None if this
/// cannot be determined.
pub(super) fn matches(sets: Option<&Json>, passage: &Passage<'_>) -> Option<bool> {
    let outcomes: Vec<Option<bool>> = sets
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .map(|set| all_of(set, |name, value| is_so(name, value, passage)))
        .collect();
    if outcomes.is_empty() || outcomes.contains(&Some(true)) {
        Some(true)
    } else if outcomes.contains(&None) {
        None
    } else {
        Some(false)
    }
}

/// Returns true if `is_so` holds for all entries of an object; None if this cannot be determined.
fn all_of(object: &Json, is_so: impl Fn(&str, &Json) -> Option<bool>) -> Option<bool> {
    let values: Vec<Option<bool>> =
        object.as_object()?.iter().map(|(name, value)| is_so(name, value)).collect();
    if values.contains(&Some(false)) {
        Some(false)
    } else {
        (!values.contains(&None)).then_some(true)
    }
}

fn is_so(name: &str, value: &Json, passage: &Passage<'_>) -> Option<bool> {
    let path = passage.path.as_deref().ok();
    match name {
        "host" => any_of(value, passage.host.as_deref()?, is_host),
        "path" => any_of(value, path?, is_path),
        "method" => any_of(value, passage.method?, str::eq),
        "path_regexp" => is_found(value["pattern"].as_str()?, false, path?),
        "header" => all_of(value, |name, values| {
            let header = passage.field(name)?;
            match values.as_array() {
                None => Some(header.is_empty()),
                Some(_) if header.is_empty() => Some(false),
                Some(values) if values.is_empty() => Some(true),
                Some(_) => any_of(&value[name], header, is_like),
            }
        }),
        "header_regexp" => all_of(value, |name, expression| {
            let pattern = expression["pattern"].as_str()?;
            match passage.field(name)? {
                "" => Some(false),
                header => is_found(pattern, false, header),
            }
        }),
        "protocol" => match value.as_str()? {
            "https" => Some(passage.is_tls),
            "http" => Some(!passage.is_tls),
            _ => None,
        },
        "not" => matches(Some(value), passage).map(|is_taken| !is_taken),
        _ => None,
    }
}

/// Returns true if a text matches one of a list of patterns. None if it matches none and one contains a placeholder,
/// whose value is not known.
fn any_of(list: &Json, text: &str, is_like: impl Fn(&str, &str) -> bool) -> Option<bool> {
    let patterns: Vec<&str> = list.as_array()?.iter().filter_map(Json::as_str).collect();
    if patterns.iter().any(|pattern| is_like(pattern, text)) {
        return Some(true);
    }
    let is_known = !patterns.iter().any(|pattern| pattern.contains('{'));
    is_known.then_some(false)
}

/// Returns true if a host matches a pattern as Caddy compares them: an asterisk stands for one label.
pub(super) fn is_host(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    let (own, labels) = (pattern.split('.'), host.split('.'));
    pattern == host
        || (own.clone().count() == labels.clone().count()
            && own.zip(labels).all(|(own, label)| own == "*" || own == label))
}

/// Returns true if a path matches a pattern as Caddy compares them: in any case of letters, with an asterisk at either
/// end for anything, or with any number of asterisks for parts without a slash (`MatchPath` of caddyhttp).
fn is_path(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (pattern.to_ascii_lowercase(), path.to_ascii_lowercase());
    if pattern.trim_matches('*').contains('*') {
        is_glob(&pattern, &path)
    } else {
        is_like(&pattern, &path)
    }
}

/// Returns true if a text matches a pattern in which an asterisk at either end stands for anything.
fn is_like(pattern: &str, text: &str) -> bool {
    let inner = pattern.trim_matches('*');
    match (pattern.starts_with('*'), pattern.ends_with('*')) {
        (true, true) => text.contains(inner),
        (true, false) => text.ends_with(inner),
        (false, true) => text.starts_with(inner),
        (false, false) => text == pattern,
    }
}

/// Returns true if a pattern matches a whole path; an asterisk stands for anything without a slash.
fn is_glob(pattern: &str, path: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else {
        return pattern == path;
    };
    path.strip_prefix(before).is_some_and(|rest| {
        let end = rest.find('/').unwrap_or(rest.len());
        (0..=end).any(|at| rest.is_char_boundary(at) && is_glob(behind, &rest[at..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asterisks_in_a_path_take_parts_of_it() {
        for (pattern, path, expected) in [
            ("/v1/*/items", "/v1/7/items", true),
            ("/v1/*/items", "/v1/7/8/items", false),
            ("/v1/*/items*", "/v1/7/items2", true),
            ("/a/*.CSS", "/a/b.css", true),
            ("*/b", "/x/a/b", true),
            ("/a*", "/a/b/c", true),
        ] {
            assert_eq!(is_path(pattern, path), expected, "{pattern} {path}");
        }
    }
}
