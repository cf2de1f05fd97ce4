//! The argument of `proxy_pass` and its relatives.

use std::borrow::Cow;

/// Target to which requests are passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'a> {
    /// Scheme with `://`; empty if there is none.
    pub(super) scheme: &'a str,
    /// Name or address, with a port if it has one; a socket of the file system with its `unix:`.
    pub(super) host: &'a str,
    /// URI from its slash on.
    pub(super) uri: &'a str,
}

impl<'a> Target<'a> {
    pub(super) fn of(argument: &'a str) -> Target<'a> {
        let (scheme, rest) = match argument.find("://") {
            Some(at) => argument.split_at(at + 3),
            None => ("", argument),
        };
        // A socket's path ends at a colon, anything else at the slash of the URI, or at a variable
        // that holds it (`http://host$request_uri`).
        let end = match rest.strip_prefix("unix:") {
            Some(path) => path.find(':').map(|colon| colon + 5),
            None => rest.find('/'),
        };
        let (host, uri) = rest.split_at(end.unwrap_or(rest.len()));
        let mut variables = host.match_indices('$').map(|(at, _)| at);
        let uri_variable = variables.find(|&at| is_uri(&host[at..]));
        match uri_variable {
            Some(at) => Target { scheme, host: &host[..at], uri: &rest[at..] },
            None => Target { scheme, host, uri: uri.strip_prefix(':').unwrap_or(uri) },
        }
    }

    /// Returns the host with the port that is asked.
    pub(super) fn server(&self) -> Cow<'a, str> {
        let has_port = self.host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        if has_port || self.is_in_clear() {
            Cow::Borrowed(self.host)
        } else {
            Cow::Owned(format!("{}:443", self.host))
        }
    }

    /// Returns true if nothing is asked for over TLS, as far as the configuration shows.
    pub(super) fn is_in_clear(&self) -> bool {
        !matches!(self.scheme, "https://" | "grpcs://" | "suwsgi://") && !self.scheme.contains('$')
    }
}

fn is_uri(variable: &str) -> bool {
    let name = variable.trim_start_matches(['$', '{']);
    ["request_uri", "uri", "document_uri", "is_args"].iter().any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_scheme_host_and_uri() {
        for (scheme, host, uri) in [
            ("http://", "app", ""),
            ("https://", "10.0.0.1:8443", "/a/b"),
            ("http://", "$backend:80", "/x"),
            ("http://", "app", "$request_uri"),
            ("http://", "$pool", "$uri"),
            ("$scheme://", "app", "/x"),
            ("http://", "[::1]:80", ""),
            ("grpc://", "h:1", ""),
            ("", "127.0.0.1:9000", ""),
            ("", "$target", ""),
        ] {
            let target = Target { scheme, host, uri };
            assert_eq!(Target::of(&format!("{scheme}{host}{uri}")), target);
        }
        let (scheme, host) = ("http://", "unix:/run/a.sock");
        for (argument, uri) in
            [("http://unix:/run/a.sock:/x/", "/x/"), ("http://unix:/run/a.sock", "")]
        {
            assert_eq!(Target::of(argument), Target { scheme, host, uri });
        }
    }
}
