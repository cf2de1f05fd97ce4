//! Changes a document by path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::find::{Finder, Lookup, NodePosition};
use super::pointer::Pointer;
use super::setter::{Setter, within_another};
use super::tree::{Format, Node, Tree, Value};
use crate::place::about;
use crate::{ConfigurationError, Source, SourceFile};

/// Change of one value in a document: the value is set or taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Place of the value.
    pub at: Pointer,
    /// Value as JSON; None takes the key out.
    pub value: Option<String>,
}

/// Edits of a copy, collected in order.
#[derive(Default)]
pub struct Edits(pub Vec<Edit>);

impl Edits {
    pub fn put(&mut self, at: impl Into<Pointer>, value: impl Into<Json>) {
        let (at, value) = (at.into(), Some(value.into().to_string()));
        self.0.push(Edit { at, value });
    }

    pub fn take(&mut self, at: impl Into<Pointer>) {
        let (at, value) = (at.into(), None);
        self.0.push(Edit { at, value });
    }
}

/// Puts values into a document, changing nothing else.
///
/// * A value that is there is replaced in its place and style, with quotes if it had some. An equal value stays as it
///   is.
/// * `{}` is in force if there is an object, whatever its contents.
/// * Anything that is missing on the way is made at the end of the innermost object that is there, in its style: on a
///   line of its own with its neighbours' indentation, or on their line. `-` in a path is a new item behind the last
///   one of a list, the same for all edits of that list.
/// * A key that is taken out takes its line along. An object stays when its last key goes: an empty one means something
///   in many configurations.
/// * YAML's comments, anchors and aliases stay. A value that several places share by an anchor can be changed only for
///   all of them.
///
/// # Errors
/// Returns an error if the document cannot be read; if a path leads through a scalar or past the end of a list; if a
/// value is shared with places that are not to be changed; if a value is to be replaced and something in it is to be
/// changed; or if a value is not JSON.
pub fn set(source: &Source, format: Format, edits: &[Edit]) -> Result<Source, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], format)?;
    set_in(source, &tree, format, edits)
}

/// Does the same as [`set`] to a document that is already parsed.
pub fn set_in(
    source: &Source,
    tree: &Tree,
    format: Format,
    edits: &[Edit],
) -> Result<Source, ConfigurationError> {
    let (gone, come): (Vec<_>, Vec<_>) = edits.iter().partition(|edit| edit.value.is_none());
    let source = put(source, tree, format, &come)?;
    let removed: BTreeSet<&Pointer> = gone.into_iter().map(|edit| &edit.at).collect();
    // What is within something that goes, goes with it; in this order it comes right behind.
    let mut outer: Vec<&Pointer> = Vec::new();
    for at in removed {
        if !outer.last().is_some_and(|last| at.is_below(last)) {
            outer.push(at);
        }
    }
    if outer.is_empty() { Ok(source) } else { take(&source, format, &outer) }
}

fn put(
    source: &Source,
    tree: &Tree,
    format: Format,
    edits: &[&Edit],
) -> Result<Source, ConfigurationError> {
    let file = &source.files[0];
    let mut finder = Finder::new(file, tree);
    let mut setter = Setter::new(file, tree, format);
    let mut changes = Changes::default();
    for edit in edits {
        changes.add(edit, &mut finder, tree, file)?;
    }
    let Changes { replaced, missing } = changes;
    let replaced = drop_followers(&mut finder, replaced);
    check_apart(file, tree, &replaced, missing.values())?;
    for (place, value) in replaced {
        setter.replace(place, &value)?;
    }
    finder.check()?;
    // From the end: where several objects end on one line, what is in the inner one comes first.
    for (place, values) in missing.into_values().rev() {
        setter.insert(place, &values)?;
    }
    setter.done(source)
}

/// Changes that edits amount to.
#[derive(Default)]
struct Changes<'n> {
    /// Places whose values are replaced, with the new values.
    replaced: Vec<(NodePosition<'n>, Json)>,
    /// Missing values, by the node that they are missing from. Several edits can share a part of their way.
    missing: BTreeMap<(usize, bool), (NodePosition<'n>, Map<String, Json>)>,
}

impl<'n> Changes<'n> {
    fn add(
        &mut self,
        edit: &Edit,
        finder: &mut Finder<'n>,
        tree: &'n Tree,
        file: &SourceFile,
    ) -> Result<(), ConfigurationError> {
        let value = parse_value(edit, file)?;
        let (place, steps) = match finder.find(&edit.at)? {
            Lookup::There(place) if is_so(&tree.meaning(place.node), &value) => return Ok(()),
            // Something can be put into it too.
            Lookup::There(place) if is_empty(&value) && tree.meaning(place.node).is_null() => {
                finder.enter(place.node);
                (place, edit.at.tokens().len())
            }
            Lookup::There(place) => {
                self.replaced.push((place, value));
                return Ok(());
            }
            Lookup::Missing(place, steps) => (place, steps),
        };
        let missing = self.missing.entry(begin(place.node));
        let (_, map) = missing.or_insert((place, Map::new()));
        if nest(map, &edit.at.tokens()[steps..], value) {
            return Ok(());
        }
        let message = format!("`{}` is to be put into something that is not an object", edit.at);
        Err(about(&file.path, message))
    }
}

/// Checks that no missing value belongs into a value that is to be replaced.
fn check_apart<'n>(
    file: &SourceFile,
    tree: &Tree,
    replaced: &[(NodePosition<'_>, Json)],
    missing: impl Iterator<Item = &'n (NodePosition<'n>, Map<String, Json>)>,
) -> Result<(), ConfigurationError> {
    let ranges = replaced.iter().map(|(place, _)| &place.node.span);
    let ranges: BTreeMap<usize, usize> = ranges.map(|span| (span.start, span.end)).collect();
    for (place, _) in missing {
        let span = &tree.resolve(place.node).span;
        let around = ranges.range(..=span.start).next_back();
        if around.is_some_and(|(&start, &end)| {
            span.end <= end && (span.start < end || span.start == start)
        }) {
            return Err(within_another(file, span.start));
        }
    }
    Ok(())
}

/// Returns true if the current value needs no change to be `value`.
fn is_so(now: &Json, value: &Json) -> bool {
    now == value || (is_empty(value) && now.is_object())
}

fn is_empty(value: &Json) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// Returns the replacements without those of aliases whose anchor gets the same value.
fn drop_followers<'n>(
    finder: &mut Finder<'n>,
    replaced: Vec<(NodePosition<'n>, Json)>,
) -> Vec<(NodePosition<'n>, Json)> {
    let (following, rest): (Vec<_>, Vec<_>) =
        replaced.iter().cloned().partition(|(place, value)| match place.node.value {
            Value::Alias(anchor) => replaced
                .iter()
                .find(|(place, _)| place.node.anchor == Some(anchor))
                .is_some_and(|(_, anchored)| anchored == value),
            _ => false,
        });
    for (place, _) in following.iter().chain(rest.iter().filter(|(p, _)| p.node.anchor.is_some())) {
        finder.enter(place.node);
    }
    rest
}

fn parse_value(edit: &Edit, file: &SourceFile) -> Result<Json, ConfigurationError> {
    let text = edit.value.as_deref().unwrap_or_default();
    serde_json::from_str(text).map_err(|e| {
        about(&file.path, format!("the value `{text}` for `{}` is not JSON: {e}", edit.at))
    })
}

/// Puts a value below a path of keys and of first items of lists, and makes the missing parts. Returns false if the way
/// leads through a value that cannot contain it.
fn nest(map: &mut Map<String, Json>, path: &[String], value: Json) -> bool {
    let [key, rest @ ..] = path else {
        return true;
    };
    let inner = map.entry(key.clone()).or_insert(Json::Null);
    nest_below(inner, rest, value)
}

fn nest_below(into: &mut Json, path: &[String], value: Json) -> bool {
    let [token, rest @ ..] = path else {
        join(into, value);
        return true;
    };
    if into.is_null() {
        *into = match token.as_str() {
            "0" => Json::Array(vec![Json::Null]),
            _ => Json::Object(Map::new()),
        };
    }
    match into {
        Json::Object(map) => nest(map, path, value),
        Json::Array(items) => {
            let item = token.parse().ok().and_then(|i: usize| items.get_mut(i));
            item.is_some_and(|item| nest_below(item, rest, value))
        }
        _ => false,
    }
}

/// Merges two objects into one with the keys of both; any other value replaces the one before.
fn join(into: &mut Json, value: Json) {
    match (into, value) {
        (Json::Object(into), Json::Object(value)) => {
            for (key, value) in value {
                join(into.entry(key).or_insert(Json::Null), value);
            }
        }
        (into, value) => *into = value,
    }
}

/// Takes keys out of objects, and items out of lists.
fn take(
    source: &Source,
    format: Format,
    pointers: &[&Pointer],
) -> Result<Source, ConfigurationError> {
    let file = &source.files[0];
    let tree = Tree::parse(file, format)?;
    let mut finder = Finder::new(file, &tree);
    let mut setter = Setter::new(file, &tree, format);
    // By where an object or list begins: itself, and which of its entries go. Several ways can lead to one,
    // by aliases.
    let mut removed: BTreeMap<(usize, bool), (&Node, BTreeSet<usize>)> = BTreeMap::new();
    for pointer in pointers {
        // Inside something that is no object there is nothing to take out.
        if let Ok(Lookup::There(place)) = finder.find(pointer)
            && let Some((holder, index)) = place.holder
        {
            let key = begin(holder);
            let (_, entries) = removed.entry(key).or_insert((holder, BTreeSet::new()));
            entries.insert(index);
        }
    }
    for (holder, indices) in removed.into_values() {
        setter.remove(holder, &indices);
    }
    setter.done(source)
}

/// Returns the key that identifies a collection: its first byte, and false for a list. An outer list sorts before its
/// first item, which begins at the same byte in block style.
fn begin(node: &Node) -> (usize, bool) {
    (node.span.start, !matches!(node.value, Value::List(_)))
}
