//! Conditions of rules (manual §7), as far as a request of a load decides them: by its target, its host, and TLS, and
//! by the values that rules have changed ([`super::rewritten`]). A condition on anything else (addresses, rates,
//! chance, stick tables) is not decided.

use weir_configuration::asked::Request;
use weir_configuration::names::{fold_case, is_found};

use super::maps::{Files, Rewritten, Value, call};
use super::sections::{Section, Statement, Tree, mode};
use super::servers::{Server, servers};

/// Evaluates the rules and ACLs of a section for one request.
#[derive(Clone)]
pub(super) struct Conditions<'c, 't> {
    pub(super) tree: &'c Tree<'t>,
    /// The section, followed by its `defaults`.
    pub(super) sections: Vec<&'c Section<'t>>,
    pub(super) request: Request<'c>,
    pub(super) port: Option<u16>,
    pub(super) files: &'c Files,
    /// Values that earlier rules have written.
    pub(super) rewritten: Rewritten,
    /// Rules that the request has come to, except those whose conditions certainly fail.
    pub(super) met: Vec<&'c Statement<'t>>,
}

/// Predefined ACLs (§7.4), with their values as far as they are decided.
const ALWAYS: [(&str, bool); 6] = [
    ("TRUE", true),
    ("FALSE", false),
    ("HTTP", true),
    ("HTTP_1.1", true),
    ("HTTP_1.0", false),
    ("HTTP_2.0", false),
];

/// Comparison of a value with a pattern; None if the result cannot be determined.
pub(super) type Matches = fn(&str, &str) -> Option<bool>;

/// Methods of comparison, by the suffix of a fetch or the word behind `-m`.
pub(super) const METHODS: [(&str, Matches); 8] = [
    ("str", |value, pattern| Some(value == pattern)),
    ("beg", |value, pattern| Some(value.starts_with(pattern))),
    ("end", |value, pattern| Some(value.ends_with(pattern))),
    ("sub", |value, pattern| Some(value.contains(pattern))),
    ("dir", |value, pattern| Some(parts(value, "/?", pattern))),
    ("dom", |value, pattern| Some(parts(value, "/?.:", pattern))),
    ("reg", |value, pattern| is_found(pattern, false, value)),
    ("bool", |value, _| Some(!value.is_empty() && value != "0")),
];

/// Returns true if a pattern is a sequence of whole parts of a value; parts end at the characters `ends`.
fn parts(value: &str, ends: &str, pattern: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| ends.contains(c));
    let part = pattern.trim_matches(|c| ends.contains(c));
    value.match_indices(part).any(|(at, _)| {
        let (before, behind) = (&value[..at], &value[at + part.len()..]);
        is_end(before.chars().next_back()) && is_end(behind.chars().next())
    })
}

impl<'c, 't> Conditions<'c, 't> {
    /// Records a rule that the request comes to, unless its condition certainly fails. Returns true if the rule is
    /// followed; None if this is not decided.
    pub(super) fn meet(&mut self, rule: &'c Statement<'t>) -> Option<bool> {
        let holds = self.holds(rule);
        if holds != Some(false) {
            self.met.push(rule);
        }
        holds
    }

    /// Returns true if a rule is followed, by its condition behind the word `if` or `unless`. A rule without a
    /// condition always is. None if this is not decided.
    pub(super) fn holds(&self, statement: &Statement<'_>) -> Option<bool> {
        let words: Vec<&str> = statement.words.iter().map(|word| &*word.text).collect();
        let at = words.iter().position(|word| matches!(*word, "if" | "unless"));
        let holds = match at.map(|at| (words[at], &words[at + 1..])) {
            None => Some(true),
            Some(("unless", condition)) => self.any(condition).map(|holds| !holds),
            Some((_, condition)) => self.any(condition),
        };
        // The proxy alone knows what is in force between `.if` and `.endif`.
        let is_there = self.sections.iter().any(|section| section.is_unconditional(statement));
        holds.filter(|holds| !holds || is_there)
    }

    /// Returns true if one of several conditions holds, which `or` and `||` separate.
    fn any(&self, words: &[&str]) -> Option<bool> {
        let all = words.split(|word| matches!(*word, "or" | "||"));
        or(all.map(|words| self.all(words)))
    }

    /// Returns true if all of several conditions hold.
    fn all(&self, words: &[&str]) -> Option<bool> {
        let mut remaining = words.iter().copied();
        let mut negated = false;
        let mut terms = Vec::new();
        while let Some(word) = remaining.next() {
            let (word, is_not) = match word.strip_prefix('!') {
                Some(word) => (word, true),
                None => (word, false),
            };
            negated ^= is_not;
            let holds = match word {
                "" => continue,
                "{" => {
                    let inner: Vec<&str> =
                        remaining.by_ref().take_while(|word| *word != "}").collect();
                    self.expression(&inner)
                }
                name => self.named(name),
            };
            let is_not = std::mem::take(&mut negated);
            terms.push(holds.map(|holds| holds != is_not));
        }
        or(terms.into_iter().map(|term| term.map(|holds| !holds))).map(|holds| !holds)
    }

    /// Returns true if an ACL holds: any of the lines with its name.
    fn named(&self, name: &str) -> Option<bool> {
        let lines: Vec<&Statement<'_>> = self
            .sections
            .iter()
            .flat_map(|section| &section.statements)
            .filter(|statement| statement.word(0) == "acl" && statement.word(1) == name)
            .collect();
        if lines.is_empty() {
            if let Some(method) = name.strip_prefix("METH_") {
                let requested = self.request.method;
                return Some(requested == method || (requested, method) == ("HEAD", "GET"));
            }
            // In TLS that nobody has looked into there is none.
            let is_of_http = name.starts_with("HTTP");
            if is_of_http && self.request.is_tls() && mode(&self.sections) != "http" {
                return None;
            }
            return ALWAYS.iter().find(|(known, _)| *known == name).map(|(_, holds)| *holds);
        }
        or(lines.into_iter().map(|line| {
            let words: Vec<&str> = line.words.iter().skip(2).map(|word| &*word.text).collect();
            self.expression(&words)
        }))
    }

    /// Evaluates a fetch with its flags and patterns.
    fn expression(&self, words: &[&str]) -> Option<bool> {
        let (fetch, mut rest) = words.split_first()?;
        let (value, mut method) = self.value(fetch)?;
        let (mut any_case, mut files) = (false, Vec::new());
        while let Some((flag, behind)) = rest.split_first() {
            match (*flag, behind) {
                ("-i", _) => (any_case, rest) = (true, behind),
                ("-m", ["found", ..]) => return Some(value.is_some()),
                ("-f", [file, behind @ ..]) => {
                    files.push(self.files.lines(file)?);
                    rest = behind;
                }
                ("-m", [name, behind @ ..]) => {
                    method = METHODS.iter().find(|(known, _)| known == name)?.1;
                    rest = behind;
                }
                ("--", _) => {
                    rest = behind;
                    break;
                }
                (flag, _) if flag.starts_with('-') => return None,
                _ => break,
            }
        }
        // What is not there is found by no pattern.
        let Some(value) = value else {
            return Some(false);
        };
        let patterns: Vec<&str> =
            files.iter().flat_map(|file| file.lines()).chain(rest.iter().copied()).collect();
        // `ssl_fc` and its like stand for themselves.
        if rest.is_empty() && files.is_empty() {
            return Some(!value.is_empty() && value != "0");
        }
        if NUMBERS.iter().any(|name| fetch.starts_with(name)) {
            return is_in(value.parse().ok()?, &patterns);
        }
        let text = fold_case(&value, any_case);
        or(patterns.iter().map(|pattern| method(&text, &fold_case(pattern, any_case))))
    }

    /// Returns the value of a fetch with its converters, and the method of comparison in the name of the fetch.
    /// Booleans are `1` and `0`.
    pub(super) fn value(&self, fetch: &str) -> Option<(Option<String>, Matches)> {
        let mut steps = split_outside(fetch).into_iter();
        let (name, argument) = call(steps.next()?)?;
        // `path_beg` is `path` compared in another way.
        let mut suffixes = std::iter::once((name, METHODS[0].1)).chain(METHODS.iter().filter_map(
            |(suffix, matches)| {
                let base = name.strip_suffix(suffix)?.strip_suffix('_')?;
                Some((base, *matches))
            },
        ));
        let (mut value, method) =
            suffixes.find_map(|(base, matches)| Some((self.plain(base, argument)?, matches)))?;
        for step in steps {
            value = match value {
                Some(value) => self.converted(value, step)?,
                None => None,
            };
        }
        Some((value, method))
    }

    fn plain(&self, name: &str, argument: &str) -> Value {
        let request = &self.request;
        let path = || Some(self.target()?.split('?').next()?.to_owned());
        Some(Some(match name {
            "hdr" | "req.hdr" | "req.fhdr" | "fhdr" | "shdr" => {
                return self.header(argument);
            }
            "cook" | "req.cook" => {
                let header = self.header("cookie")?.unwrap_or_default();
                return Some(parameter(&header, ';', argument));
            }
            "url_param" | "urlp" => {
                let target = self.target()?;
                let (_, query) = target.split_once('?').unwrap_or_default();
                return Some(parameter(query, '&', argument));
            }
            "var" => return self.variable(argument),
            // One that is there may be right or wrong.
            "http_auth" => match self.header("authorization")? {
                Some(_) => return None,
                None => flag(false),
            },
            "str" => argument.to_owned(),
            "path" => path()?,
            "pathq" | "url" => self.target()?,
            "capture.req.uri" => request.target.to_owned(),
            "query" => self.target()?.split_once('?').map_or("", |it| it.1).to_owned(),
            "base" => format!("{}{}", self.header("host")?.unwrap_or_default(), path()?),
            "method" => match self.rewritten.get("method") {
                Some(method) => return method,
                None => request.method.to_owned(),
            },
            "nbsrv" => {
                let usable = servers(&self.chain_of(argument)?);
                usable.iter().map(Server::count).sum::<u64>().to_string()
            }
            "ssl_fc" => flag(request.is_tls()),
            "ssl_c_used" | "ssl_fc_has_crt" if !request.is_certified => flag(false),
            "ssl_fc_sni" | "req.ssl_sni" | "req_ssl_sni" => {
                return Some(request.server_name.map(str::to_owned));
            }
            "req.ssl_hello_type" | "req_ssl_hello_type" => flag(request.is_tls()),
            "dst_port" => self.port?.to_string(),
            "always_true" => flag(true),
            "always_false" => flag(false),
            _ => return None,
        }))
    }

    /// Returns a header of the request. A header with commas has several values and is not decided.
    pub(super) fn header(&self, name: &str) -> Value {
        let header = name.split(',').next().unwrap_or_default();
        if let Some(value) = self.rewritten.get(&format!("hdr {}", header.to_ascii_lowercase())) {
            return value;
        }
        if header.eq_ignore_ascii_case("host") {
            return Some(Some(self.request.authority.to_owned()));
        }
        let value = self.request.field(header)?;
        let is_there = !value.is_empty();
        (!value.contains(',')).then(|| is_there.then(|| value.to_owned()))
    }

    /// Returns the section with servers of this name, followed by its `defaults`; for an empty name, the sections of
    /// the rule itself.
    fn chain_of(&self, name: &str) -> Option<Vec<&'c Section<'t>>> {
        match name {
            "" => Some(self.sections.clone()),
            name => Some(self.tree.chain(self.tree.backend(name)?)),
        }
    }
}

/// Returns the value of a name among several `name=value`.
fn parameter(text: &str, end: char, name: &str) -> Option<String> {
    let mut pairs = text.split(end).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(known, _)| *known == name)?;
    Some(value.to_owned())
}

/// Beginnings of the names of fetches that return numbers.
const NUMBERS: [&str; 2] = ["dst_port", "nbsrv"];

/// Returns true if a number matches one of the patterns for numbers (manual §7.1.2).
fn is_in(number: i64, patterns: &[&str]) -> Option<bool> {
    let mut operator = "eq";
    let mut is_in = false;
    for pattern in patterns {
        if ["eq", "ge", "gt", "le", "lt"].contains(pattern) {
            operator = pattern;
            continue;
        }
        let (first, last) = pattern.split_once(':').unwrap_or((pattern, pattern));
        let (first, last) = (bound(first, i64::MIN)?, bound(last, i64::MAX)?);
        is_in |= match operator {
            "ge" => number >= first,
            "gt" => number > last,
            "le" => number <= last,
            "lt" => number < first,
            _ => (first..=last).contains(&number),
        };
    }
    Some(is_in)
}

/// Splits a fetch and its converters at the commas outside of brackets.
pub(super) fn split_outside(text: &str) -> Vec<&str> {
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

/// Returns true if one of the conditions holds, None if none does and one is undecided, and false otherwise.
fn or(all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(false);
    for term in all {
        match term {
            Some(true) => return Some(true),
            Some(false) => {}
            None => result = None,
        }
    }
    result
}

fn flag(is_set: bool) -> String {
    if is_set { "1" } else { "0" }.to_owned()
}

/// Returns a bound of a range of numbers, which may be open there.
fn bound(text: &str, open: i64) -> Option<i64> {
    if text.is_empty() { Some(open) } else { text.parse().ok() }
}
