//! Changes that rules make to a request before other rules look at it: to its target, method, headers and variables, as
//! far as the configuration and its map files determine them.

use weir_configuration::names::{captures, is_found, without_port};

use super::asked::Tls;
use super::conditions::{Conditions, METHODS, split_outside};
use super::listeners::port;
use super::maps::{Value, call};
use super::sections::Statement;

impl Conditions<'_, '_> {
    /// Applies the change that a rule makes; `action` is the index of its action among its words. If it is not certain
    /// that the rule applies, the changed value becomes unknown.
    pub(super) fn rewrite(&mut self, rule: &Statement<'_>, action: usize, is_sure: bool) {
        let programs = ["lua.", "send-spoe-group"];
        if programs.iter().any(|program| rule.word(action).starts_with(program)) {
            self.rewritten.open();
        } else if let Some((key, value)) = self.written(rule, action) {
            self.rewritten.insert(key, value.filter(|_| is_sure));
        }
    }

    fn written(&self, rule: &Statement<'_>, action: usize) -> Option<(String, Value)> {
        let (name, argument) = call(rule.word(action))?;
        let header = format!("hdr {}", rule.word(action + 1).to_ascii_lowercase());
        // Behind a comma stands when a variable is set.
        let (variable, condition) = argument.split_once(',').unwrap_or((argument, ""));
        let variable = format!("var {variable}");
        let format = |word: usize| self.format(rule.word(word)).map(Some);
        Some(match name {
            "set-path" | "set-pathq" | "set-uri" | "set-query" | "replace-path"
            | "replace-pathq" | "replace-uri" | "normalize-uri" => {
                let words = [rule.word(action + 1), rule.word(action + 2)];
                // One with a host of its own is not followed.
                let target = self.target_of(name, words).filter(|target| target.starts_with('/'));
                ("target".to_owned(), target.map(Some))
            }
            "set-method" => ("method".to_owned(), format(action + 1)),
            "set-header" => (header, format(action + 2)),
            "del-header" if rule.word(action + 2) != "-m" => (header, Some(None)),
            "add-header" | "del-header" | "replace-header" | "replace-value" => (header, None),
            "set-var" | "set-var-fmt" if !condition.is_empty() => (variable, None),
            "do-resolve" => (variable, None),
            "set-var" => {
                let value = self.value(rule.word(action + 1));
                (variable, value.map(|(value, _)| value))
            }
            "set-var-fmt" => (variable, format(action + 1)),
            "unset-var" => (variable, Some(None)),
            _ => return None,
        })
    }

    /// Returns the target that an action makes; None if it cannot be determined.
    fn target_of(&self, name: &str, [first, second]: [&str; 2]) -> Option<String> {
        let target = self.target()?;
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let (path, query) = match name {
            "set-path" => (self.format(first)?, query),
            "set-query" => (path.to_owned(), &*self.format(first)?),
            "set-pathq" | "set-uri" => (self.format(first)?, ""),
            "replace-path" => (replace_match(first, path, &self.format(second)?)?, query),
            "replace-pathq" | "replace-uri" => {
                (replace_match(first, &target, &self.format(second)?)?, "")
            }
            _ => return None,
        };
        Some(if query.is_empty() { path } else { format!("{path}?{query}") })
    }

    /// Sends the request to another listener of the configuration, by a `server` line. Returns the state of TLS on that
    /// connection.
    pub(super) fn pass_on(&mut self, server: &Statement<'_>, bind: &Statement<'_>) -> Tls {
        let is_tls = server.has(|word| word == "ssl");
        self.request.server_name = is_tls.then_some("");
        self.port = port(bind.word(1));
        self.rewritten.insert("hdr x-forwarded-for".to_owned(), None);
        if is_tls { Tls::Sealed } else { Tls::None }
    }

    /// Returns the target after the changes by rules; None if it cannot be determined.
    pub(super) fn target(&self) -> Option<String> {
        match self.rewritten.get("target") {
            Some(target) => target?,
            None => Some(self.request.target.to_owned()),
        }
    }

    /// Returns a variable, if a rule has set it. Variables of the process are set elsewhere and are unknown.
    pub(super) fn variable(&self, name: &str) -> Value {
        match self.rewritten.get(&format!("var {name}")) {
            Some(value) => value,
            None if name.contains(',') || name.starts_with("proc.") => None,
            None => Some(None),
        }
    }

    /// Returns the text that a log format makes of a request; None if a part of it cannot be determined.
    pub(super) fn format(&self, format: &str) -> Option<String> {
        let mut text = String::new();
        let mut tail = format;
        while let Some((literal, behind)) = tail.split_once('%') {
            let (expression, behind) = behind.strip_prefix('[')?.split_once(']')?;
            text += literal;
            text += &self.value(expression)?.0.unwrap_or_default();
            tail = behind;
        }
        Some(text + tail)
    }

    /// Applies a converter to a value.
    pub(super) fn converted(&self, value: String, step: &str) -> Value {
        let (name, argument) = call(step)?;
        Some(match (name, &split_outside(argument)[..]) {
            ("lower", _) => Some(value.to_ascii_lowercase()),
            ("upper", _) => Some(value.to_ascii_uppercase()),
            ("host_only", _) => Some(without_port(&value).to_owned()),
            ("field" | "word", [number, ends]) => {
                let index = number.parse::<usize>().ok()?.checked_sub(1)?;
                let mut parts = value
                    .split(|c| ends.contains(c))
                    .filter(|part| name == "field" || !part.is_empty());
                Some(parts.nth(index).unwrap_or_default().to_owned())
            }
            ("concat", [before, variable, behind]) => {
                let variable = match *variable {
                    "" => None,
                    name => self.variable(name)?,
                };
                let inserted = variable.unwrap_or_default();
                Some(value + before + &inserted + behind)
            }
            (map, [file, default @ ..]) if map.starts_with("map") => {
                let method = map.split('_').nth(1).unwrap_or("str");
                let value = self.look_up(&value, method, file)?;
                value.or_else(|| default.first().map(|default| (*default).to_owned()))
            }
            _ => return None,
        })
    }

    /// Returns the value of a key in a map file: the first pattern that matches, or for `beg` the longest.
    fn look_up(&self, key: &str, method: &str, file: &str) -> Value {
        let (_, matches) = METHODS.iter().find(|(known, _)| *known == method)?;
        let mut nearest: Option<(&str, &str)> = None;
        let text = self.files.lines(file)?;
        for line in text.lines() {
            let (pattern, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let is_nearer =
                nearest.is_none_or(|(known, _)| method == "beg" && pattern.len() > known.len());
            if is_nearer && matches(key, pattern)? {
                nearest = Some((pattern, value.trim()));
            }
        }
        Some(nearest.map(|(_, value)| value.to_owned()))
    }
}

/// Replaces a text if a regular expression matches it, with groups for `\1`; otherwise returns it unchanged. None if
/// the expression cannot be evaluated.
fn replace_match(pattern: &str, text: &str, new: &str) -> Option<String> {
    if !is_found(pattern, false, text)? {
        return Some(text.to_owned());
    }
    let groups = captures(pattern, text)?;
    let mut filled = String::new();
    let mut characters = new.chars();
    while let Some(c) = characters.next() {
        let escaped = if c == '\\' { characters.next() } else { None };
        match escaped.and_then(|c| c.to_digit(10)) {
            Some(group) => filled += groups.get(group as usize).map_or("", |group| group),
            None => filled.push(escaped.unwrap_or(c)),
        }
    }
    Some(filled)
}
