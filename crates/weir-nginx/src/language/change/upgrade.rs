//! Changes the header `Connection` of locations that speak WebSocket, if a `map` of `$http_upgrade` makes it.

use weir_configuration::{ConfigurationError, Splice};

use super::levels::{Chain, level_with};
use super::origin::header;
use super::{Planner, Writing};
use crate::language::place;
use crate::language::syntax::{Directive, Language};
use crate::language::view::{Node, error_at, is_include};

impl<'a> Planner<'a> {
    /// Lets a location that speaks WebSocket keep its connections for requests that ask for no upgrade. With the usual
    /// `map $http_upgrade $connection_upgrade { default upgrade; '' close; }` these are sent with `Connection: close`;
    /// an empty value sends no such header, and HTTP/1.1 keeps the connection (RFC 9112 section 9.3,
    /// <https://nginx.org/en/docs/http/websocket.html>).
    ///
    /// # Errors
    /// Returns an error if the variable is used for something else too.
    pub(super) fn keep_beside_upgrades(
        &mut self,
        chain: &Chain<'a>,
        writing: &Writing<'_>,
    ) -> Result<(), ConfigurationError> {
        let is_connection = writing.key.as_deref() == Some("Connection");
        let is_emptied = writing
            .text
            .as_ref()
            .is_some_and(|text| text.arguments.get(1).is_some_and(String::is_empty));
        let level = level_with(chain, &writing.name).filter(|_| is_connection && is_emptied);
        let Some(set) = level.and_then(|level| header(level, "connection")) else {
            return Ok(());
        };
        let Some(name) = set.directive.argument(1).and_then(variable) else {
            return Ok(());
        };
        let is_its_map = |node: &&Node<'_>| {
            let source = node.directive.argument(0).and_then(variable);
            let result = node.directive.argument(1).and_then(variable);
            node.is_block("map") && source == Some("http_upgrade") && result == Some(name)
        };
        let Some(map) = chain.first().and_then(|http| http.children.iter().find(is_its_map)) else {
            return Ok(());
        };
        let Some(splice) = self.not_closing(map) else {
            return Ok(());
        };
        if let Some(other) = self.nodes.iter().find_map(|node| self.other_use(node, name)) {
            let Node { file, directive, .. } = other;
            let message = format!(
                "`{}` would change `${name}`, which `{}` in line {} of {} uses too",
                writing.row.id,
                directive.name.text,
                directive.line,
                self.source.files[*file].path.display()
            );
            return Err(error_at(self.source, set.file, set.directive, message).hint(format!(
                "write `map $http_upgrade ${name}_kept {{ default upgrade; '' ''; }}` in `http`, and \
                 `proxy_set_header Connection ${name}_kept` here"
            )));
        }
        self.edits.change(splice);
        Ok(())
    }

    /// Returns the change by which a `map` of `$http_upgrade` gives an empty value instead of `close` for a request
    /// without that header; None if it does not give `close`.
    fn not_closing(&self, map: &Node<'_>) -> Option<Splice> {
        let entries = self.entries(map.file, map.directive);
        let find = |name: &str| entries.iter().find(|(_, entry)| entry.is(name));
        match find("") {
            Some((file, entry)) if closes(entry) => {
                let value = entry.arguments.first()?;
                let text = &self.source.files[*file].text;
                Some(Splice {
                    file: *file,
                    range: value.span.clone(),
                    text: text[entry.name.span.clone()].to_owned(),
                })
            }
            Some(_) => None,
            None => {
                let (file, default) = find("default").filter(|(_, entry)| closes(entry))?;
                let insertion = place::below(&self.source.files[*file].text, default, "'' ''");
                Some(Splice {
                    file: *file,
                    range: insertion.at..insertion.at,
                    text: insertion.text,
                })
            }
        }
    }

    /// Returns the entries of a `map`, with those of files that it includes.
    fn entries(&self, file: usize, map: &'a Directive) -> Vec<(usize, &'a Directive)> {
        let trees = self.trees;
        let mut entries = Vec::new();
        for entry in map.children() {
            let included = if is_include(entry) {
                entry.argument(0).and_then(|it| self.source.includes.get(it))
            } else {
                None
            };
            match included {
                Some(files) => entries.extend(files.iter().flat_map(|&file| {
                    trees[file].directives.iter().map(move |entry| (file, entry))
                })),
                None => entries.push((file, entry)),
            }
        }
        entries
    }

    /// Returns a directive that uses a variable for something else than the header `Connection`.
    fn other_use(&self, node: &'a Node<'a>, name: &str) -> Option<&'a Node<'a>> {
        let directive = node.directive;
        let is_connection = directive.is("proxy_set_header")
            && directive.argument(0).is_some_and(|it| it.eq_ignore_ascii_case("connection"));
        let mut words = directive.words().enumerate();
        let in_words = !is_connection
            && words.any(|(at, word)| !(directive.is("map") && at == 1) && mentions(word, name));
        let in_block = directive.block.as_ref().is_some_and(|block| match block.language {
            Language::Directives => false,
            Language::Lua => {
                self.source.files[node.file].text[block.open..block.close].contains(name)
            }
            Language::Entries => {
                let mut words = self
                    .entries(node.file, directive)
                    .into_iter()
                    .flat_map(|(_, entry)| entry.words());
                words.any(|word| mentions(word, name))
            }
        });
        if in_words || in_block {
            return Some(node);
        }
        node.children.iter().find_map(|child| self.other_use(child, name))
    }
}

/// Returns the `name` in `$name` or `${name}`, if the word is nothing else.
fn variable(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    let name = match name.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => name,
    };
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    is_name.then_some(name)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns true if a word contains a variable.
fn mentions(word: &str, name: &str) -> bool {
    word.split('$').skip(1).any(|tail| {
        let bare = tail.strip_prefix('{').unwrap_or(tail);
        let behind = bare.strip_prefix(name);
        behind.is_some_and(|behind| !behind.starts_with(is_of_name))
    })
}

/// Returns true if an entry of a map closes the connection.
fn closes(entry: &Directive) -> bool {
    entry.argument(0).is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_told_from_another_that_begins_like_it() {
        for (word, expected) in [
            ("$connection", true),
            ("${connection}s", true),
            ("a$connection-b", true),
            ("$connection_upgrade", false),
            ("connection", false),
        ] {
            assert_eq!(mentions(word, "connection"), expected, "{word}");
        }
        assert_eq!(variable("$a_1"), Some("a_1"));
        assert_eq!(variable("${a}"), Some("a"));
        for word in ["$a$b", "a", "$", "${a", "$a-b"] {
            assert_eq!(variable(word), None, "{word}");
        }
    }
}
