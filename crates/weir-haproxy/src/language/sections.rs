//! A haproxy.cfg as sections of statements that know their byte ranges.

use std::collections::HashMap;
use std::ops::Range;

use weir_configuration::place::{error, is_among};
use weir_configuration::{ConfigurationError, Source, SourceFile};

use super::keywords::SECTIONS;
use super::variables::Variables;
use super::words::{self, Word};

/// One line with words, including macros such as `.if`; comments and empty lines are no statements.
#[derive(Debug, Clone)]
pub struct Statement<'t> {
    /// Byte range of the line in the file's text, with its line end.
    pub line: Range<usize>,
    /// Words of the line; at least one.
    pub words: Vec<Word<'t>>,
    /// Number of open `.if` blocks around the statement.
    pub depth: usize,
}

/// A section: its header, and the statements up to the next header.
#[derive(Debug, Clone)]
pub struct Section<'t> {
    /// Index in [`Source::files`].
    pub file: usize,
    /// Header of the section: `frontend web from http`.
    pub header: Statement<'t>,
    /// Statements of the section, in order.
    pub statements: Vec<Statement<'t>>,
}

/// All files of a configuration.
#[derive(Debug, Clone)]
pub struct Tree<'t> {
    /// The sections, in the order in which HAProxy reads them.
    pub sections: Vec<Section<'t>>,
    /// Index of the `defaults` section that each section takes its settings from; None if there is none.
    parents: Vec<Option<usize>>,
}

impl<'t> Statement<'t> {
    /// Returns the meaning of a word; empty if there is no such word, as in HAProxy.
    pub fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| &word.text)
    }

    /// Returns true if the statement is one for the preprocessor (manual §2.4): `.if`, `.endif`, `.notice`.
    pub fn is_macro(&self) -> bool {
        self.word(0).starts_with('.')
    }

    /// Returns true if `is_so` holds for one of the words.
    pub(super) fn has(&self, is_so: impl Fn(&str) -> bool) -> bool {
        self.words.iter().any(|word| is_so(&word.text))
    }

    /// Returns the words, with one blank between them.
    pub(super) fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|word| &*word.text).collect();
        words.join(" ")
    }

    /// Returns true if the statement begins with these words.
    pub(super) fn begins_with(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && words.iter().zip(&self.words).all(|(a, b)| *a == b.text)
    }

    /// Returns the byte range from one word to the last.
    pub(super) fn words_from(&self, index: usize) -> Range<usize> {
        let end = self.words.last().map_or(self.line.end, |word| word.span.end);
        let start = self.words.get(index).map_or(end, |word| word.span.start);
        start..end
    }
}

impl<'t> Section<'t> {
    /// Returns the keyword of the section: `frontend`.
    pub fn kind(&self) -> &str {
        self.header.word(0)
    }

    /// Returns the name of the section, if it has one.
    pub fn name(&self) -> Option<&str> {
        match self.header.word(1) {
            "" => None,
            "from" if self.kind() == "defaults" && self.header.words.len() == 3 => None,
            name => Some(name),
        }
    }

    /// Returns the name of the `defaults` section in the header.
    pub fn from(&self) -> Option<&str> {
        let words = &self.header.words;
        let at = words.iter().skip(1).position(|word| word.text == "from")? + 2;
        words.get(at).map(|word| &*word.text)
    }

    /// Returns true if the section is a proxy: `frontend`, `backend` or `listen`.
    pub fn is_proxy(&self) -> bool {
        self.has_frontend() || self.has_backend()
    }

    /// Returns true if the section listens.
    pub fn has_frontend(&self) -> bool {
        matches!(self.kind(), "frontend" | "listen")
    }

    /// Returns true if the section has servers.
    pub fn has_backend(&self) -> bool {
        matches!(self.kind(), "backend" | "listen")
    }

    /// Returns true if a statement is in force regardless of `.if`, provided that the section is.
    pub(super) fn is_unconditional(&self, statement: &Statement<'_>) -> bool {
        statement.depth == self.header.depth && !statement.is_macro()
    }
}

impl<'t> Tree<'t> {
    /// Parses all files. Their bytes stay as they are: the tree records the position of every word.
    ///
    /// # Errors
    /// Returns an error for a quote that is not closed, a statement before the first section of its file, an `.if`
    /// without `.endif`, or an `.endif` without `.if`.
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
        let parents = find_parents(&sections);
        Ok(Tree { sections, parents })
    }

    /// Returns the sections of a kind, each with its index in [`Tree::sections`].
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = (usize, &Section<'t>)> {
        self.sections.iter().enumerate().filter(move |(_, section)| section.kind() == kind)
    }

    /// Returns the `defaults` sections that a section takes its settings from, nearest first: the one that its header
    /// names, or for a proxy whose header names none, the last one above it (manual §4).
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
    /// Returns a section, followed by the `defaults` that it takes its settings from.
    pub(super) fn chain(&self, index: usize) -> Vec<&Section<'t>> {
        std::iter::once(index)
            .chain(self.defaults_of(index))
            .map(|index| &self.sections[index])
            .collect()
    }

    /// Returns the index of the section with servers of a name, as frontends choose it.
    pub(super) fn backend(&self, name: &str) -> Option<usize> {
        let mut all = self.sections.iter();
        all.position(|section| section.has_backend() && section.name() == Some(name))
    }
}

fn find_parents(sections: &[Section<'_>]) -> Vec<Option<usize>> {
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
    /// Byte offsets at which the open `.if` begin.
    open: Vec<usize>,
}

impl<'t> Reader<'t, '_> {
    fn read(mut self) -> Result<(), ConfigurationError> {
        let text = &self.file.text;
        let first = self.sections.len();
        let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
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
            let message = "this quote is not closed in its line";
            error(self.file, open.at, message).hint("close it, or put a backslash before it")
        })?;
        let Some(word) = words.first() else {
            return Ok(());
        };
        let at = word.span.start;
        let depth = self.depth(&word.text, at)?;
        let mut statement = Statement { line, words, depth };
        self.expand_address(&mut statement);
        if is_among(statement.word(0), SECTIONS) {
            let section = Section { file: self.index, header: statement, statements: Vec::new() };
            self.sections.push(section);
        } else if let Some(section) = self.sections[first..].last_mut() {
            if section.kind() == "global" {
                self.variables.read(&statement.words, depth == 0);
            }
            section.statements.push(statement);
        } else if !statement.is_macro() {
            let message = format!("unknown section `{}`", statement.word(0));
            let hint = format!("a file begins with one of {SECTIONS}");
            return Err(error(self.file, at, message).hint(hint));
        }
        Ok(())
    }

    /// Replaces the variables in the address of a statement, if it has an address.
    fn expand_address(&self, statement: &mut Statement<'_>) {
        let index = match statement.word(0) {
            "bind" | "dispatch" | "source" => 1,
            "server" | "peer" => 2,
            "server-template" => 3,
            _ => return,
        };
        let Some(address) = statement.words.get_mut(index) else {
            return;
        };
        if address.text.contains('$') {
            let (text, unknown) = self.variables.in_address(&address.text);
            address.text = text.into();
            address.variable = unknown.or(address.variable.take());
        }
    }

    /// Returns the depth of the statement that begins with `word`, and updates the depth for the next one.
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

/// Returns the end of the line that begins at `at`, with its line end.
fn line_end_after(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |i| at + i + 1)
}

/// Returns the first statement of a chain that begins with these words.
pub(super) fn first<'s, 't>(
    chain: &[&'s Section<'t>],
    words: &[&str],
) -> Option<&'s Statement<'t>> {
    let mut all = chain.iter().flat_map(|section| &section.statements);
    all.find(|statement| statement.begins_with(words))
}

/// Returns the mode of a chain of sections; `tcp` if none is set.
pub(super) fn mode<'s>(chain: &[&'s Section<'_>]) -> &'s str {
    first(chain, &["mode"]).map_or("tcp", |statement| statement.word(1))
}
