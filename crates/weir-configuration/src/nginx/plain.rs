//! What nginx's directives mean, for whoever reads levels back and changes nothing.

use super::syntax::{self, Directive, Language, SyntaxError};
use super::view::{self, Node};
use crate::{ConfigurationError, Source};

/// A directive as it is meant, without its spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// The first word.
    pub name: String,
    /// The words behind it, without quotes.
    pub arguments: Vec<String>,
    /// What is between the braces, when there are any; empty for another language and for entries,
    /// as those of `map`.
    pub block: Option<Vec<Plain>>,
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

    fn new(text: &str, directive: &Directive, children: Vec<Plain>) -> Plain {
        let arguments = directive.words().map(str::to_owned);
        Plain {
            name: directive.name.text.clone(),
            arguments: arguments.collect(),
            block: directive.block.is_some().then_some(children),
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
    Plain::new(text, directive, children)
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
    let text = &source.files[node.file].text;
    Plain::new(text, node.directive, children.collect())
}
