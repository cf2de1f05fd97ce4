//! Settings put into force in a document, by their rows of the catalog.

use std::path::Path;

use serde_json::Value as Json;
use weir_parameters::Directive;

use super::listening::Listening;
use super::pointer::Pointer;
use super::set::{Edit, set_in};
use super::tree::{Format, Tree};
use super::walk::line_of;
use super::{caddy, envoy};
use crate::place::{Hinted, about};
use crate::{ConfigurationError, Listener, Source, Wanted};

/// Whose configuration a document is: what the names of contexts mean in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Envoy's bootstrap, in JSON or YAML. Contexts: `bootstrap` (the whole), `listener` (each in
    /// `static_resources`), `hcm` (each HttpConnectionManager), `route` (each action `route` of
    /// their virtual hosts), `cluster` (each in `static_resources`).
    Envoy,
    /// Caddy's JSON. Contexts: `root` (the whole), `admin`, `server` (each of the app `http`),
    /// `reverse_proxy` (each such handler, also inside `subroute`), `transport` (each such
    /// handler's, unless it speaks something else than HTTP).
    Caddy,
}

impl Dialect {
    /// The format of a file: Envoy tells it by the name (`.json`, otherwise YAML here), Caddy's own
    /// is always JSON.
    pub fn format(self, path: &Path) -> Format {
        let is_json = path
            .extension()
            .is_some_and(|extension| extension == "json");
        match self {
            Dialect::Envoy if !is_json => Format::Yaml,
            Dialect::Envoy | Dialect::Caddy => Format::Json,
        }
    }

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
    /// is where it is made for that, and what would else be lost by it.
    fn companions(self, document: &Json, context: &str, object: &Pointer, at: &str) -> Vec<Edit> {
        let is_new = |object: &Pointer| document.pointer(&object.to_string()).is_none();
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
                let own = envoy::new_upstream_http();
                own.map(|(name, value)| (object.child(name), value)).into()
            }
            _ => Vec::new(),
        };
        let edit = |(at, value): (Pointer, Json)| Edit {
            at,
            value: Some(value.to_string()),
        };
        values.into_iter().map(edit).collect()
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
/// # Errors
/// As for [`set`]; a row's context is none of the dialect's.
pub fn change(
    source: &Source,
    dialect: Dialect,
    wanted: &[Wanted<'_>],
) -> Result<Source, ConfigurationError> {
    let format = dialect.format(&source.files[0].path);
    let tree = Tree::parse(&source.files[0], format)?;
    let document = tree.meaning(&tree.root);
    let mut edits = Vec::new();
    for wanted in wanted {
        let mut row = Row {
            source,
            dialect,
            document: &document,
            wanted,
            edits: Vec::new(),
        };
        row.put()?;
        edits.append(&mut row.edits);
    }
    set_in(source, &tree, format, &edits)
}

/// Stands in rows for the folder of logs.
const LOGS: &str = "{logs}";

/// One row on its way into a document.
struct Row<'r> {
    source: &'r Source,
    dialect: Dialect,
    document: &'r Json,
    wanted: &'r Wanted<'r>,
    edits: Vec<Edit>,
}

impl Row<'_> {
    fn put(&mut self) -> Result<(), ConfigurationError> {
        let directives = self.wanted.row.directives(self.wanted.level);
        if self.has_log(&directives)? {
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
                    .wrong(format!("needs `{context}`, and there is none"))
                    .hinted("it can be changed where it is, and is not made: write one"));
            }
            for object in objects {
                self.put_into(context, &object, at, value.clone())?;
            }
        }
        Ok(())
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
            self.edits.extend(companions);
        } else if (context, at) == ("compressor", "/name") {
            return Err(self
                .wrong("would take an HTTP filter out".to_owned())
                .hinted(
                    "take it out of a copy by hand, and compare the two with an arm of its own",
                ));
        }
        let at = match value {
            // An item of a list that a row names goes as a whole.
            None => self.item_of(context, at).unwrap_or(at),
            Some(_) => at,
        };
        self.edits.push(Edit {
            at: object.join(&Pointer::parse(at)),
            value,
        });
        Ok(())
    }

    /// The list whose only item a row makes, around what it writes at a pointer.
    fn item_of<'a>(&self, context: &str, at: &'a str) -> Option<&'a str> {
        let (list, _) = at.split_once("/0/")?;
        let name = format!("{list}/0/name");
        let is_named = self.wanted.row.writes.iter().any(|write| {
            write.context.name() == context && write.at.as_deref() == Some(name.as_str())
        });
        is_named.then_some(list)
    }

    /// Whether a row that switches a log on has nothing to do: the user has one, which keeps its file.
    fn has_log(&self, directives: &[Directive]) -> Result<bool, ConfigurationError> {
        let first = directives.first();
        let is_log = directives.iter().any(|it| it.text.contains(LOGS));
        let Some((first, at)) = first.and_then(|it| Some((it, it.at.as_deref()?))) else {
            return Ok(false);
        };
        let at = Pointer::parse(at.split_once("/0/").map_or(at, |(list, _)| list));
        let objects = self.objects(first.context.name())?;
        let is_there = |object: &Pointer| {
            let place = object.join(&at).to_string();
            self.document.pointer(&place).is_some()
        };
        Ok(is_log && !objects.is_empty() && objects.iter().all(is_there))
    }

    fn objects(&self, context: &str) -> Result<Vec<Pointer>, ConfigurationError> {
        let objects = self.dialect.objects(self.document, context);
        objects.ok_or_else(|| {
            let name = self.dialect.name();
            let what =
                format!("is written into `{context}`, which is no part of {name}'s configuration");
            self.wrong(what).hinted("correct the row's context")
        })
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

/// Where the proxy listens.
///
/// # Errors
/// The document cannot be read.
pub fn listeners(source: &Source, dialect: Dialect) -> Result<Vec<Listener>, ConfigurationError> {
    let file = &source.files[0];
    let tree = Tree::parse(file, dialect.format(&file.path))?;
    let document = tree.meaning(&tree.root);
    let found = match dialect {
        Dialect::Envoy => envoy::listening(&document),
        Dialect::Caddy => caddy::listening(&document, true),
    };
    let listener = |one: Listening| Listener {
        file: file.path.clone(),
        line: line_of(file, &tree, &one.at),
        address: one.address,
        port: one.port,
        tls: one.tls,
    };
    Ok(found.into_iter().map(listener).collect())
}
