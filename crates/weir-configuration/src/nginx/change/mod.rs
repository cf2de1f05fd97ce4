//! Settings put into force in a user's configuration.

mod edit;
mod levels;
mod listen;
mod origin;
mod upgrade;

use std::collections::BTreeMap;

use weir_parameters::{Parameter, Write};

use self::edit::Edits;
use super::context::Place;
use super::syntax::{self, Tree, Word};
use super::view::{self, Node};
use crate::{ConfigurationError, Source, SourceFile, Splice, Wanted};

/// How often edits are made before nothing is left to edit. Once is enough, unless rows contradict
/// each other.
const ROUNDS: usize = 3;

/// Puts settings into force by the smallest change of the files.
///
/// * A directive that is there gets other arguments, and only the words that differ are touched.
///   One that means the same already (`1m` for `60s`) is left alone.
/// * Where inner blocks say it again, it is changed there too, or the level would not be in force in
///   them.
/// * One that is nowhere goes where the row of the catalog says, behind the last simple directive of
///   the block, written as its neighbours are, even if nginx would do the same by itself: another
///   version might not.
/// * What a row writes only to make room for its other directives ([`Write::yields`]) goes where nothing says it.
/// * A level that the row writes nothing for takes away what other levels of the row would write.
/// * What a row writes into `upstream` goes into every one that `proxy_pass` names, or all of them if
///   it names one by a variable. For an origin server that `proxy_pass` names by its address a group is
///   made where `keepalive` is written, before the server that needs it; the origin server gets the
///   `Host` that it got before.
/// * What a row writes into `location` concerns those that pass requests on, and goes to where they
///   take it from, be that `server` or `http`. `proxy_set_header` is inherited as a whole or not at
///   all, so one more is written beside those in force and not into the location. A location that
///   sets `Upgrade` speaks WebSocket: its `Connection` is not touched, nor is its `proxy_http_version`
///   taken away, where it says that itself or has it from above. Where its `Connection` is a variable
///   that a `map` of `$http_upgrade` makes `close` for requests that ask for no upgrade, the `map` is
///   changed: these would close the connection to the origin server.
/// * A flag of `listen` goes to one directive of each address: nginx refuses it at a second one. An
///   address whose port another listens at as a whole (`*:80` beside `127.0.0.1:80`) shares that
///   one's socket and is left alone, and so are QUIC and, for `reuseport`, sockets of the file system.
/// * A log keeps its file, its format and its condition; only its buffer is the level's. A log without
///   a file of its own (syslog, a name with variables) has no buffer. One that an inner block
///   switches off stays off. `off` takes the place of all logs of a block; the revert of its diff
///   alone knows them.
/// * `shared:NAME:size` keeps the user's name, `keepalive_timeout` its second argument.
///
/// `wanted` has each row once, with canonical levels.
///
/// # Errors
/// At the place: the block that a row needs is not there, a group of origin servers cannot be made without
/// changing their requests, a flag would be one of several servers, a header that of a location that
/// speaks WebSocket too, a variable's `map` serves others too, or two rows write one directive differently.
pub fn change(source: &Source, wanted: &[Wanted<'_>]) -> Result<Source, ConfigurationError> {
    let mut source = source.clone();
    for _ in 0..ROUNDS {
        // Insertions come last: what they stand beside might be taken away by another row.
        let Edits {
            changes,
            insertions,
            ..
        } = edits(&source, wanted)?;
        if changes.is_empty() {
            return Ok(source.with(insertions));
        }
        source = source.with(changes);
    }
    match edits(&source, wanted)?.changes.first() {
        None => Ok(source),
        Some(Splice { file, range, .. }) => {
            let SourceFile { path, text } = &source.files[*file];
            let what = "two settings write this differently";
            let error = ConfigurationError::at(path, text, range.start, what);
            Err(error.hint("leave one of them out"))
        }
    }
}

fn edits(source: &Source, wanted: &[Wanted<'_>]) -> Result<Edits, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    let mut planner = Planner {
        source,
        trees: &trees,
        nodes: &nodes,
        edits: Edits::default(),
        groups: BTreeMap::new(),
    };
    for wanted in wanted {
        for writing in writings(wanted) {
            planner.put(&writing)?;
        }
    }
    Ok(planner.edits)
}

/// One directive that a row writes or would write at another level.
struct Writing<'a> {
    row: &'a Parameter,
    place: Place,
    name: String,
    /// The first argument, of a directive that stands once for each of them.
    key: Option<String>,
    /// What is to be there; `None`: nothing that another level would write.
    text: Option<Text>,
    /// What the row writes here, at any level.
    templates: Vec<&'a Write>,
}

/// A directive or a flag that is to be written.
struct Text {
    /// Without `;`.
    whole: String,
    arguments: Vec<String>,
}

impl Writing<'_> {
    /// Whether a directive is the one that this is about.
    fn is_about(&self, node: &Node<'_>) -> bool {
        let first = node.directive.argument(0).unwrap_or_default();
        let key = self.key.as_deref();
        node.is_simple(&self.name) && key.is_none_or(|key| key.eq_ignore_ascii_case(first))
    }
}

impl Writing<'_> {
    /// Whether it is about a log, whose file is the user's.
    fn is_log(&self) -> bool {
        self.templates.iter().any(|write| write.text.contains(LOGS))
    }

    /// Whether what is there stays.
    fn yields(&self) -> bool {
        self.templates.iter().all(|write| write.yields)
    }

    /// Whether it switches something off.
    fn is_off(&self) -> bool {
        let first = self.text.as_ref().and_then(|text| text.arguments.first());
        first.is_some_and(|word| word == "off")
    }
}

/// Stands in rows for the folder of logs.
const LOGS: &str = "{logs}";

/// Directives that stand once for each first argument, and are inherited as a whole or not at all.
const KEYED: [&str; 6] = [
    "proxy_set_header",
    "grpc_set_header",
    "add_header",
    "fastcgi_param",
    "scgi_param",
    "uwsgi_param",
];

fn writings<'a>(wanted: &Wanted<'a>) -> Vec<Writing<'a>> {
    let mut writings: Vec<Writing<'a>> = Vec::new();
    let directives = wanted.row.directives(wanted.level);
    for write in &wanted.row.writes {
        let place = Place::of(&write.context);
        let (name, key) = subject(place, &write.text);
        let known = writings
            .iter_mut()
            .find(|known| known.place == place && known.name == name && known.key == key);
        if let Some(known) = known {
            known.templates.push(write);
            continue;
        }
        let is_it = |text: &str| subject(place, text) == (name.clone(), key.clone());
        let text = directives
            .iter()
            .find(|it| it.context == write.context && is_it(&it.text))
            .map(|it| Text {
                whole: it.text.clone(),
                arguments: arguments(&it.text),
            });
        writings.push(Writing {
            row: wanted.row,
            place,
            name,
            key,
            text,
            templates: vec![write],
        });
    }
    writings
}

/// The name of what a text writes, and its first argument where that is a part of the name.
fn subject(place: Place, text: &str) -> (String, Option<String>) {
    if place == Place::Listen {
        return (text.split('=').next().unwrap_or_default().to_owned(), None);
    }
    let name = text.split(' ').next().unwrap_or_default().to_owned();
    let key = KEYED
        .contains(&&*name)
        .then(|| text.split(' ').nth(1))
        .flatten();
    let key = key.map(str::to_owned);
    (name, key)
}

/// The arguments of a directive that the catalog writes, without quotes.
fn arguments(text: &str) -> Vec<String> {
    // A brace of a placeholder would open a block.
    let text = text.replace('{', "\\{");
    let tree = syntax::parse(&format!("{text};")).unwrap_or_default();
    let words = tree.directives.into_iter().flat_map(|it| it.arguments);
    words
        .map(|Word { text, .. }| text.replace("\\{", "{"))
        .collect()
}

/// Finds out what is to be done for one writing after the other.
struct Planner<'a> {
    source: &'a Source,
    trees: &'a [Tree],
    nodes: &'a [Node<'a>],
    edits: Edits,
    /// Groups that this round makes: their names by the server in them.
    groups: BTreeMap<String, String>,
}

impl<'a> Planner<'a> {
    fn put(&mut self, writing: &Writing<'_>) -> Result<(), ConfigurationError> {
        match writing.place {
            Place::Main => self.put_in_main(writing),
            Place::Events => self.put_in_events(writing)?,
            Place::Http => self.put_in_http(writing)?,
            Place::Server => self.put_in_servers(writing)?,
            Place::Location => self.put_in_locations(writing)?,
            Place::Upstream => self.put_in_upstreams(writing)?,
            Place::Listen => self.put_on_listeners(writing)?,
        }
        Ok(())
    }

    /// The block of this name outside all others.
    fn block(&self, name: &str, writing: &Writing<'_>) -> Result<&'a Node<'a>, ConfigurationError> {
        let found = self.nodes.iter().find(|node| node.is_block(name));
        found.ok_or_else(|| self.missing(&format!("a block `{name}`"), writing))
    }

    /// An error at the main file as a whole.
    fn missing(&self, what: &str, writing: &Writing<'_>) -> ConfigurationError {
        let main = &self.source.files[0];
        let what = format!("`{}` needs {what}, and there is none", writing.row.id);
        ConfigurationError::at(&main.path, "", 0, what)
    }
}
