//! What rules make of a request before others ask about it: target, method, headers and variables, as far as the
//! configuration and its map files say so.

use std::collections::BTreeMap;

use super::conditions::{Conditions, METHODS, split_outside};
use super::sections::Statement;
use crate::names::{captures, is_found};
use crate::place::bytes;

/// A value: `None` if it cannot be told, `Some(None)` if there is none.
pub(super) type Value = Option<Option<String>>;

/// Values that rules have written, by `target`, `method`, `hdr NAME` in small letters and `var NAME`.
pub(super) type Rewritten = BTreeMap<String, Value>;

/// Rules that write into what maps and lists of patterns hold.
const WRITERS: [&str; 4] = ["set-map(", "del-map(", "add-acl(", "del-acl("];

impl Conditions<'_, '_> {
    /// Takes in what a rule writes whose action is a word of it; nothing of that is certain if its condition is not.
    pub(super) fn rewrite(&mut self, rule: &Statement<'_>, action: usize, is_sure: bool) {
        if let Some((key, value)) = self.written(rule, action) {
            self.rewritten.insert(key, value.filter(|_| is_sure));
        }
    }

    fn written(&self, rule: &Statement<'_>, action: usize) -> Option<(String, Value)> {
        let (name, argument) = call(rule.word(action));
        let argument = argument.unwrap_or_default();
        let header = format!("hdr {}", rule.word(action + 1).to_ascii_lowercase());
        let format = |word: usize| self.format(rule.word(word)).map(Some);
        Some(match name {
            "set-path" | "set-pathq" | "set-uri" | "set-query" | "replace-path"
            | "replace-pathq" | "replace-uri" | "normalize-uri" => {
                let target = self.target_of(name, rule, action);
                // One with a host of its own is not followed.
                let target = target.filter(|target| target.starts_with('/'));
                ("target".to_owned(), target.map(Some))
            }
            "set-method" => ("method".to_owned(), format(action + 1)),
            "set-header" => (header, format(action + 2)),
            "add-header" if self.header(rule.word(action + 1)) == Some(None) => {
                (header, format(action + 2))
            }
            "del-header" if rule.word(action + 2) != "-m" => (header, Some(None)),
            "add-header" | "del-header" | "replace-header" | "replace-value" => (header, None),
            "set-var" => (
                format!("var {argument}"),
                self.value(rule.word(action + 1)).map(|(value, _)| value),
            ),
            "set-var-fmt" => (format!("var {argument}"), format(action + 1)),
            "unset-var" => (format!("var {argument}"), Some(None)),
            _ => return None,
        })
    }

    /// The target that an action makes.
    fn target_of(&self, name: &str, rule: &Statement<'_>, action: usize) -> Option<String> {
        let target = self.target()?;
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let old = if name == "replace-path" {
            path
        } else {
            &target
        };
        let with_query = |path: String, query: &str| match query {
            "" => path,
            query => format!("{path}?{query}"),
        };
        Some(match name {
            "set-path" => with_query(self.format(rule.word(action + 1))?, query),
            "set-query" => with_query(path.to_owned(), &self.format(rule.word(action + 1))?),
            "set-pathq" | "set-uri" => self.format(rule.word(action + 1))?,
            "replace-path" | "replace-pathq" | "replace-uri" => {
                let pattern = rule.word(action + 1);
                if !is_found(pattern, false, old)? {
                    return Some(target);
                }
                let groups = captures(pattern, old)?;
                let new = filled(&self.format(rule.word(action + 2))?, &groups);
                let query = if name == "replace-path" { query } else { "" };
                with_query(new, query)
            }
            _ => return None,
        })
    }

    /// The target as rules have left it.
    pub(super) fn target(&self) -> Option<String> {
        match self.rewritten.get("target") {
            Some(target) => target.clone()?,
            None => Some(self.request.target.to_owned()),
        }
    }

    /// A variable, if a rule has set it.
    pub(super) fn variable(&self, argument: &str) -> Value {
        let (name, default) = argument.split_once(',').unwrap_or((argument, ""));
        let value = match self.rewritten.get(&format!("var {name}")) {
            Some(value) => value.clone()?,
            // Those of the process are set elsewhere.
            None if name.starts_with("proc.") => return None,
            None => None,
        };
        Some(value.or_else(|| (!default.is_empty()).then(|| default.to_owned())))
    }

    /// The text that a format makes of a request; `None`: it has what is not known here.
    pub(super) fn format(&self, format: &str) -> Option<String> {
        let mut text = String::new();
        let mut rest = format;
        while let Some((literal, behind)) = rest.split_once('%') {
            text.push_str(literal);
            if let Some(behind) = behind.strip_prefix('%') {
                text.push('%');
                rest = behind;
                continue;
            }
            let inner = behind.strip_prefix('[')?;
            let mut depth = 0_usize;
            let end = inner.find(|c| match c {
                '(' | '[' => {
                    depth += 1;
                    false
                }
                ')' => {
                    depth = depth.saturating_sub(1);
                    false
                }
                ']' if depth > 0 => {
                    depth -= 1;
                    false
                }
                c => c == ']',
            })?;
            let (value, _) = self.value(&inner[..end])?;
            text.push_str(&value.unwrap_or_default());
            rest = &inner[end + 1..];
        }
        text.push_str(rest);
        Some(text)
    }

    /// What a converter makes of a value.
    pub(super) fn converted(&self, value: String, step: &str) -> Value {
        let (name, argument) = call(step);
        let argument = argument.unwrap_or_default();
        Some(match (name, split_outside(argument)[..].as_ref()) {
            ("lower", _) => Some(value.to_ascii_lowercase()),
            ("upper", _) => Some(value.to_ascii_uppercase()),
            ("host_only", _) => Some(crate::names::without_port(&value).to_owned()),
            ("field" | "word", [number, ends]) => {
                let number = number.parse::<usize>().ok()?.checked_sub(1)?;
                let parts = value.split(|c| ends.contains(c));
                let mut parts = parts.filter(|part| name == "field" || !part.is_empty());
                Some(parts.nth(number).unwrap_or_default().to_owned())
            }
            (map, [file, default @ ..]) if map.starts_with("map") => {
                let method = map.split('_').nth(1).unwrap_or("str");
                let found = self.mapped(&value, method, file)?;
                found.or_else(|| default.first().map(|default| (*default).to_owned()))
            }
            _ => return None,
        })
    }

    /// What a map file has for a key: the first that suits, of those that begin it the longest.
    fn mapped(&self, key: &str, method: &str, file: &str) -> Value {
        let (_, matches) = METHODS.iter().find(|(known, _)| *known == method)?;
        let mut found: Option<(&str, &str)> = None;
        let text = self.lines_of(file)?;
        for line in text.lines() {
            let (pattern, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let is_nearer =
                found.is_none_or(|(known, _)| method == "beg" && pattern.len() > known.len());
            if is_nearer && matches(key, pattern)? {
                found = Some((pattern, value.trim()));
            }
        }
        Some(found.map(|(_, value)| value.to_owned()))
    }

    /// A file of patterns or of a map without comments; `None`: it cannot be read, or rules write into such.
    pub(super) fn lines_of(&self, file: &str) -> Option<String> {
        let mut all = self.tree.sections.iter().flat_map(|it| &it.statements);
        if all.any(|it| it.has(|word| WRITERS.iter().any(|writer| word.starts_with(writer)))) {
            return None;
        }
        let text = String::from_utf8(bytes(&self.folder.join(file)).ok()?).ok()?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Some(lines.collect::<Vec<_>>().join("\n"))
    }
}

/// A name and its argument, if it has brackets.
pub(super) fn call(text: &str) -> (&str, Option<&str>) {
    match text.split_once('(') {
        Some((name, argument)) => (name, Some(argument.strip_suffix(')').unwrap_or(argument))),
        None => (text, None),
    }
}

/// A text with groups of a regular expression in place of `\1`.
fn filled(text: &str, groups: &[String]) -> String {
    let mut filled = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        let group = escaped.and_then(|c| c.to_digit(10));
        match group {
            Some(group) => filled.push_str(groups.get(group as usize).map_or("", |it| it)),
            None => filled.push(escaped.unwrap_or(c)),
        }
    }
    filled
}
