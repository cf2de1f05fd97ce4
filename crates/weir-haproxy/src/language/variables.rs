//! Variables of the environment (manual §2.3), as far as their values are known where a line is read.

use std::collections::BTreeMap;

use super::words::Word;

/// Known values of variables at a line: those set by the statements of `global` above it, and otherwise those in the
/// environment of this process, which HAProxy inherits.
#[derive(Debug, Default)]
pub(super) struct Variables {
    said: BTreeMap<String, Assignment>,
    /// True if `resetenv` has removed all variables without an entry.
    are_reset: bool,
}

#[derive(Debug)]
enum Assignment {
    Holds(String),
    Gone,
    /// The value depends on facts that only the proxy knows: on an `.if`, or on another variable.
    Unsure,
}

/// A variable as it is written in double quotes, or in an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written<'t> {
    pub(super) name: &'t str,
    /// Text that replaces the variable if it does not exist.
    default: Option<&'t str>,
    /// Length of the whole variable, bytes.
    pub(super) length: usize,
}

impl Written<'_> {
    /// Parses the variable that a text begins with: `$NAME`, `${NAME}`, `${NAME-DEFAULT}`. `${NAME[*]}`, which can be
    /// several words, is not recognised.
    pub(super) fn first(text: &str) -> Option<Written<'_>> {
        let behind = text.strip_prefix('$')?;
        let inner = behind.strip_prefix('{');
        let content = inner.unwrap_or(behind);
        let end = content.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, rest) = content.split_at(end.unwrap_or(content.len()));
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let (default, rest) = match (inner, rest.strip_prefix('-')) {
            (None, _) => (None, rest),
            (_, None) => (None, rest.strip_prefix('}')?),
            (_, Some(default)) => {
                let (default, rest) = default.split_once('}')?;
                (Some(default), rest)
            }
        };
        Some(Written { name, default, length: text.len() - rest.len() })
    }
}

impl Variables {
    /// Returns the text that replaces a variable; None if the value is not known.
    pub(super) fn value(&self, written: &Written<'_>) -> Option<String> {
        let default = || written.default.map(str::to_owned);
        match self.said.get(written.name) {
            Some(Assignment::Holds(value)) => Some(value.clone()),
            Some(Assignment::Unsure) => None,
            Some(Assignment::Gone) => default(),
            None if self.are_reset => default(),
            None => std::env::var(written.name).ok().or_else(default),
        }
    }

    /// Returns an address with its variables replaced, and the name of the first variable whose value is not known.
    /// HAProxy replaces variables in addresses regardless of quotes, except those with a default (`env_expand`, which
    /// `str2sa_range` in its `tools.c` calls).
    pub(super) fn in_address(&self, address: &str) -> (String, Option<String>) {
        let (mut expanded, mut unknown) = (String::new(), None);
        let mut tail = address;
        while let Some(at) = tail.find('$') {
            expanded.push_str(&tail[..at]);
            tail = &tail[at..];
            let written = Written::first(tail).filter(|written| written.default.is_none());
            let value = written.as_ref().and_then(|written| self.value(written));
            let length = written.as_ref().map_or(1, |written| written.length);
            if let (Some(written), None) = (written, &value) {
                unknown.get_or_insert_with(|| written.name.to_owned());
            }
            expanded.push_str(value.as_deref().unwrap_or(&tail[..length]));
            tail = &tail[length..];
        }
        expanded.push_str(tail);
        (expanded, unknown)
    }

    /// Applies the effect of a `global` statement on the environment; `is_sure` is true if the statement applies
    /// regardless of `.if`.
    pub(super) fn read(&mut self, words: &[Word<'_>], is_sure: bool) {
        let names = words.iter().skip(1).map(|word| word.text.to_string());
        let names: Vec<String> = names.collect();
        let keyword = words.first().map_or("", |word| &word.text);
        match (keyword, &names[..]) {
            ("presetenv", [name, ..]) if self.exists(name) != Some(false) => {}
            ("setenv" | "presetenv", [name, ..]) => {
                let assignment = words
                    .get(2)
                    .filter(|word| is_sure && word.variable.is_none())
                    .map_or(Assignment::Unsure, |word| Assignment::Holds(word.text.to_string()));
                self.said.insert(name.clone(), assignment);
            }
            ("unsetenv", names) => {
                for name in names {
                    let assignment = if is_sure { Assignment::Gone } else { Assignment::Unsure };
                    self.said.insert(name.clone(), assignment);
                }
            }
            ("resetenv", kept) if is_sure => {
                for name in kept {
                    if let (None, Ok(value)) = (self.said.get(name), std::env::var(name)) {
                        self.said.insert(name.clone(), Assignment::Holds(value));
                    }
                }
                self.said.retain(|name, _| kept.contains(name));
                self.are_reset = true;
            }
            ("resetenv", _) => {
                self.said.values_mut().for_each(|said| *said = Assignment::Unsure);
            }
            _ => {}
        }
    }

    fn exists(&self, name: &str) -> Option<bool> {
        match self.said.get(name) {
            Some(Assignment::Holds(_)) => Some(true),
            Some(Assignment::Gone) => Some(false),
            Some(Assignment::Unsure) => None,
            None => Some(!self.are_reset && std::env::var_os(name).is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_a_name_and_perhaps_a_default() {
        for (text, expected) in [
            ("$PORT:1", Some(("PORT", None, 5))),
            ("${A_1}x", Some(("A_1", None, 6))),
            ("${PORT-80 80}x", Some(("PORT", Some("80 80"), 13))),
            ("${PORT-}", Some(("PORT", Some(""), 8))),
            ("${PORT[*]}", None),
            ("${PORT", None),
            ("${PORT-80", None),
            ("$1", None),
            ("$", None),
            ("${.LINE}", None),
        ] {
            let parsed = Written::first(text).map(|it| (it.name, it.default, it.length));
            assert_eq!(parsed, expected, "{text}");
        }
    }
}
