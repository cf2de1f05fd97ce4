//! Common tree of JSON and YAML, whose nodes know their byte ranges.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value as Json;

use super::{json, yaml};
use crate::place::error;
use crate::{ConfigurationError, SourceFile};

/// Maximum number of values in a document, counted with everything that its aliases stand for: a few bytes can stand
/// for any number of values. The largest bootstraps of Envoy have some hundred thousand.
pub(super) const MOST_VALUES: usize = 1 << 20;

/// Maximum number of bytes in these values: as many as the largest file that is read has.
const MOST_BYTES: usize = 64 << 20;

/// Maximum depth of nesting, with aliases followed: that of serde_json.
const DEEPEST: usize = 128;

/// Format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON (RFC 8259).
    Json,
    /// YAML 1.2; one document.
    Yaml,
}

/// A value and its position.
#[derive(Debug, Clone)]
pub struct Node {
    /// Byte range in the text. For a collection in YAML's block style: from its first key or item to the end of its
    /// last one.
    pub span: Range<usize>,
    pub value: Value,
    /// Number of the node's anchor: `&name`.
    pub anchor: Option<usize>,
}

/// Value of a node.
#[derive(Debug, Clone)]
pub enum Value {
    /// Scalar: text, number, true, false or null.
    Scalar {
        text: String,
        style: Style,
    },
    List(Vec<Node>),
    /// Object; `flow` is JSON's style, with braces.
    Map {
        entries: Vec<Entry>,
        flow: bool,
    },
    /// Alias `*name`, by the number of its anchor.
    Alias(usize),
}

/// Notation of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Single,
    Double,
    /// YAML's `|` and `>`.
    Block,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub struct Entry {
    pub key: String,
    pub(super) key_span: Range<usize>,
    pub value: Node,
}

/// A whole document.
#[derive(Debug)]
pub struct Tree {
    pub root: Node,
    /// Copies of the nodes with anchors, by anchor. An alias refers to one of them instead of containing it.
    anchored: BTreeMap<usize, Node>,
    /// Number of times that each anchor's node occurs: once in its own place, and once for each alias.
    pub(super) references: BTreeMap<usize, usize>,
}

impl Tree {
    pub fn parse(file: &SourceFile, format: Format) -> Result<Tree, ConfigurationError> {
        let root = match format {
            Format::Json => json::parse(file)?,
            Format::Yaml => yaml::parse(file)?,
        };
        Extents::new(file).measure(&root)?;
        let (mut anchored, mut references) = (BTreeMap::new(), BTreeMap::new());
        collect(&root, &mut anchored, &mut references);
        Ok(Tree { root, anchored, references })
    }

    /// Returns the node itself, or the node that it is an alias of.
    pub fn resolve<'n>(&'n self, node: &'n Node) -> &'n Node {
        match node.value {
            // An anchor stands before its aliases, so this ends.
            Value::Alias(anchor) => self.anchored.get(&anchor).map_or(node, |n| self.resolve(n)),
            _ => node,
        }
    }

    /// Returns the value of a node, with aliases followed.
    pub fn meaning(&self, node: &Node) -> Json {
        match &node.value {
            // How much this can be was measured before.
            Value::Alias(_) => self.meaning(self.resolve(node)),
            Value::Scalar { text, style: Style::Plain } => plain(text),
            Value::Scalar { text, .. } => Json::String(text.clone()),
            Value::List(items) => {
                Json::Array(items.iter().map(|item| self.meaning(item)).collect())
            }
            Value::Map { entries, .. } => Json::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), self.meaning(&entry.value)))
                    .collect(),
            ),
        }
    }
}

/// Size of a node, with everything that its aliases stand for.
#[derive(Clone, Copy)]
struct Extent {
    values: usize,
    bytes: usize,
    depth: usize,
}

impl Extent {
    fn of_text(bytes: usize) -> Extent {
        Extent { values: 1, bytes, depth: 1 }
    }
}

/// Sizes of all nodes with anchors, by anchor. Anchors precede their aliases in the text.
struct Extents<'f> {
    file: &'f SourceFile,
    of: BTreeMap<usize, Extent>,
    /// Number of values in all of them, which is the number of values that are copied.
    anchored: usize,
}

impl<'f> Extents<'f> {
    fn new(file: &'f SourceFile) -> Extents<'f> {
        Extents { file, of: BTreeMap::new(), anchored: 0 }
    }

    /// Measures a node, and records its size if it has an anchor.
    ///
    /// # Errors
    /// Returns an error, with the place, if a node stands for more than a configuration needs, or for itself.
    fn measure(&mut self, node: &Node) -> Result<Extent, ConfigurationError> {
        let extent = match &node.value {
            Value::Scalar { text, .. } => Extent::of_text(text.len()),
            Value::Alias(anchor) => *self.of.get(anchor).ok_or_else(|| {
                let message = "this alias stands within the value that it stands for";
                error(self.file, node.span.start, message).hint("write out what is meant")
            })?,
            Value::List(items) => {
                items.iter().try_fold(Extent::of_text(0), |sum, item| self.add(sum, 0, item))?
            }
            Value::Map { entries, .. } => {
                entries.iter().try_fold(Extent::of_text(0), |sum, entry| {
                    self.add(sum, entry.key.len(), &entry.value)
                })?
            }
        };
        if let Some(anchor) = node.anchor {
            self.of.insert(anchor, extent);
            self.anchored += extent.values;
            if self.anchored > MOST_VALUES {
                return Err(self.too_much(node, "too many values have anchors"));
            }
        }
        Ok(extent)
    }

    /// Returns the sum with one more item, and the length of its key.
    fn add(&mut self, sum: Extent, key: usize, item: &Node) -> Result<Extent, ConfigurationError> {
        let more = self.measure(item)?;
        let sum = Extent {
            values: sum.values + more.values,
            bytes: sum.bytes + key + more.bytes,
            depth: sum.depth.max(more.depth + 1),
        };
        match () {
            () if sum.values > MOST_VALUES => Err(self.too_much(item, "too many values")),
            () if sum.bytes > MOST_BYTES => Err(self.too_much(item, "too much text")),
            () if sum.depth > DEEPEST => Err(self.too_much(item, "too deep a nesting")),
            () => Ok(sum),
        }
    }

    fn too_much(&self, node: &Node, what: &str) -> ConfigurationError {
        let limits = format!(
            "{MOST_VALUES} values, {} MiB and {DEEPEST} levels are allowed, with what aliases stand for",
            MOST_BYTES >> 20
        );
        error(self.file, node.span.start, what).hint(limits)
    }
}

/// Collects the nodes with anchors, and counts how often each occurs.
fn collect(
    node: &Node,
    anchored: &mut BTreeMap<usize, Node>,
    references: &mut BTreeMap<usize, usize>,
) {
    if let Some(anchor) = node.anchor {
        anchored.insert(anchor, node.clone());
        *references.entry(anchor).or_default() += 1;
    }
    match &node.value {
        Value::Alias(anchor) => *references.entry(*anchor).or_default() += 1,
        Value::List(items) => items.iter().for_each(|item| collect(item, anchored, references)),
        Value::Map { entries, .. } => {
            entries.iter().for_each(|entry| collect(&entry.value, anchored, references));
        }
        Value::Scalar { .. } => {}
    }
}

/// Returns the value of a scalar without quotes by YAML's core schema, which includes JSON's.
pub(super) fn plain(text: &str) -> Json {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "true" | "True" | "TRUE" => Json::Bool(true),
        "false" | "False" | "FALSE" => Json::Bool(false),
        text => match serde_json::from_str::<serde_json::Number>(text) {
            Ok(number) => Json::Number(number),
            Err(_) => Json::String(text.to_owned()),
        },
    }
}

/// Returns the index of a key among entries. Envoy reads both spellings of its fields, `connect_timeout` and
/// `connectTimeout`.
pub(super) fn position(entries: &[Entry], key: &str) -> Option<usize> {
    let exact = entries.iter().position(|entry| entry.key == key);
    exact.or_else(|| {
        let other_spelling = camel(key);
        entries.iter().position(|entry| entry.key == other_spelling)
    })
}

/// Converts a key to camel case: `connectTimeout` for `connect_timeout`.
pub fn camel(key: &str) -> String {
    let mut words = key.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (head, tail) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        text + &head.to_uppercase() + tail
    })
}
