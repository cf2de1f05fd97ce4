//! A haproxy.cfg as sections of statements that know their bytes.

use std::collections::HashMap;
use std::ops::Range;

use super::keywords::SECTIONS;
use super::variables::Variables;
use super::words::{self, Word};
use crate::place::{error, is_among};
use crate::{ConfigurationError, Source, SourceFile};

/// One line that says something, macros such as `.if` included; comments and empty lines are none.
#[derive(Debug, Clone)]
pub struct Statement<'t> {
    /// Bytes of the line in the file's text, its line end included.
    pub line: Range<usize>,
    /// Its words; at least one.
    pub words: Vec<Word<'t>>,
    /// How many `.if` it stands in.
    pub depth: usize,
}

/// A section: its header and what follows up to the next one.
#[derive(Debug, Clone)]
pub struct Section<'t> {
    /// Index in [`Source::files`].
    pub file: usize,
    /// The header: `frontend web from http`.
    pub header: Statement<'t>,
    /// Its statements, in order.
    pub statements: Vec<Statement<'t>>,
}

/// All files of a configuration.
#[derive(Debug, Clone)]
pub struct Tree<'t> {
    /// The sections, in the order in which HAProxy reads them.
    pub sections: Vec<Section<'t>>,
    /// For each of them, the `defaults` section that it takes its settings from.
    parents: Vec<Option<usize>>,
}

impl<'t> Statement<'t> {
    /// The meaning of a word; empty where there is none, as HAProxy has it.
    pub fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| &word.text)
    }

    /// Whether it is one for the preprocessor (manual §2.4): `.if`, `.endif`, `.notice`.
    pub fn is_macro(&self) -> bool {
        self.word(0).starts_with('.')
    }

    /// Returns true if one of its words is so.
    pub(super) fn has(&self, is_so: impl Fn(&str) -> bool) -> bool {
        self.words.iter().any(|word| is_so(&word.text))
    }

    /// Its words, each a blank apart.
    pub(super) fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|word| &*word.text).collect();
        words.join(" ")
    }

    /// Returns true if it begins with these words.
    pub(super) fn begins_with(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && words.iter().zip(&self.words).all(|(a, b)| *a == b.text)
    }

    /// Bytes of the words from one to the last.
    pub(super) fn words_from(&self, index: usize) -> Range<usize> {
        let end = self
            .words
            .last()
            .map_or(self.line.end, |word| word.span.end);
        let start = self.words.get(index).map_or(end, |word| word.span.start);
        start..end
    }
}

impl<'t> Section<'t> {
    /// Its keyword: `frontend`.
    pub fn kind(&self) -> &str {
        self.header.word(0)
    }

    /// Its name, where it has one.
    pub fn name(&self) -> Option<&str> {
        match self.header.word(1) {
            "" => None,
            "from" if self.kind() == "defaults" && self.header.words.len() == 3 => None,
            name => Some(name),
        }
    }

    /// The `defaults` section that its header names.
    pub fn from(&self) -> Option<&str> {
        let words = &self.header.words;
        let at = words.iter().skip(1).position(|word| word.text == "from")? + 2;
        words.get(at).map(|word| &*word.text)
    }

    /// Whether it is asked or asks: `frontend`, `backend` or `listen`.
    pub fn is_proxy(&self) -> bool {
        self.has_frontend() || self.has_backend()
    }

    /// Whether it listens.
    pub fn has_frontend(&self) -> bool {
        matches!(self.kind(), "frontend" | "listen")
    }

    /// Whether it has servers.
    pub fn has_backend(&self) -> bool {
        matches!(self.kind(), "backend" | "listen")
    }

    /// Whether a statement is in force whatever `.if` says, once the section is.
    pub(super) fn is_unconditional(&self, statement: &Statement<'_>) -> bool {
        statement.depth == self.header.depth && !statement.is_macro()
    }
}

impl<'t> Tree<'t> {
    /// Reads all files. Every byte of theirs stays where it is: the tree says what is where.
    ///
    /// # Errors
    /// A quote that is left open, a statement before the first section of its file, an `.if` without
    /// `.endif` or the other way round.
    pub fn parse(source: &'t Source) -> Result<Tree<'t>, ConfigurationError> {
        let mut sections = Vec::new();
        let mut variables = Variables::default();
        for (index, file) in source.files.iter().enumerate() {
            Reader {
                file,
                index,
                sections: &mut sections,
                variables: &mut variables,
                open: Vec::new(),
            }
            .read()?;
        }
        let parents = parents(&sections);
        Ok(Tree { sections, parents })
    }

    /// Sections of a kind, with their places in [`Tree::sections`].
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = (usize, &Section<'t>)> {
        self.sections
            .iter()
            .enumerate()
            .filter(move |(_, section)| section.kind() == kind)
    }

    /// The `defaults` sections that a section takes its settings from, the nearest first: the one
    /// that its header names, or for a proxy without a name the last one above it (manual §4).
    pub fn defaults_of(&self, section: usize) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut at = section;
        while let Some(next) = self.parents[at] {
            chain.push(next);
            at = next;
        }
        chain
    }
}

impl<'t> Tree<'t> {
    /// A section and behind it the `defaults` that it takes its settings from.
    pub(super) fn chain(&self, index: usize) -> Vec<&Section<'t>> {
        let chain = std::iter::once(index).chain(self.defaults_of(index));
        chain.map(|index| &self.sections[index]).collect()
    }

    /// The backend that a frontend chooses by name.
    pub(super) fn backend(&self, name: &str) -> Option<usize> {
        let mut all = self.sections.iter();
        all.position(|section| section.has_backend() && section.name() == Some(name))
    }
}

fn parents(sections: &[Section<'_>]) -> Vec<Option<usize>> {
    let (mut last, mut named) = (None, HashMap::new());
    let mut parents = Vec::with_capacity(sections.len());
    for (index, section) in sections.iter().enumerate() {
        parents.push(match section.from() {
            Some(name) => named.get(name).copied(),
            None => last.filter(|_| section.is_proxy()),
        });
        if section.kind() == "defaults" {
            last = Some(index);
            named.extend(section.name().map(|name| (name, index)));
        }
    }
    parents
}

struct Reader<'t, 's> {
    file: &'t SourceFile,
    index: usize,
    sections: &'s mut Vec<Section<'t>>,
    variables: &'s mut Variables,
    /// Where each `.if` that is open begins.
    open: Vec<usize>,
}

impl<'t> Reader<'t, '_> {
    fn read(mut self) -> Result<(), ConfigurationError> {
        let text = &self.file.text;
        let first = self.sections.len();
        let mut at = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        while at < text.len() {
            let end = line_end_after(text, at);
            self.line(at..end, first)?;
            at = end;
        }
        match self.open.pop() {
            None => Ok(()),
            Some(at) => Err(error(self.file, at, "`.if` has no `.endif`")),
        }
    }

    fn line(&mut self, line: Range<usize>, first: usize) -> Result<(), ConfigurationError> {
        // `[scope]` is read by HAProxy before words are.
        if self.file.text[line.clone()].trim_start().starts_with('[') {
            return Ok(());
        }
        let split = words::split(&self.file.text, line.clone(), self.variables);
        let words = split.map_err(|open| {
            let what = "this quote is not closed in its line";
            error(self.file, open.at, what).hint("close it, or put a backslash before it")
        })?;
        let Some(word) = words.first() else {
            return Ok(());
        };
        let at = word.span.start;
        let depth = self.depth(&word.text, at)?;
        let mut statement = Statement { line, words, depth };
        self.expand_address(&mut statement);
        if is_among(statement.word(0), SECTIONS) {
            let section = Section {
                file: self.index,
                header: statement,
                statements: Vec::new(),
            };
            self.sections.push(section);
        } else if let Some(section) = self.sections[first..].last_mut() {
            if section.kind() == "global" {
                self.variables.read(&statement.words, depth == 0);
            }
            section.statements.push(statement);
        } else if !statement.is_macro() {
            let what = format!("unknown section `{}`", statement.word(0));
            let hint = format!("a file begins with one of {SECTIONS}");
            return Err(error(self.file, at, what).hint(hint));
        }
        Ok(())
    }

    /// Puts what variables hold into the address of a statement that has one.
    fn expand_address(&self, statement: &mut Statement<'_>) {
        let place = match statement.word(0) {
            "bind" | "dispatch" | "source" => 1,
            "server" | "peer" => 2,
            "server-template" => 3,
            _ => return,
        };
        let Some(address) = statement.words.get_mut(place) else {
            return;
        };
        if address.text.contains('$') {
            let (text, unknown) = self.variables.in_address(&address.text);
            address.text = text.into();
            address.variable = unknown.or(address.variable.take());
        }
    }

    /// The depth of the statement that begins with `word`, and what it does to the next one's.
    fn depth(&mut self, word: &str, at: usize) -> Result<usize, ConfigurationError> {
        match word {
            ".if" => {
                self.open.push(at);
                Ok(self.open.len() - 1)
            }
            ".endif" | ".elif" | ".else" if self.open.is_empty() => {
                Err(error(self.file, at, format!("`{word}` has no `.if`")))
            }
            ".endif" => {
                self.open.pop();
                Ok(self.open.len())
            }
            ".elif" | ".else" => Ok(self.open.len() - 1),
            _ => Ok(self.open.len()),
        }
    }
}

/// Where the line that begins at `at` ends, its line end included.
fn line_end_after(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |i| at + i + 1)
}

/// The first statement of a chain that begins with these words.
pub(super) fn first<'s, 't>(
    chain: &[&'s Section<'t>],
    words: &[&str],
) -> Option<&'s Statement<'t>> {
    let mut all = chain.iter().flat_map(|section| &section.statements);
    all.find(|statement| statement.begins_with(words))
}

/// `http`, or `tcp` where nothing is said.
pub(super) fn mode<'s>(chain: &[&'s Section<'_>]) -> &'s str {
    first(chain, &["mode"]).map_or("tcp", |statement| statement.word(1))
}
