//! Patterns of `include`, which nginx passes to glob(3).

use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

/// Options by which the library reads patterns as glob(3) does for nginx.
const GLOB: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Returns true if nginx takes an argument of `include` for a pattern.
pub fn is_pattern(argument: &str) -> bool {
    argument.contains(['*', '?', '['])
}

/// Returns the files that match a pattern, in the order of glob(3) in the C locale, in which nginx runs: by the bytes
/// of their paths. `root` replaces `/` and is no part of the pattern.
///
/// # Errors
/// Returns an error if the pattern is not UTF-8 or uses an unsupported feature, or if a folder cannot be read.
pub fn files(root: &Path, pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", pattern.display());
    let (root, text) =
        (root.to_str()).zip(pattern.to_str()).ok_or_else(|| wrong(&"is not UTF-8"))?;
    let text = translate(text).map_err(|why| wrong(&why))?;
    let text = Pattern::escape(root.trim_end_matches('/')) + &text;
    let mut paths = glob::glob_with(&text, GLOB)
        .map_err(|error| wrong(&error))?
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(&error))?;
    paths.sort();
    Ok(paths)
}

/// Converts a pattern to the library's syntax. glob(3) reads `[^a]` as `[!a]`, an unclosed bracket as itself, and two
/// asterisks as one, whereas for the library two asterisks match subfolders.
fn translate(pattern: &str) -> Result<String, &'static str> {
    let mut text = String::with_capacity(pattern.len());
    let mut tail = pattern;
    while let Some((before, class)) = tail.split_once('[') {
        text += before;
        let is_negated = class.starts_with(['!', '^']);
        let begin = usize::from(is_negated);
        // A bracket at the begin is one of the members.
        let first = begin + usize::from(class[begin..].starts_with(']'));
        let Some(end) = class[first..].find(']').map(|end| first + end) else {
            text += "[[]";
            tail = class;
            continue;
        };
        let members = &class[begin..end];
        if ["[:", "[.", "[="].iter().any(|open| members.contains(open)) {
            return Err("classes of characters with names are not known here; write them out");
        }
        text += if is_negated { "[!" } else { "[" };
        text += members;
        text.push(']');
        tail = &class[end + 1..];
    }
    text += tail;
    while text.contains("**") {
        text = text.replace("**", "*");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_spelled_as_the_library_reads_them() {
        for (pattern, expected) in [
            ("/a/*.conf", "/a/*.conf"),
            ("/a/**/b?", "/a/*/b?"),
            ("[^_]*.conf", "[!_]*.conf"),
            ("[!a-m][n-z^]", "[!a-m][n-z^]"),
            ("[]^][^]a]x", "[]^][!]a]x"),
            ("a[b", "a[[]b"),
            ("a[^b/*", "a[[]^b/*"),
        ] {
            assert_eq!(translate(pattern).as_deref(), Ok(expected), "{pattern}");
        }
        assert!(translate("[[:digit:]]*").is_err());
    }
}
