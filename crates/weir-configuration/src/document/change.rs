//! Puts settings into force in a document, by their rows of the catalog.

use serde_json::Value as Json;
use weir_parameters::{Directive, EffectiveFrom, Parameter, Write};

use super::dialect::Dialect;
use super::find::{BEHIND, Finder, Lookup, field, get};
use super::pointer::Pointer;
use super::set::{Edit, set_in};
use super::tree::Tree;
use crate::place::{about, error};
use crate::{ConfigurationError, Source, WantedSetting};

/// Returns true if an item of a list is the one that a row means: the item of the row's name, or among items without
/// names the one for all requests.
fn is_meant(dialect: &dyn Dialect, item: &Json, name: Option<&Json>) -> bool {
    match name {
        Some(name) => field(item, "name") == Some(name),
        None => dialect.is_for_all(item),
    }
}

/// Puts settings into force by their rows of the catalog, changing nothing else ([`set`] says how): in every object of
/// a row's context, at the row's pointer below it. A level that writes nothing takes out what another level writes.
/// Contexts outside of the document (the program's arguments and environment) are left to the caller, and so are texts
/// without a pointer.
///
/// * If a row's pointer leads through the first item of a list, it means the item with the name that the row writes
///   there, or the item for all requests (Envoy's priority `DEFAULT`). A missing item is added behind the others. Only
///   this item is taken out again.
/// * A row that switches a log on does not change objects that have a log of the user's, and the user's lists keep
///   their items. If the log is off, Envoy's listeners have none either.
///
/// # Errors
/// Returns the errors of [`set`]. Also fails if a row's context is not one of the dialect's, or if its object would
/// lose something that it has by the change.
pub fn change(
    source: &Source,
    dialect: &dyn Dialect,
    wanted: &[WantedSetting<'_>],
) -> Result<Source, ConfigurationError> {
    let format = dialect.format(&source.files[0].path);
    let tree = Tree::parse(&source.files[0], format)?;
    let document = tree.meaning(&tree.root);
    let (mut companions, mut edits) = (Vec::new(), Vec::new());
    for wanted in wanted {
        let mut row = Row {
            source,
            tree: &tree,
            dialect,
            document: &document,
            wanted,
            companions: Vec::new(),
            edits: Vec::new(),
        };
        row.put()?;
        companions.append(&mut row.companions);
        edits.append(&mut row.edits);
    }
    // What any row says itself counts.
    companions.append(&mut edits);
    set_in(source, &tree, format, &companions)
}

/// Returns the value that a row's level is read from, in the object of the row's context. In a list, it is in the item
/// that [`change`] means.
pub fn effective<'d>(dialect: &dyn Dialect, row: &Parameter, object: &'d Json) -> Option<&'d Json> {
    let EffectiveFrom::Value { context, at } = &row.effective else {
        return None;
    };
    let Some((list, rest)) = at.split_once(FIRST) else {
        return get(object, &Pointer::parse(at));
    };
    let name = name_of(row, context.name(), list);
    let items = get(object, &Pointer::parse(list))?.as_array()?;
    let mut all = items.iter();
    let meant = all.find(|item| is_meant(dialect, item, name.as_ref()));
    // One of another name may say the same of something else: a log that the user has.
    let item = meant.or_else(|| items.first().filter(|_| name.is_some()))?;
    get(item, &Pointer::parse(&format!("/{rest}")))
}

/// Part of a row's pointer that stands for the item of a list.
const FIRST: &str = "/0/";

/// Returns the name that a row gives to an item of a list.
fn name_of(row: &Parameter, context: &str, list: &str) -> Option<Json> {
    let at = format!("{list}/0/name");
    let write = writes(row, context, &at).next()?;
    serde_json::from_str(&write.text).ok()
}

/// Returns everything that a row's levels write at a pointer.
fn writes<'r>(row: &'r Parameter, context: &str, at: &str) -> impl Iterator<Item = &'r Write> {
    row.writes
        .iter()
        .filter(move |write| write.context.name() == context && write.at.as_deref() == Some(at))
}

/// Placeholder in rows for the folder of logs.
const LOGS: &str = "{logs}";

/// Objects that have a log of the user's.
#[derive(Default)]
struct Logged<'d> {
    /// Objects, each with its context.
    objects: Vec<(&'d str, Pointer)>,
    /// True if every object of the context has such a log.
    is_all: bool,
}

/// One row that is being put into a document.
struct Row<'r> {
    source: &'r Source,
    tree: &'r Tree,
    dialect: &'r dyn Dialect,
    document: &'r Json,
    wanted: &'r WantedSetting<'r>,
    /// Further edits that the row's objects need.
    companions: Vec<Edit>,
    edits: Vec<Edit>,
}

/// Returns the name of a context's objects, for messages.
fn object_name(context: &str) -> String {
    match context {
        "hcm" => "an HttpConnectionManager".to_owned(),
        "tls" => "a TLS context (Envoy's DownstreamTlsContext, Caddy's app `tls`)".to_owned(),
        "upstream_http" => "a cluster".to_owned(),
        other => format!("`{other}`"),
    }
}

impl Row<'_> {
    fn put(&mut self) -> Result<(), ConfigurationError> {
        let directives = self.wanted.row.directives(self.wanted.level);
        let logged = self.find_logs(&directives)?;
        if logged.is_all {
            return Ok(());
        }
        for (context, at) in places(self.wanted) {
            let value = directives
                .iter()
                .find(|directive| {
                    directive.context.name() == context && directive.at.as_deref() == Some(at)
                })
                .map(|it| &*it.text)
                .map(|text| text.replace(LOGS, self.dialect.logs()));
            let objects = self.objects(context)?;
            if value.is_some() && objects.is_empty() {
                return Err(self
                    .wrong(format!("needs {}, and there is none", object_name(context)))
                    .hint("leave the setting out, or write one into the configuration"));
            }
            for object in objects {
                let object = match value {
                    Some(_) => object,
                    None => self.dialect.in_force(self.document, context, object),
                };
                if !logged.objects.contains(&(context, object.clone())) {
                    self.put_into(context, &object, at, value.clone())?;
                }
            }
        }
        if self.is_log() && directives.is_empty() {
            self.without_other_logs();
        }
        Ok(())
    }

    /// Takes out the access logs that the dialect has outside of the row's objects.
    fn without_other_logs(&mut self) {
        let logs = self.dialect.other_logs(self.document).into_iter();
        self.edits.extend(logs.map(|at| Edit { at, value: None }));
    }

    fn put_into(
        &mut self,
        context: &str,
        object: &Pointer,
        at: &str,
        value: Option<String>,
    ) -> Result<(), ConfigurationError> {
        if value.is_some() {
            let companions =
                self.dialect.companions(self.document, context, object, at).ok_or_else(|| {
                    self.wrong_at(object, "would change which protocol is spoken here").hint(
                        "write the object with the protocol in it, and the setting goes there",
                    )
                })?;
            self.companions.extend(
                companions
                    .into_iter()
                    .map(|(at, value)| Edit { at, value: Some(value.to_string()) }),
            );
        } else if (context, at) == ("compressor", "/name") {
            return Err(self.wrong("would take an HTTP filter out".to_owned()).hint(
                "take it out of a copy by hand, and compare the two with an arm of its own",
            ));
        }
        let Some(place) = self.place(context, object, at, value.is_some()) else {
            return Ok(());
        };
        let value = match get(self.document, &place).and_then(Json::as_array) {
            Some(users) if self.is_log() => self.join_values(users, context, at, value),
            _ => value,
        };
        let existing = get(self.document, &place);
        let styled = value.map(|value| match existing {
            Some(existing) => self.dialect.in_style(existing, value),
            None => value,
        });
        self.edits.push(Edit { at: place, value: styled });
        Ok(())
    }

    /// Returns the place that a pointer of the row leads to in an object; None if there is nothing to take out.
    fn place(&self, context: &str, object: &Pointer, at: &str, comes: bool) -> Option<Pointer> {
        let as_written = object.join(at);
        let Some((list, rest)) = at.split_once(FIRST) else {
            return Some(as_written);
        };
        let name = name_of(self.wanted.row, context, list);
        let list = object.join(list);
        let Some(items) = get(self.document, &list).and_then(Json::as_array) else {
            return Some(as_written);
        };
        let mut all = items.iter();
        let meant = all.position(|item| is_meant(self.dialect, item, name.as_ref()));
        let inner = Pointer::parse(&format!("/{rest}"));
        match (meant, comes) {
            (Some(index), true) => Some(list.child(index).join(&inner)),
            (None, true) => Some(list.child(BEHIND).join(&inner)),
            // Without a log there is none of another name either.
            (_, false)
                if name.is_some() && (self.is_log() || (meant, items.len()) == (Some(0), 1)) =>
            {
                Some(list)
            }
            // An item that a row names goes as a whole.
            (Some(index), false) if name.is_some() => Some(list.child(index)),
            (Some(index), false) => Some(list.child(index).join(&inner)),
            (None, false) => None,
        }
    }

    /// Returns the user's list with the items that the row writes into it, or without them if the level writes none.
    fn join_values(
        &self,
        users: &[Json],
        context: &str,
        at: &str,
        value: Option<String>,
    ) -> Option<String> {
        let written: Vec<Json> = writes(self.wanted.row, context, at)
            .filter_map(|write| serde_json::from_str::<Vec<Json>>(&write.text).ok())
            .flatten()
            .collect();
        if written.is_empty() {
            return value;
        }
        let items: Vec<Json> = match value {
            Some(_) => {
                let new = written.iter().filter(|item| !users.contains(item));
                users.iter().chain(new).cloned().collect()
            }
            None => users.iter().filter(|item| !written.contains(item)).cloned().collect(),
        };
        (!items.is_empty()).then(|| Json::Array(items).to_string())
    }

    /// Returns true if the row switches a log on and off.
    fn is_log(&self) -> bool {
        let mut writes = self.wanted.row.writes.iter();
        writes.any(|write| write.text.contains(LOGS))
    }

    /// Finds the objects in which a row that switches a log on changes nothing, because the user has a log there, which
    /// keeps its file.
    fn find_logs<'d>(&self, directives: &'d [Directive]) -> Result<Logged<'d>, ConfigurationError> {
        let is_on = directives.iter().any(|it| it.text.contains(LOGS));
        let first = directives.first().filter(|_| is_on);
        let Some((first, at)) = first.and_then(|it| Some((it, it.at.as_deref()?))) else {
            return Ok(Logged::default());
        };
        let context = first.context.name();
        let at = Pointer::parse(at.split_once(FIRST).map_or(at, |(list, _)| list));
        let is_there = |object: &Pointer| {
            get(self.document, &object.join(&at)).is_some_and(|it| {
                !it.is_null() && it.as_array().is_none_or(|items| !items.is_empty())
            })
        };
        let all = self.objects(context)?;
        let is_all = !all.is_empty() && all.iter().all(is_there);
        let objects = all.into_iter().filter(is_there);
        Ok(Logged { objects: objects.map(|object| (context, object)).collect(), is_all })
    }

    fn objects(&self, context: &str) -> Result<Vec<Pointer>, ConfigurationError> {
        let objects = self.dialect.objects(self.document, context);
        objects.ok_or_else(|| {
            let name = self.dialect.name();
            let message =
                format!("is written into `{context}`, which is no part of {name}'s configuration");
            self.wrong(message).hint("correct the row's context")
        })
    }

    /// Returns an error at a place, or at the value around it.
    fn wrong_at(&self, at: &Pointer, what: &str) -> ConfigurationError {
        let file = &self.source.files[0];
        let message = format!("`{}` {what}", self.wanted.row.id);
        match Finder::new(file, self.tree).find(at) {
            Ok(Lookup::There(place) | Lookup::Missing(place, _)) => {
                error(file, place.node.span.start, message)
            }
            Err(_) => about(&file.path, message),
        }
    }

    fn wrong(&self, what: String) -> ConfigurationError {
        let message = format!("`{}` {what}", self.wanted.row.id);
        about(&self.source.files[0].path, message)
    }
}

/// Returns the contexts and pointers that any level of a row writes to, each once.
fn places<'w>(wanted: &WantedSetting<'w>) -> Vec<(&'w str, &'w str)> {
    let mut places = Vec::new();
    for write in &wanted.row.writes {
        let context = write.context.name();
        let Some(at) = write.at.as_deref() else {
            continue;
        };
        let is_elsewhere = matches!(context, "arguments" | "environment");
        if !is_elsewhere && !places.contains(&(context, at)) {
            places.push((context, at));
        }
    }
    places
}
