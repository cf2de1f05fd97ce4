//! A configuration as nginx sees it: with the included files in the place of their `include`.

use super::syntax::{self, Directive, Language, Tree};
use crate::{ConfigurationError, Source, SourceFile};

/// Directives that a configuration may have once files that are included again and again are
/// counted as often; a few short files could ask for any number.
const SIZE_LIMIT: usize = 4_000_000;

/// A directive where nginx sees it.
#[derive(Debug)]
pub(super) struct Node<'t> {
    /// Index of its file.
    pub(super) file: usize,
    pub(super) directive: &'t Directive,
    /// What is in its block.
    pub(super) children: Vec<Node<'t>>,
    /// Which of them have no block. A block has few of these, and may have thousands of others.
    simple: Vec<usize>,
}

impl<'t> Node<'t> {
    fn new(file: usize, directive: &'t Directive, children: Vec<Node<'t>>) -> Node<'t> {
        let is_simple = |child: &Node<'_>| child.directive.block.is_none();
        let numbered = children.iter().enumerate();
        let simple = numbered.filter(|(_, child)| is_simple(child));
        Node {
            file,
            directive,
            simple: simple.map(|(index, _)| index).collect(),
            children,
        }
    }

    /// The directives of its block that have none themselves.
    pub(super) fn simple(&self) -> impl Iterator<Item = &Node<'t>> {
        self.simple.iter().map(|&index| &self.children[index])
    }

    /// Where it is written; one in a file that is included twice is there for several nodes.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.file, self.directive.name.span.start)
    }

    /// Whether it is a block of this kind.
    pub(super) fn is_block(&self, name: &str) -> bool {
        self.directive.is(name) && self.directive.block.is_some()
    }

    /// Whether it is a directive of this name that has no block.
    pub(super) fn is_simple(&self, name: &str) -> bool {
        self.directive.is(name) && self.directive.block.is_none()
    }
}

/// The trees of all files.
pub(super) fn parse(source: &Source) -> Result<Vec<Tree>, ConfigurationError> {
    let tree = |file: &SourceFile| {
        syntax::parse(&file.text)
            .map_err(|error| ConfigurationError::at(&file.path, &file.text, error.at, error.what))
    };
    source.files.iter().map(tree).collect()
}

/// Whether a directive stands for the content of files.
pub(super) fn is_include(directive: &Directive) -> bool {
    directive.is("include") && directive.block.is_none() && directive.arguments.len() == 1
}

/// An error at a directive.
pub(super) fn error_at(
    source: &Source,
    file: usize,
    directive: &Directive,
    what: impl Into<String>,
) -> ConfigurationError {
    let SourceFile { path, text } = &source.files[file];
    ConfigurationError::at(path, text, directive.name.span.start, what)
}

/// The directives of the main file with those of all others in their place.
pub(super) fn expand<'t>(
    source: &Source,
    trees: &'t [Tree],
) -> Result<Vec<Node<'t>>, ConfigurationError> {
    let mut expansion = Expansion {
        source,
        trees,
        open: Vec::new(),
        left: SIZE_LIMIT,
    };
    let mut nodes = Vec::new();
    if let Some(main) = trees.first() {
        expansion.directives(0, &main.directives, &mut nodes)?;
    }
    Ok(nodes)
}

struct Expansion<'s, 't> {
    source: &'s Source,
    trees: &'t [Tree],
    /// Files whose content is being put in place.
    open: Vec<usize>,
    left: usize,
}

impl<'t> Expansion<'_, 't> {
    fn directives(
        &mut self,
        file: usize,
        directives: &'t [Directive],
        nodes: &mut Vec<Node<'t>>,
    ) -> Result<(), ConfigurationError> {
        for directive in directives {
            let too_many = "files include others so often that too much stands here";
            self.left = self
                .left
                .checked_sub(1)
                .ok_or_else(|| error_at(self.source, file, directive, too_many))?;
            if is_include(directive) {
                self.include(file, directive, nodes)?;
                continue;
            }
            let mut children = Vec::new();
            let block = directive.block.as_ref();
            if let Some(block) = block.filter(|block| block.language == Language::Directives) {
                self.directives(file, &block.directives, &mut children)?;
            }
            nodes.push(Node::new(file, directive, children));
        }
        Ok(())
    }

    fn include(
        &mut self,
        file: usize,
        directive: &Directive,
        nodes: &mut Vec<Node<'t>>,
    ) -> Result<(), ConfigurationError> {
        let argument = directive.argument(0).unwrap_or_default();
        let included = self.source.includes.get(argument);
        for &inner in included.map_or(&[][..], |files| files) {
            if self.open.contains(&inner) || inner == 0 {
                let what = "files include each other in a cycle";
                return Err(error_at(self.source, file, directive, what));
            }
            self.open.push(inner);
            self.directives(inner, &self.trees[inner].directives, nodes)?;
            self.open.pop();
        }
        Ok(())
    }
}
