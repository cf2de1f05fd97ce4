//! Comparison of host names and regular expressions as proxies do it.

/// Returns a host without its port; an IPv6 address stands in brackets.
pub fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

/// Returns a text in lower case if comparisons with it are in any case.
pub fn fold_case(text: &str, any_case: bool) -> String {
    if any_case { text.to_ascii_lowercase() } else { text.to_owned() }
}

/// Returns the length of a name with an asterisk (`*.example.org` or `www.*`) if it matches a host, in any case of
/// letters. The asterisk stands for at least one character. None if it does not match.
pub fn wildcard(name: &str, host: &str) -> Option<usize> {
    let (before, behind) = name.split_once('*')?;
    let (before, behind) = (before.to_ascii_lowercase(), behind.to_ascii_lowercase());
    let lower = host.to_ascii_lowercase();
    let is_it = lower.len() > before.len() + behind.len()
        && lower.starts_with(&before)
        && lower.ends_with(&behind);
    is_it.then_some(name.len())
}

/// Returns true if a regular expression matches somewhere in a text; None if it uses unsupported features (lookbehind,
/// back references, lookahead in a group).
pub fn is_found(pattern: &str, any_case: bool, text: &str) -> Option<bool> {
    if let Some([before, inner, behind]) = looks_ahead(pattern) {
        let is = |pattern: String, text: &str| is_found(&pattern, any_case, text);
        // Without what it looks for ahead it stands for what is found here and goes on there.
        let mut is_match = Some(false);
        for (at, _) in text.char_indices().chain([(text.len(), ' ')]) {
            let (left, right) = text.split_at(at);
            if is(format!("(?:{before})$"), left)?
                && !is(format!("^(?:{inner})"), right)?
                && is(format!("^(?:{behind})"), right)?
            {
                is_match = Some(true);
            }
        }
        return is_match;
    }
    Some(built(pattern, any_case)?.is_match(text))
}

/// Returns the groups of a regular expression in a text, the whole match first; None if it does not match, or uses
/// unsupported features.
pub fn captures(pattern: &str, text: &str) -> Option<Vec<String>> {
    let pattern = built(pattern, false)?;
    let groups = pattern.captures(text)?;
    let texts =
        groups.iter().map(|group| group.map_or(String::new(), |group| group.as_str().to_owned()));
    Some(texts.collect())
}

fn built(pattern: &str, any_case: bool) -> Option<regex_lite::Regex> {
    let mut builder = regex_lite::RegexBuilder::new(pattern);
    builder.case_insensitive(any_case).build().ok()
}

/// Splits a regular expression at its first `(?!…)` outside of groups into the part before it, its contents, and the
/// part behind it. None if it has no such part, or has alternatives outside of groups.
fn looks_ahead(pattern: &str) -> Option<[&str; 3]> {
    let bytes = pattern.as_bytes();
    let (mut at, mut depth, mut is_class) = (0, 0_usize, false);
    let (mut open, mut close) = (None, None);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b']' => is_class = false,
            _ if is_class => {}
            b'[' => is_class = true,
            b'|' if depth == 0 => return None,
            b'(' => {
                if depth == 0 && open.is_none() && pattern[at..].starts_with("(?!") {
                    open = Some(at);
                }
                depth += 1;
            }
            b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && open.is_some() {
                    close = close.or(Some(at));
                }
            }
            _ => {}
        }
        at += 1;
    }
    let (open, close) = (open?, close?);
    Some([&pattern[..open], &pattern[open + 3..close], &pattern[close + 1..]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_patterns_are_compared_as_proxies_do() {
        for (name, host, expected) in [
            ("*.example.org", "a.example.org", Some(13)),
            ("*.example.org", "a.b.EXAMPLE.org", Some(13)),
            ("*.example.org", "example.org", None),
            ("www.*", "www.example", Some(5)),
            ("www.*", "www.", None),
            ("plain", "plain", None),
        ] {
            assert_eq!(wildcard(name, host), expected, "{name} {host}");
        }
        assert_eq!(is_found(r"\.php$", false, "/a.php"), Some(true));
        assert_eq!(is_found(r"\.PHP$", false, "/a.php"), Some(false));
        assert_eq!(is_found(r"\.PHP$", true, "/a.php"), Some(true));
        for (pattern, text, expected) in [
            (r"^(?!/api)", "/a", Some(true)),
            (r"^(?!/api)", "/api/x", Some(false)),
            (r"^(?!/(\.well-known|stats))/", "/stats", Some(false)),
            (r"^(?!/(\.well-known|stats))/", "/shop", Some(true)),
            (r"/\.(?!well-known).*", "/.git", Some(true)),
            (r"/\.(?!well-known).*", "/.well-known/x", Some(false)),
            (r"/\.(?!well-known).*", "/.well-known/.x", Some(true)),
            (r"^/(?!index|status)[^/]*\.php$", "/index.php", Some(false)),
            (r"^/(?!index|status)[^/]*\.php$", "/page.php", Some(true)),
            (r"[(?!]a", "!a", Some(true)),
            (r"^(a(?!b)c)", "ac", None),
            (r"a|b(?!c)", "a", None),
            (r"(?<=a)b", "ab", None),
        ] {
            assert_eq!(is_found(pattern, false, text), expected, "{pattern} {text}");
        }
        let held = captures("^/(.*)/(x)?", "/a/b").unwrap();
        assert_eq!(held, ["/a/", "a", ""]);
        for (host, expected) in
            [("a:80", "a"), ("a", "a"), ("[::1]:8080", "[::1]"), ("[::1]", "[::1]")]
        {
            assert_eq!(without_port(host), expected);
        }
    }
}
