//! Conditions of rules (manual §7), as far as a request of a load decides them: what it asks for, of whom, and whether
//! over TLS. What needs anything else (addresses, rates, maps, stick tables) is not decided.

use super::sections::{Section, Statement};
use crate::asked::Request;
use crate::names::is_found;

/// Rules and ACLs of a section, and the request that they are asked about.
pub(super) struct Conditions<'c, 't> {
    /// The section, and behind it its `defaults`.
    pub(super) sections: Vec<&'c Section<'t>>,
    pub(super) request: Request<'c>,
    pub(super) port: Option<u16>,
}

/// ACLs that are always there (§7.4), as far as they are decided.
const ALWAYS: [(&str, bool); 6] = [
    ("TRUE", true),
    ("FALSE", false),
    ("HTTP", true),
    ("HTTP_1.1", true),
    ("HTTP_1.0", false),
    ("HTTP_2.0", false),
];

/// How a value is compared with patterns.
type Matches = fn(&str, &str) -> Option<bool>;

/// Suffixes of fetches, and words behind `-m`.
const METHODS: [(&str, Matches); 8] = [
    ("str", |value, pattern| Some(value == pattern)),
    ("beg", |value, pattern| Some(value.starts_with(pattern))),
    ("end", |value, pattern| Some(value.ends_with(pattern))),
    ("sub", |value, pattern| Some(value.contains(pattern))),
    ("dir", |value, pattern| Some(parts(value, "/?", pattern))),
    ("dom", |value, pattern| Some(parts(value, "/?.:", pattern))),
    ("reg", |value, pattern| is_found(pattern, false, value)),
    ("found", |value, _| Some(!value.is_empty())),
];

/// Whether a pattern is some of a value's parts in a row.
fn parts(value: &str, ends: &str, pattern: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| ends.contains(c));
    let pattern = pattern.trim_matches(|c| ends.contains(c));
    value.match_indices(pattern).any(|(at, _)| {
        let (before, behind) = (&value[..at], &value[at + pattern.len()..]);
        is_end(before.chars().next_back()) && is_end(behind.chars().next())
    })
}

impl Conditions<'_, '_> {
    /// Whether a rule is followed whose condition begins at a word that is `if` or `unless`; one without a
    /// condition always is.
    pub(super) fn holds(&self, statement: &Statement<'_>) -> Option<bool> {
        let words: Vec<&str> = statement.words.iter().map(|word| &*word.text).collect();
        let Some(at) = words
            .iter()
            .position(|word| matches!(*word, "if" | "unless"))
        else {
            return Some(true);
        };
        let said = self.any(&words[at + 1..]);
        match words[at] {
            "unless" => said.map(|said| !said),
            _ => said,
        }
    }

    /// One of several, which `or` and `||` part.
    fn any(&self, words: &[&str]) -> Option<bool> {
        let all = words.split(|word| matches!(*word, "or" | "||"));
        or(all.map(|words| self.all(words)))
    }

    /// All of several.
    fn all(&self, words: &[&str]) -> Option<bool> {
        let mut words = words.iter().copied();
        let mut negated = false;
        let mut terms = Vec::new();
        while let Some(word) = words.next() {
            let (word, is_not) = match word.strip_prefix('!') {
                Some(word) => (word, true),
                None => (word, false),
            };
            negated ^= is_not;
            let said = match word {
                "" => continue,
                "{" => {
                    let inner: Vec<&str> = words.by_ref().take_while(|word| *word != "}").collect();
                    self.expression(&inner)
                }
                name => self.named(name),
            };
            let is_not = std::mem::take(&mut negated);
            terms.push(said.map(|said| said != is_not));
        }
        let not = |said: Option<bool>| said.map(|said| !said);
        not(or(terms.into_iter().map(not)))
    }

    /// An ACL by its name: any of its lines.
    fn named(&self, name: &str) -> Option<bool> {
        let lines: Vec<&Statement<'_>> = self
            .sections
            .iter()
            .flat_map(|section| &section.statements)
            .filter(|statement| statement.word(0) == "acl" && statement.word(1) == name)
            .collect();
        if lines.is_empty() {
            if let Some(method) = name.strip_prefix("METH_") {
                let own = self.request.method;
                return Some(own == method || (own, method) == ("HEAD", "GET"));
            }
            let known = ALWAYS.iter().find(|(known, _)| *known == name);
            return known.map(|(_, said)| *said);
        }
        or(lines.into_iter().map(|line| {
            let words: Vec<&str> = line.words.iter().skip(2).map(|word| &*word.text).collect();
            self.expression(&words)
        }))
    }

    /// A fetch with its flags and patterns.
    fn expression(&self, words: &[&str]) -> Option<bool> {
        let (fetch, mut rest) = words.split_first()?;
        let (value, mut method) = self.value(fetch)?;
        let mut any_case = false;
        while let Some((flag, behind)) = rest.split_first() {
            match (*flag, behind) {
                ("-i", _) => (any_case, rest) = (true, behind),
                ("-m", [name, behind @ ..]) => {
                    method = METHODS.iter().find(|(known, _)| known == name)?.1;
                    rest = behind;
                }
                ("--", _) => {
                    rest = behind;
                    break;
                }
                // A file of patterns, and what is rarer.
                (flag, _) if flag.starts_with('-') => return None,
                _ => break,
            }
        }
        // What is not there is found by no pattern.
        let Some(value) = value else {
            return Some(false);
        };
        // `ssl_fc` and its like stand for themselves.
        if rest.is_empty() {
            return Some(!value.is_empty() && value != "0");
        }
        let fold = |text: &str| match any_case {
            true => text.to_ascii_lowercase(),
            false => text.to_owned(),
        };
        let value = fold(&value);
        or(rest.iter().map(|pattern| method(&value, &fold(pattern))))
    }

    /// What a fetch gives, if it gives anything, and how its name has it compared. Booleans are `1` and `0`.
    fn value(&self, fetch: &str) -> Option<(Option<String>, Matches)> {
        let mut steps = split_outside(fetch);
        let own = steps.remove(0);
        let mut value = None;
        let mut method = METHODS[0].1;
        let (name, argument) = match own.split_once('(') {
            Some((name, argument)) => (name, argument.trim_end_matches(')')),
            None => (own, ""),
        };
        // `path_beg` is `path` compared in another way.
        let suffixes = std::iter::once((name, METHODS[0].1)).chain(METHODS.iter().filter_map(
            |(suffix, matches)| {
                let base = name.strip_suffix(suffix)?.strip_suffix('_')?;
                Some((base, *matches))
            },
        ));
        for (base, matches) in suffixes {
            if let Some(found) = self.plain(base, argument) {
                (value, method) = (Some(found), matches);
                break;
            }
        }
        let mut value = value?;
        for step in steps {
            match step.split('(').next().unwrap_or_default() {
                "lower" => value = value.map(|value| value.to_ascii_lowercase()),
                // Of a host, what stands before the port.
                "field" | "host_only" if argument.eq_ignore_ascii_case("host") => {}
                _ => return None,
            }
        }
        Some((value, method))
    }

    fn plain(&self, name: &str, argument: &str) -> Option<Option<String>> {
        let request = &self.request;
        let flag = |is_so: bool| if is_so { "1" } else { "0" }.to_owned();
        Some(Some(match name {
            "hdr" | "req.hdr" | "req.fhdr" | "fhdr" | "shdr" => {
                return self.header(argument);
            }
            "path" => request.path.to_owned(),
            "pathq" | "url" | "capture.req.uri" => request.target.to_owned(),
            "base" => format!("{}{}", request.authority, request.path),
            "method" => request.method.to_owned(),
            "ssl_fc" => flag(request.is_tls()),
            "ssl_c_used" | "ssl_fc_has_crt" if !request.is_certified => flag(false),
            "ssl_fc_sni" | "req.ssl_sni" | "req_ssl_sni" => {
                request.server_name.unwrap_or_default().to_owned()
            }
            "req.ssl_hello_type" | "req_ssl_hello_type" => flag(request.is_tls()),
            "dst_port" => self.port?.to_string(),
            "always_true" => flag(true),
            "always_false" => flag(false),
            _ => return None,
        }))
    }

    /// A header, if the request has it. One with commas has several values, which are not told apart here, and
    /// one that rules write has any.
    fn header(&self, name: &str) -> Option<Option<String>> {
        let name = name.split(',').next().unwrap_or_default();
        if name.eq_ignore_ascii_case("host") {
            return Some(Some(self.request.authority.to_owned()));
        }
        let mut rules = self.sections.iter().flat_map(|section| &section.statements);
        let writes = |it: &Statement<'_>| {
            it.word(0) == "http-request" && it.word(2).eq_ignore_ascii_case(name)
        };
        // A backend's may have been written by any frontend.
        if self.sections[0].kind() == "backend" || rules.any(writes) {
            return None;
        }
        let value = self.request.field(name)?;
        let is_there = !value.is_empty();
        (!value.contains(',')).then(|| is_there.then(|| value.to_owned()))
    }
}

/// A fetch and its converters, parted by commas outside of brackets.
fn split_outside(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.collect()
}

/// One that holds makes all hold; none is known not to as long as one is undecided.
fn or(all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut said = Some(false);
    for one in all {
        match one {
            Some(true) => return Some(true),
            Some(false) => {}
            None => said = None,
        }
    }
    said
}
