//! JSON and YAML as one kind of tree whose nodes know their bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value as Json;

use super::{json, yaml};
use crate::place::error;
use crate::{ConfigurationError, SourceFile};

/// Values of a document at most, with those that its aliases stand for: a few bytes can stand for any number of
/// them. The largest bootstraps of Envoy have some hundred thousand.
pub(super) const MOST_VALUES: usize = 1 << 20;

/// Bytes of their texts at most: as many as the largest file has that is read.
const MOST_BYTES: usize = 64 << 20;

/// Deepest nesting with aliases followed: that of serde_json.
const DEEPEST: usize = 128;

/// A language of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 8259.
    Json,
    /// YAML 1.2; one document.
    Yaml,
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Bytes of the text. Of a collection in YAML's block style: from its first key or item to the
    /// end of its last one.
    pub(super) span: Range<usize>,
    pub(super) value: Value,
    /// The anchor that is put on it: `&name`.
    pub(super) anchor: Option<usize>,
}

/// What stands in a place.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// Text, number, true, false or null.
    Scalar {
        text: String,
        style: Style,
    },
    List(Vec<Node>),
    /// `flow` is JSON's style, with braces.
    Map {
        entries: Vec<Entry>,
        flow: bool,
    },
    /// `*name`, by its anchor.
    Alias(usize),
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    /// YAML's `|` and `>`.
    Block,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    pub(super) value: Node,
}

/// A whole document.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: Node,
    /// Nodes with anchors. Copies: YAML's trees are cut where an alias refers.
    anchored: BTreeMap<usize, Node>,
    /// How often each anchor's node is there: once where it stands, and once for each alias.
    pub(super) references: BTreeMap<usize, usize>,
}

impl Tree {
    pub(super) fn parse(file: &SourceFile, format: Format) -> Result<Tree, ConfigurationError> {
        let root = match format {
            Format::Json => json::parse(file)?,
            Format::Yaml => yaml::parse(file)?,
        };
        Extents::new(file).measure(&root)?;
        let (mut anchored, mut references) = (BTreeMap::new(), BTreeMap::new());
        collect(&root, &mut anchored, &mut references);
        Ok(Tree {
            root,
            anchored,
            references,
        })
    }

    /// The node itself, or the one that it is an alias of.
    pub(super) fn resolve<'n>(&'n self, node: &'n Node) -> &'n Node {
        match node.value {
            // An anchor stands before its aliases, so this ends.
            Value::Alias(anchor) => self.anchored.get(&anchor).map_or(node, |n| self.resolve(n)),
            _ => node,
        }
    }

    /// What a node means, with aliases followed.
    pub(super) fn meaning(&self, node: &Node) -> Json {
        match &node.value {
            // How much this can be was measured before.
            Value::Alias(_) => self.meaning(self.resolve(node)),
            Value::Scalar {
                text,
                style: Style::Plain,
            } => plain(text),
            Value::Scalar { text, .. } => Json::String(text.clone()),
            Value::List(items) => {
                Json::Array(items.iter().map(|item| self.meaning(item)).collect())
            }
            Value::Map { entries, .. } => {
                let pair = |entry: &Entry| (entry.key.clone(), self.meaning(&entry.value));
                Json::Object(entries.iter().map(pair).collect())
            }
        }
    }
}

/// How much a node stands for, itself included.
#[derive(Clone, Copy)]
struct Extent {
    values: usize,
    bytes: usize,
    depth: usize,
}

/// What all nodes with anchors stand for, in the order of the text: an anchor stands before its aliases.
struct Extents<'f> {
    file: &'f SourceFile,
    of: BTreeMap<usize, Extent>,
    /// Values in all of them: as many are copied.
    anchored: usize,
}

impl<'f> Extents<'f> {
    fn new(file: &'f SourceFile) -> Extents<'f> {
        Extents {
            file,
            of: BTreeMap::new(),
            anchored: 0,
        }
    }

    /// # Errors
    /// A node stands for more than a configuration needs, or for itself; with the place where that shows.
    fn measure(&mut self, node: &Node) -> Result<Extent, ConfigurationError> {
        let text = |bytes: usize| Extent {
            values: 1,
            bytes,
            depth: 1,
        };
        let own = match &node.value {
            Value::Scalar { text: own, .. } => text(own.len()),
            Value::Alias(anchor) => *self.of.get(anchor).ok_or_else(|| {
                let what = "this alias stands within the value that it stands for";
                error(self.file, node.span.start, what).hint("write out what is meant")
            })?,
            Value::List(items) => {
                let mut items = items.iter();
                items.try_fold(text(0), |sum, item| self.add(sum, 0, item))?
            }
            Value::Map { entries, .. } => {
                let mut entries = entries.iter();
                entries.try_fold(text(0), |sum, entry| {
                    self.add(sum, entry.key.len(), &entry.value)
                })?
            }
        };
        if let Some(anchor) = node.anchor {
            self.of.insert(anchor, own);
            self.anchored += own.values;
            if self.anchored > MOST_VALUES {
                return Err(self.too_much(node, "too many values have anchors"));
            }
        }
        Ok(own)
    }

    /// The sum with one more item, and its key's length.
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

/// Notes the nodes with anchors, and how often each is there.
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
        Value::List(items) => items
            .iter()
            .for_each(|item| collect(item, anchored, references)),
        Value::Map { entries, .. } => entries
            .iter()
            .for_each(|entry| collect(&entry.value, anchored, references)),
        Value::Scalar { .. } => {}
    }
}

/// What a scalar without quotes means by YAML's core schema, which has JSON's.
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

/// The place of a key among entries. Envoy reads both spellings of its fields, `connect_timeout` and
/// `connectTimeout`.
pub(super) fn position(entries: &[Entry], key: &str) -> Option<usize> {
    let find = |key: &str| entries.iter().position(|entry| entry.key == key);
    find(key).or_else(|| find(&camel(key)))
}

/// `connectTimeout` for `connect_timeout`.
pub(super) fn camel(key: &str) -> String {
    let mut words = key.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (head, tail) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        text + &head.to_uppercase() + tail
    })
}
