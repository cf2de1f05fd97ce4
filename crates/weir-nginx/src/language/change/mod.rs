//! Puts settings into force in a user's configuration.

mod edit;
mod levels;
mod listen;
mod origin;
mod upgrade;

use std::collections::BTreeMap;

use weir_configuration::{ConfigurationError, Source, SourceFile, Splice, WantedSetting};
use weir_parameters::{Parameter, Write};

use self::edit::Edits;
use super::context::ContextLevel;
use super::syntax::{self, Tree, Word};
use super::view::{self, Node};

/// Maximum number of rounds of edits until nothing is left to edit. One is enough, unless rows contradict each other.
const ROUNDS: usize = 3;

/// Puts settings into force by the smallest change of the files.
///
/// * An existing directive gets other arguments, and only the words that differ are touched. One that means the same
///   already (`1m` for `60s`) is left alone.
/// * If inner blocks repeat a directive, it is changed there too, or the level would not be in force in them.
/// * A missing directive goes where the row of the catalog says, behind the last simple directive of the block, written
///   as its neighbours are, even if it is nginx's default: another version might have another default.
/// * A directive that a row writes only to make room for its others ([`Write::yields`]) is written only where it is
///   missing.
/// * A level for which the row writes nothing takes away what other levels of the row would write.
/// * A row for `upstream` is written into every one that `proxy_pass` names, or into all if it names one by a variable.
///   For an origin server that `proxy_pass` names by its address, a group is made where `keepalive` is written, before
///   the server that needs it; the origin server gets the same `Host` as before.
/// * A row for `location` concerns those that pass requests on, and is written where they take the directive from, be
///   that `server` or `http`. `proxy_set_header` is inherited as a whole or not at all, so a new one is written beside
///   those in force and not into the location. A location that sets `Upgrade` speaks WebSocket: its `Connection` is not
///   touched, and its `proxy_http_version` is not taken away, whether its own or inherited. If its `Connection` is a
///   variable that a `map` of `$http_upgrade` sets to `close` for requests without an upgrade, the `map` is changed,
///   since these requests would close the connection to the origin server.
/// * A flag of `listen` goes to one directive of each address: nginx refuses it at a second one. An address whose port
///   is covered by another listener (`*:80` beside `127.0.0.1:80`) shares its socket and is left alone, and so are QUIC
///   and, for `reuseport`, sockets of the file system.
/// * A log keeps its file, its format and its condition; only its buffer is the level's. A log without a file of its
///   own (syslog, a name with variables) has no buffer. A log that an inner block switches off stays off. `off`
///   replaces all logs of a block; only the reverse diff can restore them.
/// * `shared:NAME:size` keeps the user's name, `keepalive_timeout` its second argument.
///
/// `wanted` has each row once, with canonical levels.
///
/// # Errors
/// Returns an error, with its place, if the block that a row needs is not there; if a group of origin servers cannot be
/// made without changing their requests; if a flag would apply to several servers; if a header would also apply to a
/// location that speaks WebSocket; if a variable's `map` is used for something else too; or if two rows write one
/// directive differently.
pub fn change(source: &Source, wanted: &[WantedSetting<'_>]) -> Result<Source, ConfigurationError> {
    let mut changed = source.clone();
    for _ in 0..ROUNDS {
        // Insertions come last: what they stand beside might be taken away by another row.
        let Edits { changes, insertions, .. } = edits(&changed, wanted)?;
        if changes.is_empty() {
            return Ok(changed.with(insertions));
        }
        changed = changed.with(changes);
    }
    match edits(&changed, wanted)?.changes.first() {
        None => Ok(changed),
        Some(Splice { file, range, .. }) => {
            let SourceFile { path, text } = &changed.files[*file];
            let message = "two settings write this differently";
            let error = ConfigurationError::at(path, text, range.start, message);
            Err(error.hint("leave one of them out"))
        }
    }
}

fn edits(source: &Source, wanted: &[WantedSetting<'_>]) -> Result<Edits, ConfigurationError> {
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

/// One directive that a row writes, or would write at another level.
struct Writing<'a> {
    row: &'a Parameter,
    level: ContextLevel,
    name: String,
    /// First argument, for a directive that occurs once for each first argument.
    key: Option<String>,
    /// Directive that has to be there; None if everything that another level would write has to go.
    text: Option<Text>,
    /// Everything that the row writes here, at any level.
    templates: Vec<&'a Write>,
}

/// A directive or a flag that is to be written.
struct Text {
    /// Text without `;`.
    whole: String,
    arguments: Vec<String>,
}

impl Writing<'_> {
    /// Returns true if a directive is the one that this is about.
    fn is_about(&self, node: &Node<'_>) -> bool {
        let first = node.directive.argument(0).unwrap_or_default();
        let key = self.key.as_deref();
        node.is_simple(&self.name) && key.is_none_or(|key| key.eq_ignore_ascii_case(first))
    }
}

impl Writing<'_> {
    /// Returns true for a directive of a log, whose file is the user's.
    fn is_log(&self) -> bool {
        self.templates.iter().any(|write| write.text.contains(LOGS))
    }

    /// Returns true if an existing directive stays as it is.
    fn yields(&self) -> bool {
        self.templates.iter().all(|write| write.yields)
    }

    /// Returns true if the directive switches something off.
    fn is_off(&self) -> bool {
        let first = self.text.as_ref().and_then(|text| text.arguments.first());
        first.is_some_and(|word| word == "off")
    }
}

/// Placeholder in rows for the folder of logs.
const LOGS: &str = "{logs}";

/// Directives that occur once for each first argument, and are inherited as a whole or not at all.
const KEYED: [&str; 6] = [
    "proxy_set_header",
    "grpc_set_header",
    "add_header",
    "fastcgi_param",
    "scgi_param",
    "uwsgi_param",
];

fn writings<'a>(wanted: &WantedSetting<'a>) -> Vec<Writing<'a>> {
    let mut writings: Vec<Writing<'a>> = Vec::new();
    let directives = wanted.row.directives(wanted.level);
    for write in &wanted.row.writes {
        let level = ContextLevel::of(&write.context);
        let identity = subject(level, &write.text);
        let mut former = writings.iter_mut().filter(|writing| writing.level == level);
        let same = former.find(|it| it.name == identity.0 && it.key == identity.1);
        if let Some(writing) = same {
            writing.templates.push(write);
            continue;
        }
        let text = directives
            .iter()
            .find(|it| it.context == write.context && subject(level, &it.text) == identity)
            .map(|it| Text { whole: it.text.clone(), arguments: arguments(&it.text) });
        let (name, key) = identity;
        writings.push(Writing { row: wanted.row, level, name, key, text, templates: vec![write] });
    }
    writings
}

/// Returns the name of the directive or flag that a text writes, and its first argument if that is a part of its
/// identity.
fn subject(level: ContextLevel, text: &str) -> (String, Option<String>) {
    if level == ContextLevel::Listen {
        return (text.split('=').next().unwrap_or_default().to_owned(), None);
    }
    let name = text.split(' ').next().unwrap_or_default().to_owned();
    let key = KEYED.contains(&&*name).then(|| text.split(' ').nth(1)).flatten().map(str::to_owned);
    (name, key)
}

/// Returns the arguments of a directive that the catalog writes, without quotes.
fn arguments(text: &str) -> Vec<String> {
    // A brace of a placeholder would open a block.
    let escaped = text.replace('{', "\\{");
    let tree = syntax::parse(&format!("{escaped};")).unwrap_or_default();
    tree.directives
        .into_iter()
        .flat_map(|it| it.arguments)
        .map(|Word { text, .. }| text.replace("\\{", "{"))
        .collect()
}

/// Plans the edits for one writing after the other.
struct Planner<'a> {
    source: &'a Source,
    trees: &'a [Tree],
    nodes: &'a [Node<'a>],
    edits: Edits,
    /// Groups that this round makes: their names, by the server in them.
    groups: BTreeMap<String, String>,
}

impl<'a> Planner<'a> {
    fn put(&mut self, writing: &Writing<'_>) -> Result<(), ConfigurationError> {
        match writing.level {
            ContextLevel::Main => self.put_in_main(writing),
            ContextLevel::Events => self.put_in_events(writing)?,
            ContextLevel::Http => self.put_in_http(writing)?,
            ContextLevel::Server => self.put_in_servers(writing)?,
            ContextLevel::Location => self.put_in_locations(writing)?,
            ContextLevel::Upstream => self.put_in_upstreams(writing)?,
            ContextLevel::Listen => self.put_on_listeners(writing)?,
        }
        Ok(())
    }

    /// Returns the top-level block of this name.
    fn block(&self, name: &str, writing: &Writing<'_>) -> Result<&'a Node<'a>, ConfigurationError> {
        let block = self.nodes.iter().find(|node| node.is_block(name));
        block.ok_or_else(|| self.missing(&format!("a block `{name}`"), writing))
    }

    /// Returns an error about the main file as a whole.
    fn missing(&self, what: &str, writing: &Writing<'_>) -> ConfigurationError {
        let main = &self.source.files[0];
        let message = format!("`{}` needs {what}, and there is none", writing.row.id);
        ConfigurationError::at(&main.path, "", 0, message)
    }
}
