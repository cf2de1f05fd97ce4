//! Changes by path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::find::{Finder, Found, Place};
use super::pointer::Pointer;
use super::setter::{Setter, within_another};
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

/// Edits of a copy, as they come together.
#[derive(Default)]
pub(super) struct Edits(pub(super) Vec<Edit>);

impl Edits {
    pub(super) fn put(&mut self, at: impl Into<Pointer>, value: impl Into<Json>) {
        let (at, value) = (at.into(), Some(value.into().to_string()));
        self.0.push(Edit { at, value });
    }

    pub(super) fn take(&mut self, at: impl Into<Pointer>) {
        let (at, value) = (at.into(), None);
        self.0.push(Edit { at, value });
    }
}

/// Puts values into a document, changing nothing else.
///
/// * A value that is there is replaced in its place and style: quotes, if it had some. One that is
///   equal stays.
/// * `{}` is there where an object is, whatever is in it.
/// * What is missing on the way is made, at the end of the innermost object that is there, in its
///   style: on a line of its own with its neighbours' indentation, or on theirs. `-` in a path is a new
///   item behind the last one of a list, the same for all edits of that list.
/// * A key that is taken out takes its line along. An object stays when its last key goes: to many a
///   configuration an empty one means something.
/// * YAML's comments, anchors and aliases stay. A value that several places share by an anchor can be
///   changed only for all of them.
///
/// # Errors
/// The document cannot be read; a path leads through a scalar or past the end of a list; a value is
/// shared with places that are not to be changed; a value is to be replaced, and something in it is to be
/// changed; a value is not JSON.
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
    let mut changes = Changes::default();
    for edit in edits {
        changes.add(edit, &mut finder, tree, file)?;
    }
    let Changes { replaced, missing } = changes;
    let replaced = shared(&mut finder, replaced);
    apart(file, tree, &replaced, missing.values())?;
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

/// What edits lead to.
#[derive(Default)]
struct Changes<'n> {
    /// Values that take the place of others.
    replaced: Vec<(Place<'n>, Json)>,
    /// Values that are missing, by the place that they are missing from: several can have a part of the
    /// way in common.
    missing: BTreeMap<(usize, bool), (Place<'n>, Map<String, Json>)>,
}

impl<'n> Changes<'n> {
    fn add(
        &mut self,
        edit: &Edit,
        finder: &mut Finder<'n>,
        tree: &'n Tree,
        file: &SourceFile,
    ) -> Result<(), ConfigurationError> {
        let value = parsed(edit, file)?;
        let (place, steps) = match finder.find(&edit.at)? {
            Found::There(place) if is_so(&tree.meaning(place.node), &value) => return Ok(()),
            // Something can be put into it too.
            Found::There(place) if is_empty(&value) && tree.meaning(place.node).is_null() => {
                finder.enter(place.node);
                (place, edit.at.tokens().len())
            }
            Found::There(place) => {
                self.replaced.push((place, value));
                return Ok(());
            }
            Found::Missing(place, steps) => (place, steps),
        };
        let missing = self.missing.entry(begin(place.node));
        let (_, map) = missing.or_insert((place, Map::new()));
        if nest(map, &edit.at.tokens()[steps..], value) {
            return Ok(());
        }
        let what = format!(
            "`{}` is to be put into something that is not an object",
            edit.at
        );
        Err(about(&file.path, what))
    }
}

/// Whether nothing is missing from what is to be replaced.
fn apart<'n>(
    file: &SourceFile,
    tree: &Tree,
    replaced: &[(Place<'_>, Json)],
    missing: impl Iterator<Item = &'n (Place<'n>, Map<String, Json>)>,
) -> Result<(), ConfigurationError> {
    let ranges = replaced.iter().map(|(place, _)| &place.node.span);
    let ranges: BTreeMap<usize, usize> = ranges.map(|span| (span.start, span.end)).collect();
    for (place, _) in missing {
        let span = &tree.resolve(place.node).span;
        let around = ranges.range(..=span.start).next_back();
        let is_within = |(&start, &end): (&usize, &usize)| {
            span.end <= end && (span.start < end || span.start == start)
        };
        if around.is_some_and(is_within) {
            return Err(within_another(file, span.start));
        }
    }
    Ok(())
}

/// Whether nothing is to be done for a value to be there.
fn is_so(now: &Json, value: &Json) -> bool {
    now == value || (is_empty(value) && now.is_object())
}

fn is_empty(value: &Json) -> bool {
    value.as_object().is_some_and(Map::is_empty)
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

/// Puts a value below a path of keys and of first items of lists, and makes what is missing. `false`: there
/// is something on the way that it cannot be put into.
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

/// Objects become one with the keys of both; of anything else the last counts.
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
    let mut gone: BTreeMap<(usize, bool), (&Node, BTreeSet<usize>)> = BTreeMap::new();
    for pointer in pointers {
        // Inside something that is no object there is nothing to take out.
        if let Ok(Found::There(place)) = finder.find(pointer)
            && let Some((holder, index)) = place.holder
        {
            let key = begin(holder);
            let (_, entries) = gone.entry(key).or_insert((holder, BTreeSet::new()));
            entries.insert(index);
        }
    }
    for (holder, indices) in gone.into_values() {
        setter.remove(holder, &indices);
    }
    setter.done(source)
}

/// Tells collections apart by where they begin, the outer one first: a list in block style begins where its
/// first item does.
fn begin(node: &Node) -> (usize, bool) {
    (node.span.start, !matches!(node.value, Value::List(_)))
}
