//! Edits of single directives.

use std::collections::BTreeSet;

use weir_configuration::Splice;

use super::{LOGS, Planner, Text, Writing};
use crate::language::place::{self, Insertion};
use crate::language::syntax::{Directive, quoted};
use crate::language::value::{in_style, same, same_word};
use crate::language::view::Node;

/// Changes to be made to the files.
#[derive(Default)]
pub(super) struct Edits {
    /// Changes of existing text.
    pub(super) changes: Vec<Splice>,
    /// New text beside the existing one.
    pub(super) insertions: Vec<Splice>,
    /// All splices so far: a file that is included twice is edited once.
    done: BTreeSet<(usize, usize, usize, String)>,
}

impl Edits {
    pub(super) fn change(&mut self, splice: Splice) {
        if self.is_new(&splice) {
            self.changes.push(splice);
        }
    }

    pub(super) fn insert(&mut self, splice: Splice) {
        if self.is_new(&splice) {
            self.insertions.push(splice);
        }
    }

    fn is_new(&mut self, splice: &Splice) -> bool {
        let Splice { file, range, text } = splice;
        self.done.insert((*file, range.start, range.end, text.clone()))
    }
}

impl Planner<'_> {
    /// Edits the directives of one block that a writing is about.
    pub(super) fn edit_all(&mut self, nodes: &[&Node<'_>], writing: &Writing<'_>) {
        if writing.yields() {
            return;
        }
        let Some(text) = &writing.text else {
            nodes
                .iter()
                .filter(|node| is_written(node.directive, writing))
                .for_each(|node| self.remove(node));
            return;
        };
        let is_log = writing.is_log();
        for (index, node) in nodes.iter().enumerate() {
            if is_log && index > 0 && writing.is_off() {
                // One `off` is enough, and logs beside it would be read as if they were written.
                self.remove(node);
                continue;
            }
            let wanted = if is_log {
                self.log(node.directive, text, writing)
            } else {
                Some(merge_arguments(node.directive, &text.arguments))
            };
            if let Some(wanted) = wanted {
                self.edit(node, &wanted, writing);
            }
        }
    }

    fn edit(&mut self, node: &Node<'_>, wanted: &[String], writing: &Writing<'_>) {
        let kind = &writing.row.level;
        let current: Vec<&str> = node.directive.words().collect();
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        if same(kind, &current, &wanted) {
            return;
        }
        let words = &node.directive.arguments;
        if words.len() == wanted.len() {
            let pairs = words.iter().zip(&wanted);
            for (word, wanted) in pairs.filter(|(word, it)| !same_word(kind, &word.text, it)) {
                self.edits.change(Splice {
                    file: node.file,
                    range: word.span.clone(),
                    text: quoted(&in_style(kind, &word.text, wanted)),
                });
            }
            return;
        }
        let wanted: Vec<String> = wanted.iter().map(|word| quoted(word)).collect();
        let (range, blank) = match (words.first(), words.last()) {
            (Some(first), Some(last)) => (first.span.start..last.span.end, ""),
            _ => (node.directive.name.span.end..node.directive.name.span.end, " "),
        };
        self.edits.change(Splice {
            file: node.file,
            range,
            text: format!("{blank}{}", wanted.join(" ")),
        });
    }

    fn remove(&mut self, node: &Node<'_>) {
        let text = &self.source.files[node.file].text;
        self.edits.change(Splice {
            file: node.file,
            range: place::removal(text, node.directive),
            text: String::new(),
        });
    }

    /// Inserts a missing directive into a block, or outside of all blocks of the main file.
    pub(super) fn insert(&mut self, writing: &Writing<'_>, block: Option<&Node<'_>>) {
        let Some(text) = &writing.text else { return };
        let file = block.map_or(0, |block| block.file);
        let directive = if text.whole.contains(LOGS) {
            text.whole.replace(LOGS, &self.logs())
        } else {
            text.whole.clone()
        };
        let Insertion { at, text } = place::insertion(
            &self.source.files[file].text,
            &self.trees[file],
            block.map(|block| block.directive),
            &directive,
        );
        self.edits.insert(Splice { file, range: at..at, text });
    }

    /// Returns the new arguments of a user's log; None if the log stays as it is.
    fn log(&self, log: &Directive, text: &Text, writing: &Writing<'_>) -> Option<Vec<String>> {
        let wanted: Vec<String> =
            text.arguments.iter().map(|word| word.replace(LOGS, &self.logs())).collect();
        let current: Vec<&str> = log.words().collect();
        if current.first() == Some(&"off") || writing.is_off() {
            return Some(wanted);
        }
        let parameters: Vec<&String> = wanted.iter().filter(|word| word.contains('=')).collect();
        let file = *current.first()?;
        let is_unbuffered = file.starts_with("syslog:") || file.contains('$');
        if is_unbuffered && !parameters.is_empty() {
            return None;
        }
        let (options, format) = match current.get(1) {
            Some(format) => (&current[2..], Some(*format)),
            None => (&[][..], None),
        };
        let is_buffered = options.iter().any(|word| is_of_row(word, writing));
        let unrelated = options.iter().filter(|word| !is_of_row(word, writing));
        // Parameters stand behind a format, and the one that is nginx's own is needed for them alone.
        let is_for_parameters = is_buffered && unrelated.clone().count() == 0;
        let format = if parameters.is_empty() {
            format.filter(|format| !is_for_parameters || *format != "combined")
        } else {
            format.or(Some("combined"))
        };
        let words = std::iter::once(file)
            .chain(format)
            .chain(unrelated.copied())
            .chain(parameters.into_iter().map(String::as_str));
        Some(words.map(str::to_owned).collect())
    }

    /// Returns the folder in which the user has logs.
    fn logs(&self) -> String {
        let inner = self.nodes.iter().filter(|node| node.is_block("http")).flat_map(Node::simple);
        let mut files = self.nodes.iter().chain(inner).filter_map(|node| {
            let is_log = node.is_simple("access_log") || node.is_simple("error_log");
            let file = node.directive.argument(0).filter(|_| is_log)?;
            let (folder, _) = file.rsplit_once('/')?;
            let is_folder = !folder.is_empty() && !folder.contains([':', '$', '{']);
            is_folder.then(|| folder.to_owned())
        });
        // As a distribution has it; a relative path would be below the program's own prefix.
        files.next().unwrap_or_else(|| "/var/log/nginx".to_owned())
    }
}

/// Returns true if some level of the row would write this directive.
fn is_written(directive: &Directive, writing: &Writing<'_>) -> bool {
    writing.templates.iter().any(|write| {
        let has_value = write.text.contains('{');
        let words = super::arguments(&write.text);
        has_value || words.iter().map(String::as_str).eq(directive.words())
    })
}

/// Returns true if some level of the row sets this parameter of a log.
fn is_of_row(word: &str, writing: &Writing<'_>) -> bool {
    let key = word.split_once('=').map(|(key, _)| key);
    let mut keys = writing
        .templates
        .iter()
        .map(|write| &write.text)
        .flat_map(|text| text.split(' '))
        .filter_map(|word| word.split_once('=').map(|(key, _)| key));
    key.is_some_and(|key| keys.any(|other| other == key))
}

/// Returns the wanted arguments, with the user's own parts of the existing ones.
fn merge_arguments(directive: &Directive, wanted: &[String]) -> Vec<String> {
    let mut words = wanted.to_vec();
    if directive.is("keepalive_timeout") && words.len() == 1 {
        // The second is what the header `Keep-Alive` tells clients.
        words.extend(directive.words().skip(1).map(str::to_owned));
    }
    let zone = directive.words().find_map(|word| word.strip_prefix("shared:"));
    let name = zone.and_then(|zone| zone.split(':').next());
    for word in &mut words {
        if let Some(name) = name
            && let Some((_, size)) = word.strip_prefix("shared:").and_then(|it| it.split_once(':'))
        {
            *word = format!("shared:{name}:{size}");
        }
    }
    words
}
