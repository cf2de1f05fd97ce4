//! Names of hosts and regular expressions, compared as proxies do.

/// A host without its port; an address of IPv6 stands in brackets.
pub(crate) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

/// Whether a host is one that a name with an asterisk stands for, and how long the name is: `*.example.org`
/// or `www.*`, in any case of letters. The asterisk stands for one character at least.
pub(crate) fn wildcard(name: &str, host: &str) -> Option<usize> {
    let (before, behind) = name.split_once('*')?;
    let (before, behind) = (before.to_ascii_lowercase(), behind.to_ascii_lowercase());
    let host = host.to_ascii_lowercase();
    let is_it = host.len() > before.len() + behind.len()
        && host.starts_with(&before)
        && host.ends_with(&behind);
    is_it.then_some(name.len())
}

/// Whether a regular expression is found in a text; `None`: it has what is not known here (looking around,
/// references back).
pub(crate) fn is_found(pattern: &str, any_case: bool, text: &str) -> Option<bool> {
    let mut builder = regex_lite::RegexBuilder::new(pattern);
    let built = builder.case_insensitive(any_case).build();
    Some(built.ok()?.is_match(text))
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
        assert_eq!(is_found(r"^(?!/api)", false, "/a"), None);
        for (host, expected) in [
            ("a:80", "a"),
            ("a", "a"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(without_port(host), expected);
        }
    }
}
