//! Meaning of nginx's directives, for code that reads levels back and changes nothing.

use weir_configuration::{ConfigurationError, Source};

use super::syntax::{self, Directive, Language, SyntaxError};
use super::view::{self, Node};

/// A directive by its meaning, without its spelling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plain {
    /// First word of the directive.
    pub name: String,
    /// Further words, without quotes.
    pub arguments: Vec<String>,
    /// Directives in the block, if there is a block; empty for another language and for entries.
    pub block: Option<Vec<Plain>>,
    /// Entries in a block such as that of `map`; an `include` is one of them.
    pub entries: Vec<Plain>,
    /// Index of the file in [`Source::files`]; 0 for a single text.
    pub file: usize,
    /// Line of the directive's name in its file, counted from 1.
    pub line: usize,
    /// True if all of the directive, except its block, is on that line.
    pub on_one_line: bool,
}

impl Plain {
    /// Returns true if the directive stands for the content of files.
    pub fn is_include(&self) -> bool {
        self.name == "include" && self.block.is_none() && self.arguments.len() == 1
    }

    fn new((file, text): (usize, &str), directive: &Directive, children: Vec<Plain>) -> Plain {
        let arguments = directive.words().map(str::to_owned);
        let block = directive.block.as_ref();
        let entries = block
            .filter(|block| block.language == Language::Entries)
            .map_or(&[][..], |block| &block.directives);
        Plain {
            name: directive.name.text.clone(),
            arguments: arguments.collect(),
            block: directive.block.is_some().then_some(children),
            entries: entries.iter().map(|one| of_directive(text, one)).collect(),
            file,
            line: directive.line,
            on_one_line: !text[directive.name.span.start..directive.terminator].contains('\n'),
        }
    }
}

/// Parses the directives of one text, without expanding its includes.
///
/// # Errors
/// Returns an error if the text is not in nginx's language.
pub fn directives(text: &str) -> Result<Vec<Plain>, SyntaxError> {
    let tree = syntax::parse(text)?;
    let all = tree.directives.iter();
    Ok(all.map(|one| of_directive(text, one)).collect())
}

fn of_directive(text: &str, directive: &Directive) -> Plain {
    let children = match &directive.block {
        Some(block) if block.language == Language::Directives => {
            block.directives.iter().map(|one| of_directive(text, one)).collect()
        }
        _ => Vec::new(),
    };
    Plain::new((0, text), directive, children)
}

/// Returns the directives of a configuration, with the included files in place of their `include`.
///
/// # Errors
/// Returns an error if a file is not in nginx's language, which cannot happen to a source from [`super::read`].
pub fn expanded(source: &Source) -> Result<Vec<Plain>, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    Ok(nodes.iter().map(|node| of_node(source, node)).collect())
}

fn of_node(source: &Source, node: &Node<'_>) -> Plain {
    let children = node.children.iter().map(|node| of_node(source, node));
    let text = &*source.files[node.file].text;
    Plain::new((node.file, text), node.directive, children.collect())
}
