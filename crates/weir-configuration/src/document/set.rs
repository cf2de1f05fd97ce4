//! Changes by path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::find::{Finder, Found, Place};
use super::pointer::Pointer;
use super::setter::Setter;
use super::tree::{Format, Node, Tree, Value};
use crate::place::about;
use crate::{ConfigurationError, Source, SourceFile};

/// One value of a document that is to be there, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Where.
    pub at: Pointer,
    /// The value as JSON; `None`: the key is taken out.
    pub value: Option<String>,
}

/// Puts values into a document, changing nothing else.
///
/// * A value that is there is replaced in its place and style: quotes, if it had some. One that is
///   equal stays.
/// * What is missing on the way is made, at the end of the innermost object that is there, in its
///   style: on a line of its own with its neighbours' indentation, or on theirs.
/// * A key that is taken out takes its line along. An object stays when its last key goes: to many a
///   configuration an empty one means something.
/// * YAML's comments, anchors and aliases stay. A value that several places share by an anchor can be
///   changed only for all of them.
///
/// # Errors
/// The document cannot be read; a path leads through a scalar or past the end of a list; a value is
/// shared with places that are not to be changed; a value is not JSON.
pub fn set(source: &Source, format: Format, edits: &[Edit]) -> Result<Source, ConfigurationError> {
    let tree = Tree::parse(&source.files[0], format)?;
    set_in(source, &tree, format, edits)
}

/// [`set`], of a document that is read already.
pub(super) fn set_in(
    source: &Source,
    tree: &Tree,
    format: Format,
    edits: &[Edit],
) -> Result<Source, ConfigurationError> {
    let (gone, come): (Vec<_>, Vec<_>) = edits.iter().partition(|edit| edit.value.is_none());
    let source = put(source, tree, format, &come)?;
    let gone: BTreeSet<&Pointer> = gone.into_iter().map(|edit| &edit.at).collect();
    // What is within something that goes, goes with it; in this order it comes right behind.
    let mut outer: Vec<&Pointer> = Vec::new();
    for at in gone {
        if !outer.last().is_some_and(|last| at.is_below(last)) {
            outer.push(at);
        }
    }
    match outer.is_empty() {
        true => Ok(source),
        false => take(&source, format, &outer),
    }
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
    // Values that are missing, by the place that they are missing from: several can have a part of
    // the way in common.
    let mut missing: BTreeMap<usize, (Place<'_>, Map<String, Json>)> = BTreeMap::new();
    let mut replaced = Vec::new();
    for edit in edits {
        let value = parsed(edit, file)?;
        match finder.find(&edit.at)? {
            Found::There(place) if tree.meaning(place.node) == value => {}
            Found::There(place) => replaced.push((place, value)),
            Found::Missing(place, steps) => {
                finder.enter(place.node);
                let (_, map) = missing
                    .entry(place.node.span.start)
                    .or_insert((place, Map::new()));
                nest(map, &edit.at.tokens()[steps..], value);
            }
        }
    }
    for (place, value) in shared(&mut finder, replaced) {
        setter.replace(place, &value)?;
    }
    finder.check()?;
    // From the end: where several objects end on one line, what is in the inner one comes first.
    for (place, values) in missing.into_values().rev() {
        setter.insert(place, &values);
    }
    Ok(setter.done(source))
}

/// Replacements without those of aliases whose anchor's value is replaced by the same.
fn shared<'n>(finder: &mut Finder<'n>, replaced: Vec<(Place<'n>, Json)>) -> Vec<(Place<'n>, Json)> {
    let value_at = |anchor: usize| {
        let at = replaced
            .iter()
            .find(|(place, _)| place.node.anchor == Some(anchor));
        at.map(|(_, value)| value.clone())
    };
    let follows = |(place, value): &(Place<'n>, Json)| match place.node.value {
        Value::Alias(anchor) => value_at(anchor).as_ref() == Some(value),
        _ => false,
    };
    let (following, rest): (Vec<_>, Vec<_>) = replaced.iter().cloned().partition(follows);
    for (place, _) in following
        .iter()
        .chain(rest.iter().filter(|(p, _)| p.node.anchor.is_some()))
    {
        finder.enter(place.node);
    }
    rest
}

fn parsed(edit: &Edit, file: &SourceFile) -> Result<Json, ConfigurationError> {
    let text = edit.value.as_deref().unwrap_or_default();
    serde_json::from_str(text).map_err(|e| {
        about(
            &file.path,
            format!("the value `{text}` for `{}` is not JSON: {e}", edit.at),
        )
    })
}

/// Puts a value below a path of keys and of first items of lists, and makes what is missing.
fn nest(map: &mut Map<String, Json>, path: &[String], value: Json) {
    if let [key, rest @ ..] = path {
        let inner = map.entry(key.clone()).or_insert(Json::Null);
        nest_below(inner, rest, value);
    }
}

fn nest_below(into: &mut Json, path: &[String], value: Json) {
    let [token, rest @ ..] = path else {
        *into = value;
        return;
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
            if let Some(item) = item {
                nest_below(item, rest, value);
            }
        }
        _ => {}
    }
}

/// Takes keys out of objects.
fn take(
    source: &Source,
    format: Format,
    pointers: &[&Pointer],
) -> Result<Source, ConfigurationError> {
    let file = &source.files[0];
    let tree = Tree::parse(file, format)?;
    let mut finder = Finder::new(file, &tree);
    let mut setter = Setter::new(file, &tree, format);
    // By where an object begins: itself, and which of its entries go. Several ways can lead to one, by
    // aliases.
    let mut gone: BTreeMap<usize, (&Node, BTreeSet<usize>)> = BTreeMap::new();
    for pointer in pointers {
        // Inside something that is no object there is nothing to take out.
        if let Ok(Found::There(place)) = finder.find(pointer)
            && let Some((holder, index)) = place.holder
        {
            let (_, entries) = gone
                .entry(holder.span.start)
                .or_insert((holder, BTreeSet::new()));
            entries.insert(index);
        }
    }
    for (holder, indices) in gone.into_values() {
        setter.remove(holder, &indices);
    }
    Ok(setter.done(source))
}
