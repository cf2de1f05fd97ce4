//! A configuration as nginx sees it, for whoever reads levels back.

use super::view::{self, Node};
use crate::{ConfigurationError, Source};

/// A directive, with the included files in the place of their `include`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The first word.
    pub name: String,
    /// The words behind it, without quotes.
    pub arguments: Vec<String>,
    /// What is between the braces, when there are any; empty for another language.
    pub block: Option<Vec<Expanded>>,
    /// Line of its name in its file, counted from 1.
    pub line: usize,
}

/// The directives of a configuration and of all that it includes, in nginx's order.
///
/// # Errors
/// A file is not nginx's language: none that [`super::read`] gave.
pub fn expanded(source: &Source) -> Result<Vec<Expanded>, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    Ok(nodes.iter().map(of_node).collect())
}

fn of_node(node: &Node<'_>) -> Expanded {
    let directive = node.directive;
    let arguments = directive.arguments.iter().map(|word| word.text.clone());
    let is_block = directive.block.is_some();
    Expanded {
        name: directive.name.text.clone(),
        arguments: arguments.collect(),
        block: is_block.then(|| node.children.iter().map(of_node).collect()),
        line: directive.line,
    }
}
