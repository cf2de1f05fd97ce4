//! Replaces single statements, touching as few bytes as possible.

use std::collections::BTreeMap;
use std::ops::Range;

use weir_configuration::place::{filled, line_end, width};
use weir_configuration::{Source, Splice};

use super::keywords::is_rule;
use super::sections::{Section, Statement, Tree};
use super::words::Word;

/// A configuration that is being changed.
pub(super) struct Edit<'t> {
    pub(super) source: &'t Source,
    pub(super) tree: &'t Tree<'t>,
    pub(super) splices: Vec<Splice>,
}

impl<'t> Edit<'t> {
    pub(super) fn new(source: &'t Source, tree: &'t Tree<'t>) -> Edit<'t> {
        Edit { source, tree, splices: Vec::new() }
    }

    /// Returns the configuration with all changes.
    pub(super) fn done(self) -> Source {
        self.source.with(self.splices)
    }

    pub(super) fn splice(&mut self, file: usize, range: Range<usize>, text: impl Into<String>) {
        self.splices.push(Splice { file, range, text: text.into() });
    }

    /// Replaces words of a statement with other words (as they are written), touching only those that differ.
    pub(super) fn rewrite(&mut self, file: usize, old: &[Word<'_>], new: &[String]) {
        let text = &self.source.files[file].text;
        let same = |word: &Word<'_>, new: &String| text[word.span.clone()] == **new;
        let prefix = old.iter().zip(new).take_while(|(a, b)| same(a, b)).count();
        let (kept, old, new) = (&old[..prefix], &old[prefix..], &new[prefix..]);
        let suffix = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| same(a, b)).count();
        let (gone, next) = old.split_at(old.len() - suffix);
        let come = new[..new.len() - suffix].join(" ");
        let (range, come) = match (kept, gone, next) {
            (_, [], _) if come.is_empty() => return,
            (_, [], [next, ..]) => (next.span.start..next.span.start, come + " "),
            ([.., last], [], []) => (last.span.end..last.span.end, format!(" {come}")),
            (_, [first, ..], [next, ..]) if come.is_empty() => {
                (first.span.start..next.span.start, come)
            }
            ([.., before], [.., last], []) if come.is_empty() => {
                (before.span.end..last.span.end, come)
            }
            (_, [first, ..], _) => (first.span.start..gone[gone.len() - 1].span.end, come),
            ([], [], []) => return,
        };
        self.splice(file, range, come);
    }

    /// Takes a statement out, and its line too unless a comment stands there.
    pub(super) fn remove(&mut self, file: usize, statement: &Statement<'_>) {
        let text = &self.source.files[file].text;
        let words = statement.words_from(0);
        let comment = text[words.end..statement.line.end].find('#').map(|i| words.end + i);
        let range = match comment {
            Some(comment) => words.start..comment,
            None if text[..statement.line.end].ends_with('\n') => statement.line.clone(),
            // The last line of a file without a line end: the one before gets to be like that.
            None => {
                let before = text[..statement.line.start].trim_end_matches(['\r', '\n']);
                before.len()..statement.line.end
            }
        };
        self.splice(file, range, "");
    }

    /// Takes a whole section out.
    pub(super) fn remove_section(&mut self, section: &Section<'_>) {
        let lines: Vec<_> = section
            .statements
            .iter()
            .take_while(|statement| statement.depth >= section.header.depth)
            .cloned()
            .collect();
        self.remove(section.file, &section.header);
        // What belongs to an `.if` around the section stays.
        for statement in lines.iter().filter(|s| !s.is_macro() || s.depth > section.header.depth) {
            self.remove(section.file, statement);
        }
    }

    /// Takes some words of a statement out, with the blanks before them.
    pub(super) fn remove_words(&mut self, file: usize, words: &[Word<'_>], gone: Range<usize>) {
        let start = match gone.start {
            0 => words[0].span.start,
            first => words[first - 1].span.end,
        };
        self.splice(file, start..words[gone.end - 1].span.end, "");
    }

    /// Puts words behind a statement's last one.
    pub(super) fn append(&mut self, file: usize, statement: &Statement<'_>, words: &str) {
        let end = statement.words_from(0).end;
        self.splice(file, end..end, format!(" {words}"));
    }

    /// Writes a statement into a section: after its last one with the same first word, or else after the last that is
    /// no rule and no server. It is indented like that statement, with its last word in the column of the others' last
    /// words if they stand in one. It is never written inside an `.if`.
    pub(super) fn insert(&mut self, section: &Section<'_>, statement: &str) {
        let first = statement.split_whitespace().next().unwrap_or_default();
        let mut candidates =
            section.statements.iter().filter(|s| section.is_unconditional(s)).rev();
        let last = candidates.clone().find(|s| !is_rule(s.word(0)));
        let neighbour = candidates.find(|s| s.word(0) == first).or(last);
        let text = &self.source.files[section.file].text;
        let indent = neighbour.map_or_else(|| self.usual_indent(section.file), |n| indent(text, n));
        let line = &neighbour.unwrap_or(&section.header).line;
        let end = line_end(text);
        let written = if text[..line.end].ends_with('\n') {
            format!("{indent}{}{end}", aligned(text, section, indent, statement))
        } else {
            format!("{end}{indent}{}", aligned(text, section, indent, statement))
        };
        self.splice(section.file, line.end..line.end, written);
    }

    /// Appends a section to the first file.
    pub(super) fn append_section(&mut self, header: &str, statement: &str) {
        let text = &self.source.files[0].text;
        let end = line_end(text);
        let before = if text.ends_with('\n') { "" } else { end };
        let section = format!("{before}{header}{end}    {statement}{end}");
        self.splice(0, text.len()..text.len(), section);
    }

    /// Inserts a section before all others of the configuration.
    pub(super) fn insert_section(&mut self, header: &str, statements: &[String]) {
        let text = &self.source.files[0].text;
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let (indent, end) = (self.usual_indent(0), line_end(text));
        let lines: String = statements.iter().map(|s| format!("{indent}{s}{end}")).collect();
        self.splice(0, at..at, format!("{header}{end}{lines}{end}"));
    }

    fn usual_indent(&self, file: usize) -> &'t str {
        let text = &self.source.files[file].text;
        let mut statements = self
            .tree
            .sections
            .iter()
            .filter(|section| section.file == file)
            .flat_map(|section| &section.statements);
        statements.next().map_or("    ", |statement| indent(text, statement))
    }
}

/// Returns a statement with its last word aligned to a column in which at least two statements of the section have a
/// word behind more than one blank.
fn aligned(text: &str, section: &Section<'_>, indent: &str, statement: &str) -> String {
    let mut columns: BTreeMap<usize, (usize, &str)> = BTreeMap::new();
    let settings = section.statements.iter().filter(|s| !is_rule(s.word(0)) && s.word(0) != "bind");
    for line in settings {
        let spans = line.words.windows(2).map(|pair| (pair[0].span.end, pair[1].span.start));
        for (from, to) in spans.filter(|&(from, to)| &text[from..to] != " ") {
            let column = width(&text[line.line.start..to]);
            columns.entry(column).or_insert((0, &text[from..to])).0 += 1;
        }
    }
    let usual = columns.into_iter().max_by_key(|(_, (count, _))| *count);
    match (usual, statement.rsplit_once(' ')) {
        (Some((column, (2.., gap))), Some((head, last))) if width(indent) + head.len() < column => {
            format!("{head}{}{last}", filled(width(indent) + head.len(), column, gap))
        }
        _ => statement.to_owned(),
    }
}

/// Returns the blanks at the beginning of a statement's line.
fn indent<'t>(text: &'t str, statement: &Statement<'_>) -> &'t str {
    &text[statement.line.start..statement.words_from(0).start]
}
