//! JSON and YAML as one kind of tree whose nodes know their bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value as Json;

use super::{json, yaml};
use crate::{ConfigurationError, SourceFile};

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

    /// What a node means. Aliases are followed to a depth that no configuration needs, so that a few
    /// bytes cannot stand for a large value.
    pub(super) fn meaning(&self, node: &Node) -> Json {
        self.meaning_within(node, 4)
    }

    fn meaning_within(&self, node: &Node, aliases: usize) -> Json {
        match &node.value {
            Value::Alias(_) if aliases == 0 => Json::Null,
            Value::Alias(_) => self.meaning_within(self.resolve(node), aliases - 1),
            Value::Scalar {
                text,
                style: Style::Plain,
            } => plain(text),
            Value::Scalar { text, .. } => Json::String(text.clone()),
            Value::List(items) => Json::Array(
                items
                    .iter()
                    .map(|item| self.meaning_within(item, aliases))
                    .collect(),
            ),
            Value::Map { entries, .. } => {
                let pair = |entry: &Entry| {
                    (
                        entry.key.clone(),
                        self.meaning_within(&entry.value, aliases),
                    )
                };
                Json::Object(entries.iter().map(pair).collect())
            }
        }
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
