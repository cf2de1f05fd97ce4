//! A copy of a user's configuration that runs in a trial beside others.

mod files;
pub(super) mod groups;
mod includes;
mod known;
mod network;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::groups::Groups;
use self::network::Sockets;
pub(super) use self::network::is_pass;
use super::syntax::{Directive, Tree, Word, quoted};
use super::view::{self, Node};
use weir_configuration::{ConfigurationError, Source, Splice, Surroundings};

/// Makes a copy of a configuration that can be written below a folder ([`Source::write_below`]) and run beside others
/// and beside the user's own proxy, without touching the files of that proxy. `build` is the output of `nginx -V`.
///
/// No line is added or taken away, so nginx's messages refer to the user's lines.
///
/// * Everything that nginx writes goes below [`Surroundings::prefix`]: `nginx.pid`, all errors to `logs/error.log`,
///   logs to `logs` (one in a file for one in a file, and for one to syslog; formats and conditions are kept and `off`
///   stays `off`), temporary files, caches and stored answers to `temp`, sockets to `run`. The caller makes these four
///   folders. Paths that the configuration does not set are added, since the program would otherwise write to the
///   system's places.
/// * Everything that nginx reads stays where it is: paths relative to the configuration's folder or to the program's
///   prefix become absolute. `include` names the copies.
/// * The listeners that loads ask ([`Surroundings::asks`]) get the new addresses, without `proxy_protocol`, which no
///   client of weir's speaks. All others, those of `stream` too, get sockets below `run`.
/// * [`Surroundings::certificate`] replaces every certificate and every key of servers, if it is given.
/// * [`Surroundings::origin`] replaces each `server` in every `upstream`, which keeps its weight and limits, and the
///   target of every `*_pass` to an address or a name that is no `upstream`, which keeps its URI. In both cases
///   `proxy_pass https://` becomes `http://`, since the origin speaks in clear. A server that is a listener of the
///   configuration itself stays one, with its protocol. A target in a variable stays if all known values of the
///   variable (`set`, `map`, `geo`, `split_clients`) are names of groups.
/// * `proxy_bind` and its relatives are left out: a trial has no address of the user's. The same goes for `mail`,
///   `resolver`, the stapling and checking of certificates by OCSP, `dav_methods`, `ssl_key_log` and its relatives, and
///   `working_directory`.
/// * The program stays in the foreground, and `user` is that of the surroundings or none.
///
/// # Errors
/// Returns an error if a directive is not known to do no harm: code (Lua, njs, Perl), or a module that weir does not
/// know. Also if no listener matches a load, with a list of those that there are, or if a socket's path would be too
/// long.
pub fn adapt(
    source: &Source,
    surroundings: &Surroundings<'_>,
    build: &str,
) -> Result<Source, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    known::check(source, &nodes)?;
    let sockets = Sockets::choose(source, (surroundings, build), (&trees, &nodes))?;
    let mut adaptation = Adaptation {
        source,
        surroundings,
        build,
        prefix: built_prefix(build),
        groups: groups(source, &trees, &nodes, &sockets),
        sockets,
        files: files::Files::default(),
        splices: BTreeMap::new(),
    };
    adaptation.listen(&nodes);
    adaptation.block(&nodes, &[]);
    adaptation.defaults(&nodes);
    let names = source.names();
    for (file, tree) in trees.iter().enumerate() {
        adaptation.includes(file, &tree.directives, &names);
    }
    Ok(source.with(adaptation.into_splices()))
}

fn groups(
    source: &Source,
    trees: &[Tree],
    nodes: &[Node<'_>],
    sockets: &Sockets,
) -> BTreeMap<String, Groups> {
    let blocks = nodes.iter().filter(|node| node.directive.block.is_some());
    blocks
        .map(|block| (block.directive.name.text.clone(), Groups::of(source, trees, block, sockets)))
        .collect()
}

/// Returns the prefix with which a program was built.
fn built_prefix(build: &str) -> PathBuf {
    let argument =
        build.split_ascii_whitespace().find_map(|argument| argument.strip_prefix("--prefix="));
    // As nginx's own `configure` has it where nobody says anything.
    PathBuf::from(argument.unwrap_or("/usr/local/nginx"))
}

struct Adaptation<'a> {
    source: &'a Source,
    surroundings: &'a Surroundings<'a>,
    build: &'a str,
    prefix: PathBuf,
    /// Groups, by the name of the top-level block that contains them.
    groups: BTreeMap<String, Groups>,
    sockets: Sockets,
    files: files::Files,
    /// Texts by file, begin and end, so that a file that is included twice is adapted once.
    splices: BTreeMap<(usize, usize, usize), String>,
}

impl Adaptation<'_> {
    /// Adapts the directives of a block; `path` is its name and those of the blocks around it.
    fn block(&mut self, nodes: &[Node<'_>], path: &[&str]) {
        for node in nodes {
            if node.directive.block.is_none() {
                self.directive(node, path);
            } else if node.is_block("mail") {
                self.remove(node.file, node.directive);
            } else {
                if let Some(word) = node.directive.arguments.first()
                    && node.is_block("geoip2")
                {
                    self.make_absolute(node, word, super::paths::Base::Configuration);
                }
                let path: Vec<&str> =
                    path.iter().copied().chain([&*node.directive.name.text]).collect();
                self.block(&node.children, &path);
            }
        }
    }

    fn directive(&mut self, node: &Node<'_>, path: &[&str]) {
        match &*node.directive.name.text {
            "server" if path.last() == Some(&"upstream") => self.origin_server(node),
            name if is_pass(name) => {
                let outer = path.first().copied().unwrap_or_default();
                self.pass(node, outer);
            }
            name if network::is_bind(name) => self.bind(node),
            name if known::is_left_out(name) => self.remove(node.file, node.directive),
            _ => self.file(node),
        }
    }

    /// Writes directives at the beginning of the main file and of `http`, to replace defaults of nginx that a copy must
    /// not have.
    fn defaults(&mut self, nodes: &[Node<'_>]) {
        let text = &self.source.files[0].text;
        let begin = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let mut main = Vec::new();
        if let Some((user, group)) = self.surroundings.user.filter(|_| !is_set(nodes, "user")) {
            main.push(format!("user {user} {group};"));
        }
        for (name, file) in files::OF_MAIN {
            if !is_set(nodes, name) {
                main.push(format!("{name} {};", self.below_prefix(file)));
            }
        }
        if !is_set(nodes, "daemon") {
            main.push("daemon off;".to_owned());
        }
        self.insert(0, begin, &format!("{} ", main.join(" ")));
        for http in nodes.iter().filter(|node| node.is_block("http")) {
            let text = self.http_defaults(http);
            self.insert_into(http, &text);
        }
    }

    fn http_defaults(&self, http: &Node<'_>) -> String {
        let mut text = String::new();
        if !is_set(&http.children, "access_log") {
            text += &format!(" access_log {};", self.below_prefix("logs/access.log"));
        }
        if !is_set(&http.children, "root") {
            let root = self.prefix.join("html");
            text += &format!(" root {};", quoted(&root.to_string_lossy()));
        }
        for (left_out, name) in files::TEMP_PATHS {
            let is_built = left_out.is_empty() || !self.build.contains(left_out);
            if is_built && !is_set(&http.children, name) {
                let folder = format!("temp/{}", name.trim_end_matches("_temp_path"));
                text += &format!(" {name} {};", self.below_prefix(&folder));
            }
        }
        text
    }

    /// Returns a path below the copy's folder, quoted if needed.
    fn below_prefix(&self, path: &str) -> String {
        quoted(&self.surroundings.prefix.join(path).to_string_lossy())
    }

    /// Returns a path of the user's as an absolute one, quoted if needed.
    fn absolute(&self, folder: &Path, path: &str) -> String {
        quoted(&folder.join(path).to_string_lossy())
    }

    fn replace(&mut self, file: usize, word: &Word, text: String) {
        self.put(file, word.span.start, word.span.end, text);
    }

    /// Takes out a range of bytes, but keeps its line ends.
    fn blank(&mut self, file: usize, begin: usize, end: usize) {
        let lines = "\n".repeat(self.source.files[file].text[begin..end].matches('\n').count());
        self.put(file, begin, end, lines);
    }

    fn remove(&mut self, file: usize, directive: &Directive) {
        let span = directive.span();
        self.blank(file, span.start, span.end);
    }

    fn insert(&mut self, file: usize, at: usize, text: &str) {
        self.put(file, at, at, text.to_owned());
    }

    /// Inserts a text at the beginning of a block.
    fn insert_into(&mut self, block: &Node<'_>, text: &str) {
        self.insert(block.file, block.directive.terminator + 1, text);
    }

    fn put(&mut self, file: usize, begin: usize, end: usize, text: String) {
        self.splices.entry((file, begin, end)).or_insert(text);
    }

    fn into_splices(self) -> Vec<Splice> {
        self.splices
            .into_iter()
            .map(|((file, begin, end), text)| Splice { file, range: begin..end, text })
            .collect()
    }
}

fn is_set(nodes: &[Node<'_>], name: &str) -> bool {
    nodes.iter().any(|node| node.is_simple(name))
}
