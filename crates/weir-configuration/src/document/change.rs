//! Settings put into force in a document, by their rows of the catalog.

use serde_json::Value as Json;
use weir_parameters::{Directive, EffectiveFrom, Parameter, Write};

use super::dialect::Dialect;
use super::find::{BEHIND, Finder, Found, field, get};
use super::pointer::Pointer;
use super::set::{Edit, set_in};
use super::tree::Tree;
use super::write::in_style;
use super::{caddy, envoy};
use crate::place::{about, error};
use crate::{ConfigurationError, Source, Wanted};

impl Dialect {
    /// The objects that a context's name means; `None` for a name that is none of this dialect's.
    fn objects(self, document: &Json, context: &str) -> Option<Vec<Pointer>> {
        match self {
            Dialect::Envoy => envoy::objects(document, context),
            Dialect::Caddy => caddy::objects(document, context),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Dialect::Envoy => "Envoy",
            Dialect::Caddy => "Caddy",
        }
    }

    /// What an object needs besides when something is put into it at `at`: what says of which kind it
    /// is where it is made for that, and what would else be lost by it. `None`: it cannot be made without
    /// a loss.
    fn companions(
        self,
        document: &Json,
        context: &str,
        object: &Pointer,
        at: &str,
    ) -> Option<Vec<Edit>> {
        let is_new = |object: &Pointer| get(document, object).is_none();
        let values: Vec<(Pointer, Json)> = match (self, context) {
            (Dialect::Caddy, "transport") => {
                let mut values = Vec::new();
                if is_new(object) {
                    values.push((object.child("protocol"), "http".into()));
                }
                let kept = object.child("keep_alive");
                if at.starts_with("/keep_alive/") && is_new(&kept) {
                    let defaults = caddy::new_keep_alive();
                    values.extend(defaults.map(|(name, value)| (kept.child(name), value)));
                }
                values
            }
            (Dialect::Envoy, "upstream_http") if is_new(object) => {
                let cluster = object.first(object.tokens().len().saturating_sub(2));
                let own = envoy::new_upstream_http(get(document, &cluster)?)?.into_iter();
                own.map(|(name, value)| (object.child(name), value))
                    .collect()
            }
            _ => Vec::new(),
        };
        let edit = |(at, value): (Pointer, Json)| Edit {
            at,
            value: Some(value.to_string()),
        };
        Some(values.into_iter().map(edit).collect())
    }

    /// The object that says what one would say that is not there: an Envoy cluster itself has fields of the same
    /// names (`common_http_protocol_options`), which count without the other.
    fn said_by(self, document: &Json, context: &str, object: Pointer) -> Pointer {
        let is_upstream = (self, context) == (Dialect::Envoy, "upstream_http");
        match is_upstream && get(document, &object).is_none() {
            true => object.first(object.tokens().len().saturating_sub(2)),
            false => object,
        }
    }

    /// Whether an item of a list is the one that a row means: the one of the row's name, or of items without
    /// names the one that is for all.
    fn is_meant(self, item: &Json, name: Option<&Json>) -> bool {
        match name {
            Some(name) => field(item, "name") == Some(name),
            None => self == Dialect::Caddy || envoy::is_for_all(item),
        }
    }

    /// Where packages of the proxy have their logs.
    fn logs(self) -> &'static str {
        match self {
            Dialect::Envoy => "/var/log/envoy",
            Dialect::Caddy => "/var/log/caddy",
        }
    }
}

/// Puts settings into force by their rows of the catalog, changing nothing else ([`set`] says how):
/// in every object that a row's context means, below it by the row's pointer. A level that writes
/// nothing takes out what another level writes. Contexts that are no place in the document (the
/// program's arguments and environment) are the caller's, and so are texts without a pointer.
///
/// * Where a row's pointer leads through the first item of a list, the item is meant that has the name
///   which the row writes there, or which is for all (Envoy's priority `DEFAULT`). It is made behind the
///   others where it is missing, and is all that goes.
/// * A row that switches a log on leaves objects alone that have one of the user's, and his lists have their
///   items still. Off, Envoy's listeners have none either.
///
/// # Errors
/// As for [`set`]; a row's context is none of the dialect's, or its object would lose what it has by what is
/// put into it.
pub fn change(
    source: &Source,
    dialect: Dialect,
    wanted: &[Wanted<'_>],
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

/// The value that a row's level is read from, in the object of the row's context: of a list, in the item that
/// [`change`] means.
pub fn effective<'d>(dialect: Dialect, row: &Parameter, object: &'d Json) -> Option<&'d Json> {
    let EffectiveFrom::Value { context, at } = &row.effective else {
        return None;
    };
    let Some((list, rest)) = at.split_once(FIRST) else {
        return get(object, &Pointer::parse(at));
    };
    let name = name_of(row, context.name(), list);
    let items = get(object, &Pointer::parse(list))?.as_array()?;
    let mut all = items.iter();
    let own = all.find(|item| dialect.is_meant(item, name.as_ref()));
    // One of another name may say the same of something else: a log that the user has.
    let item = own.or_else(|| items.first().filter(|_| name.is_some()))?;
    get(item, &Pointer::parse(&format!("/{rest}")))
}

/// Stands in rows' pointers for the item of a list.
const FIRST: &str = "/0/";

/// The name that a row gives an item of a list.
fn name_of(row: &Parameter, context: &str, list: &str) -> Option<Json> {
    let at = format!("{list}/0/name");
    let write = writes(row, context, &at).next()?;
    serde_json::from_str(&write.text).ok()
}

/// What levels of a row's write at a pointer.
fn writes<'r>(row: &'r Parameter, context: &str, at: &str) -> impl Iterator<Item = &'r Write> {
    let all = row.writes.iter();
    all.filter(move |write| write.context.name() == context && write.at.as_deref() == Some(at))
}

/// Stands in rows for the folder of logs.
const LOGS: &str = "{logs}";

/// Objects that have a log of the user's.
#[derive(Default)]
struct Logged<'d> {
    /// With their context.
    objects: Vec<(&'d str, Pointer)>,
    /// Whether there are no others.
    is_all: bool,
}

/// One row on its way into a document.
struct Row<'r> {
    source: &'r Source,
    tree: &'r Tree,
    dialect: Dialect,
    document: &'r Json,
    wanted: &'r Wanted<'r>,
    /// What its objects need besides.
    companions: Vec<Edit>,
    edits: Vec<Edit>,
}

/// What a configuration calls the objects of a context.
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
        let logged = self.logged(&directives)?;
        if logged.is_all {
            return Ok(());
        }
        for (context, at) in places(self.wanted) {
            let here = |directive: &&Directive| {
                directive.context.name() == context && directive.at.as_deref() == Some(at)
            };
            let value = directives.iter().find(here).map(|it| &*it.text);
            let value = value.map(|text| text.replace(LOGS, self.dialect.logs()));
            let objects = self.objects(context)?;
            if value.is_some() && objects.is_empty() {
                return Err(self
                    .wrong(format!("needs {}, and there is none", object_name(context)))
                    .hint("leave the setting out, or write one into the configuration"));
            }
            for object in objects {
                let object = match value {
                    Some(_) => object,
                    None => self.dialect.said_by(self.document, context, object),
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

    /// Takes out what Envoy's listeners log beside their connection managers.
    fn without_other_logs(&mut self) {
        let listeners = match self.dialect {
            Dialect::Envoy => envoy::objects(self.document, "listener"),
            Dialect::Caddy => None,
        };
        let logs = listeners
            .into_iter()
            .flatten()
            .map(|it| it.child("access_log"));
        let there = logs.filter(|at| get(self.document, at).is_some());
        let edits: Vec<Edit> = there.map(|at| Edit { at, value: None }).collect();
        self.edits.extend(edits);
    }

    fn put_into(
        &mut self,
        context: &str,
        object: &Pointer,
        at: &str,
        value: Option<String>,
    ) -> Result<(), ConfigurationError> {
        if value.is_some() {
            let companions = self.dialect.companions(self.document, context, object, at);
            let companions = companions.ok_or_else(|| {
                self.wrong_at(object, "would change which protocol is spoken here")
                    .hint("write the object with the protocol in it, and the setting goes there")
            })?;
            self.companions.extend(companions);
        } else if (context, at) == ("compressor", "/name") {
            return Err(self.wrong("would take an HTTP filter out".to_owned()).hint(
                "take it out of a copy by hand, and compare the two with an arm of its own",
            ));
        }
        let Some(place) = self.place(context, object, at, value.is_some()) else {
            return Ok(());
        };
        let value = match get(self.document, &place).and_then(Json::as_array) {
            Some(users) if self.is_log() => self.joined(users, context, at, value),
            _ => value,
        };
        let found = get(self.document, &place);
        let value = value.map(|value| match (self.dialect, found) {
            (Dialect::Caddy, Some(found)) => in_style(found, value),
            _ => value,
        });
        self.edits.push(Edit { at: place, value });
        Ok(())
    }

    /// Where a pointer of the row's leads in an object; `None`: nothing is there that could go.
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
        let own = all.position(|item| self.dialect.is_meant(item, name.as_ref()));
        let rest = Pointer::parse(&format!("/{rest}"));
        match (own, comes) {
            (Some(index), true) => Some(list.child(index).join(&rest)),
            (None, true) => Some(list.child(BEHIND).join(&rest)),
            // Without a log there is none of another name either.
            (_, false)
                if name.is_some() && (self.is_log() || (own, items.len()) == (Some(0), 1)) =>
            {
                Some(list)
            }
            // An item that a row names goes as a whole.
            (Some(index), false) if name.is_some() => Some(list.child(index)),
            (Some(index), false) => Some(list.child(index).join(&rest)),
            (None, false) => None,
        }
    }

    /// The user's list with the items that the row writes into it, or without them where its level writes
    /// none.
    fn joined(
        &self,
        users: &[Json],
        context: &str,
        at: &str,
        value: Option<String>,
    ) -> Option<String> {
        let own = writes(self.wanted.row, context, at);
        let own = own.filter_map(|write| serde_json::from_str::<Vec<Json>>(&write.text).ok());
        let own: Vec<Json> = own.flatten().collect();
        if own.is_empty() {
            return value;
        }
        let others = users.iter().filter(|item| !own.contains(item)).cloned();
        let items: Vec<Json> = match value {
            Some(_) => {
                let new = own.iter().filter(|item| !users.contains(item));
                users.iter().chain(new).cloned().collect()
            }
            None => others.collect(),
        };
        (!items.is_empty()).then(|| Json::Array(items).to_string())
    }

    /// Whether the row switches a log on and off.
    fn is_log(&self) -> bool {
        let mut writes = self.wanted.row.writes.iter();
        writes.any(|write| write.text.contains(LOGS))
    }

    /// Where a row that switches a log on has nothing to do: the user has one there, which keeps its file.
    fn logged<'d>(&self, directives: &'d [Directive]) -> Result<Logged<'d>, ConfigurationError> {
        let is_on = directives.iter().any(|it| it.text.contains(LOGS));
        let first = directives.first().filter(|_| is_on);
        let Some((first, at)) = first.and_then(|it| Some((it, it.at.as_deref()?))) else {
            return Ok(Logged::default());
        };
        let context = first.context.name();
        let at = Pointer::parse(at.split_once(FIRST).map_or(at, |(list, _)| list));
        let is_there = |object: &Pointer| {
            let found = get(self.document, &object.join(&at));
            found.is_some_and(|it| !it.is_null() && it.as_array().is_none_or(|it| !it.is_empty()))
        };
        let all = self.objects(context)?;
        let is_all = !all.is_empty() && all.iter().all(is_there);
        let objects = all.into_iter().filter(is_there);
        Ok(Logged {
            objects: objects.map(|object| (context, object)).collect(),
            is_all,
        })
    }

    fn objects(&self, context: &str) -> Result<Vec<Pointer>, ConfigurationError> {
        let objects = self.dialect.objects(self.document, context);
        objects.ok_or_else(|| {
            let name = self.dialect.name();
            let what =
                format!("is written into `{context}`, which is no part of {name}'s configuration");
            self.wrong(what).hint("correct the row's context")
        })
    }

    /// An error at a place, or at what is around it.
    fn wrong_at(&self, at: &Pointer, what: &str) -> ConfigurationError {
        let file = &self.source.files[0];
        let what = format!("`{}` {what}", self.wanted.row.id);
        match Finder::new(file, self.tree).find(at) {
            Ok(Found::There(place) | Found::Missing(place, _)) => {
                error(file, place.node.span.start, what)
            }
            Err(_) => about(&file.path, what),
        }
    }

    fn wrong(&self, what: String) -> ConfigurationError {
        let what = format!("`{}` {what}", self.wanted.row.id);
        about(&self.source.files[0].path, what)
    }
}

/// The contexts and pointers that any level of a row's is written to, each once.
fn places<'w>(wanted: &Wanted<'w>) -> Vec<(&'w str, &'w str)> {
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
