//! A configuration as nginx reads it: with the included files in place of their `include`.

use weir_configuration::{ConfigurationError, Source, SourceFile};

use super::syntax::{self, Directive, Language, Tree};

/// Maximum number of directives of a configuration, with files that are included several times counted as often; a few
/// short files could expand to any number.
const SIZE_LIMIT: usize = 4_000_000;

/// A directive in its place after the expansion of includes.
#[derive(Debug)]
pub(super) struct Node<'t> {
    /// Index of the directive's file.
    pub(super) file: usize,
    pub(super) directive: &'t Directive,
    /// Contents of the directive's block.
    pub(super) children: Vec<Node<'t>>,
    /// Indices of the children without a block. A block has few of these, and may have thousands of others.
    simple: Vec<usize>,
}

impl<'t> Node<'t> {
    fn new(file: usize, directive: &'t Directive, children: Vec<Node<'t>>) -> Node<'t> {
        let simple =
            children.iter().enumerate().filter(|(_, child)| child.directive.block.is_none());
        Node { file, directive, simple: simple.map(|(index, _)| index).collect(), children }
    }

    /// Returns the directives of the block that have no block themselves.
    pub(super) fn simple(&self) -> impl Iterator<Item = &Node<'t>> {
        self.simple.iter().map(|&index| &self.children[index])
    }

    /// Returns the position of the directive in its file. Several nodes share one position if the file is included
    /// twice.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.file, self.directive.name.span.start)
    }

    /// Returns true if the node is a block with this name.
    pub(super) fn is_block(&self, name: &str) -> bool {
        self.directive.is(name) && self.directive.block.is_some()
    }

    /// Returns true if the node is a directive with this name and without a block.
    pub(super) fn is_simple(&self, name: &str) -> bool {
        self.directive.is(name) && self.directive.block.is_none()
    }
}

/// Parses all files.
pub(super) fn parse(source: &Source) -> Result<Vec<Tree>, ConfigurationError> {
    source
        .files
        .iter()
        .map(|file| {
            syntax::parse(&file.text).map_err(|error| {
                ConfigurationError::at(&file.path, &file.text, error.at, error.what)
            })
        })
        .collect()
}

/// Returns true if a directive stands for the content of files.
pub(super) fn is_include(directive: &Directive) -> bool {
    directive.is("include") && directive.block.is_none() && directive.arguments.len() == 1
}

/// Returns an error at a directive.
pub(super) fn error_at(
    source: &Source,
    file: usize,
    directive: &Directive,
    what: impl Into<String>,
) -> ConfigurationError {
    let SourceFile { path, text } = &source.files[file];
    ConfigurationError::at(path, text, directive.name.span.start, what)
}

/// Returns the directives of the main file, with those of the included files in place of their `include`.
pub(super) fn expand<'t>(
    source: &Source,
    trees: &'t [Tree],
) -> Result<Vec<Node<'t>>, ConfigurationError> {
    let mut expansion = Expansion { source, trees, open: Vec::new(), left: SIZE_LIMIT };
    let mut nodes = Vec::new();
    if let Some(main) = trees.first() {
        expansion.directives(0, &main.directives, &mut nodes)?;
    }
    Ok(nodes)
}

struct Expansion<'s, 't> {
    source: &'s Source,
    trees: &'t [Tree],
    /// Indices of the files that are being expanded.
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
                let message = "files include each other in a cycle";
                return Err(error_at(self.source, file, directive, message));
            }
            self.open.push(inner);
            self.directives(inner, &self.trees[inner].directives, nodes)?;
            self.open.pop();
        }
        Ok(())
    }
}
