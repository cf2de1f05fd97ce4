//! What nginx's directives mean, for whoever reads levels back and changes nothing.

use super::syntax::{self, Directive, Language, SyntaxError};
use super::view::{self, Node};
use crate::{ConfigurationError, Source};

/// A directive as it is meant, without its spelling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plain {
    /// The first word.
    pub name: String,
    /// The words behind it, without quotes.
    pub arguments: Vec<String>,
    /// What is between the braces, when there are any; empty for another language and for entries.
    pub block: Option<Vec<Plain>>,
    /// What is between the braces where that is entries, as those of `map`; an `include` is one of them.
    pub entries: Vec<Plain>,
    /// Index of its file in [`Source::files`]; 0 of one text.
    pub file: usize,
    /// Line of its name in its file, counted from 1.
    pub line: usize,
    /// Whether all of it, its block left out, is on that line.
    pub on_one_line: bool,
}

impl Plain {
    /// Whether it stands for the content of files.
    pub fn is_include(&self) -> bool {
        self.name == "include" && self.block.is_none() && self.arguments.len() == 1
    }

    fn new((file, text): (usize, &str), directive: &Directive, children: Vec<Plain>) -> Plain {
        let arguments = directive.words().map(str::to_owned);
        let block = directive.block.as_ref();
        let entries = block.filter(|block| block.language == Language::Entries);
        let entries = entries.map_or(&[][..], |block| &block.directives);
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

/// The directives of one text, in which what it includes is not in its place.
///
/// # Errors
/// The text is not nginx's language.
pub fn directives(text: &str) -> Result<Vec<Plain>, SyntaxError> {
    let tree = syntax::parse(text)?;
    let all = tree.directives.iter();
    Ok(all.map(|one| of_directive(text, one)).collect())
}

fn of_directive(text: &str, directive: &Directive) -> Plain {
    let children = match &directive.block {
        Some(block) if block.language == Language::Directives => {
            let inner = block.directives.iter();
            inner.map(|one| of_directive(text, one)).collect()
        }
        _ => Vec::new(),
    };
    Plain::new((0, text), directive, children)
}

/// The directives of a configuration, with the included files in the place of their `include`.
///
/// # Errors
/// A file is not nginx's language: none that [`super::read`] gave.
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
