//! Finds the parts on the way of a load's requests that a copy replaces ([`super::adapt`]).

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::Range;

use weir_configuration::asked::{Request, Spot, look_up};
use weir_configuration::place::is_among;
use weir_configuration::replaced::Replacements;
use weir_configuration::{Ask, ConfigurationError, PemLocation, ShownCertificate, Source};
use weir_model::record::{ReplacedPart, ReplacedRecord};
use weir_model::study::AskSpec;

use super::addresses::is_of_tls;
use super::asked::{COMPRESSION, Frontends, lines};
use super::listeners::plain;
use super::options::options;
use super::paths::Bases;
use super::sections::{Section, Statement, Tree};
use super::servers::{Server, servers};
use super::steps::Step;

/// Beginnings of fetches of headers and cookies of responses (manual §7.3.6).
const RESPONSE: [&str; 4] = ["res.hdr", "res.fhdr", "res.cook", "res.ver"];

/// Beginnings of fetches about the client's address (manual §7.3.3).
const OF_CLIENT: [&str; 12] = [
    "src_bytes_",
    "src_clr_",
    "src_conn_",
    "src_get_",
    "src_gpc",
    "src_gpt",
    "src_http_",
    "src_inc_",
    "src_is_local",
    "src_kbytes_",
    "src_sess_",
    "src_updt_",
];

/// Beginnings of fetches about the load of a proxy (manual §7.3.2).
const RATES: [&str; 4] = ["be_sess_rate", "fe_req_rate", "fe_sess_rate", "srv_sess_rate"];

/// Finds the parts on the way of a load's requests that a copy replaces.
///
/// # Errors
/// Returns the errors of [`super::asked`].
pub fn replaced(source: &Source, ask: &AskSpec) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
    let tree = Tree::parse(source)?;
    let frontends = Frontends::of(source, &tree);
    let answers = look_up(&frontends, ask)?;
    let binds = tree
        .sections
        .iter()
        .filter(|section| section.has_frontend())
        .flat_map(|section| &section.statements)
        .filter(|statement| statement.word(0) == "bind");
    let mut search = Search {
        source,
        tree: &tree,
        own: binds.flat_map(|bind| bind.word(1).split(',').map(plain)).collect(),
        found: Replacements::new(source),
    };
    for (request, asked) in Request::all(ask).zip(&answers) {
        for spot in &asked.past {
            search.found.add(ReplacedPart::Before, spot);
        }
        let (_, steps) = frontends.walk(asked.index, &request);
        if let Some(first) = steps.first() {
            search.listeners(first.section, &asked.listener.address);
        }
        for step in &steps {
            search.proxy(step, &request);
        }
    }
    Ok(search.found.done())
}

/// Returns the certificates that a configuration shows to the clients of a load.
///
/// # Errors
/// Returns the errors of [`super::asked`].
pub fn certificates(
    source: &Source,
    ask: &AskSpec,
) -> Result<Vec<ShownCertificate>, ConfigurationError> {
    let tree = Tree::parse(source)?;
    let spec = ask.clone();
    let at = SocketAddr::from(([127, 0, 0, 1], 0));
    let secure = lines(source, &tree, &[Ask { spec, at }])?.secure;
    let globals = tree.of_kind("global").flat_map(|(_, global)| &global.statements);
    let folder = Bases::of(source, &tree).folder;
    let base = folder.join(
        globals
            .filter(|it| it.word(0) == "crt-base")
            .last()
            .map_or("", |statement| statement.word(1)),
    );
    let binds = tree.sections.iter().filter(|section| section.has_frontend()).flat_map(|section| {
        section
            .statements
            .iter()
            .filter(|it| it.word(0) == "bind")
            .map(move |bind| (section.file, bind))
    });
    let mut shown = Vec::new();
    for (_, (file, bind)) in binds.enumerate().filter(|(line, _)| secure.contains(line)) {
        for option in options(bind) {
            let (name, path) = (bind.word(option.start), bind.word(option.start + 1));
            let pem = match name {
                "crt" if path.starts_with('@') => PemLocation::Unknown,
                "crt" => PemLocation::At(base.join(path)),
                "crt-list" => PemLocation::ListedIn(base.join(path)),
                _ => continue,
            };
            let span = bind.words_from(option.start);
            let spot = Spot::new(source, file, span, format!("{name} {path}"));
            shown.push(ShownCertificate { spot: spot.record(source), pem });
        }
    }
    Ok(shown)
}

struct Search<'a> {
    source: &'a Source,
    tree: &'a Tree<'a>,
    /// Addresses that the configuration listens on.
    own: BTreeSet<String>,
    found: Replacements<'a>,
}

impl<'a> Search<'a> {
    fn add(&mut self, part: ReplacedPart, section: &Section<'_>, at: &Statement<'_>, name: String) {
        let spot = Spot::new(self.source, section.file, at.words_from(0), name);
        self.found.add(part, &spot);
    }

    /// Adds the options that the copy takes from the `bind` lines of the section that receives the request.
    fn listeners(&mut self, index: usize, address: &str) {
        let section = &self.tree.sections[index];
        for bind in section.statements.iter().filter(|it| it.word(0) == "bind") {
            let is_asked = bind.word(1).split(',').any(|it| it == address);
            let mut protocol = options(bind)
                .into_iter()
                .map(|option| bind.word(option.start))
                .filter(|name| name.starts_with("accept-"));
            if let (true, Some(option)) = (is_asked, protocol.next()) {
                let name = format!("bind … {option}");
                self.add(ReplacedPart::ProxyProtocol, section, bind, name);
            }
        }
    }

    /// Adds the replaced parts of a proxy section and of the `defaults` above it.
    fn proxy(&mut self, step: &Step<'a, 'a>, request: &Request<'_>) {
        let compresses = step.is_left && step.has(&COMPRESSION);
        for (section, statement) in &step.met {
            let is_idle = match statement.word(0) {
                "acl" => is_unused(statement, step),
                "compression" => !compresses,
                "filter" if statement.word(1) == "compression" => !compresses,
                "http-response" => !step.is_left,
                _ => false,
            };
            if let Some(part) = part_of(statement, request)
                && !is_idle
            {
                self.add(part, section, statement, statement.text());
            }
            self.shared(section, statement);
            for name in tables(statement) {
                self.table(name);
            }
        }
        let section = &self.tree.sections[step.section];
        if section.has_frontend() {
            self.log(step);
        }
        if step.is_left && section.has_backend() {
            self.servers(step);
        }
    }

    /// Adds the rates that a table of another section counts, and the peers that it is shared with.
    fn table(&mut self, name: &str) {
        let mut sections = self.tree.sections.iter();
        let section = sections.find(|it| it.name() == Some(name) && it.is_proxy());
        let Some(section) = section else { return };
        for statement in &section.statements {
            if counts_rates(statement) {
                self.add(ReplacedPart::Limit, section, statement, statement.text());
            }
            self.shared(section, statement);
        }
    }

    /// Adds the peers of a table, if it has some.
    fn shared(&mut self, section: &Section<'_>, table: &Statement<'_>) {
        if table.word(0) == "stick-table" && table.has(|word| word == "peers") {
            let name = "stick-table … peers".to_owned();
            self.add(ReplacedPart::Peers, section, table, name);
        }
    }

    /// Adds a frontend's targets of log lines that are reached over the network.
    fn log(&mut self, step: &Step<'_, '_>) {
        if step.has(&["option", "dontlog-normal"]) {
            return;
        }
        let mut lines = step.met.clone();
        if step.has(&["no", "log"]) {
            lines.retain(|(section, _)| section.kind() != "defaults");
        }
        if lines.iter().any(|(_, line)| line.begins_with(&["log", "global"])) {
            for (_, global) in self.tree.of_kind("global") {
                lines.extend(global.statements.iter().map(|line| (global, line)));
            }
        }
        for (section, line) in lines.into_iter().filter(|(_, line)| line.word(0) == "log") {
            let target = line.word(1);
            let is_sent = match target.strip_prefix("ring@") {
                Some(ring) => self.is_ring_sent(ring),
                None => !is_local(target),
            };
            if is_sent {
                let name = "log over the network".to_owned();
                self.add(ReplacedPart::Log, section, line, name);
            }
        }
    }

    /// Returns true if a ring is sent to a server.
    fn is_ring_sent(&self, name: &str) -> bool {
        let mut rings = self.tree.of_kind("ring").map(|(_, ring)| ring);
        rings.any(|ring| {
            let mut statements = ring.statements.iter();
            ring.name() == Some(name) && statements.any(|it| it.word(0) == "server")
        })
    }

    /// Adds the servers of a section that are not listeners of the configuration itself.
    fn servers(&mut self, step: &Step<'a, 'a>) {
        let chain = self.tree.chain(step.section);
        let mut servers = in_use(step, &chain);
        servers.retain(|server| !self.own.contains(&plain(server.address())));
        for server in &servers {
            let address = server.address();
            if address.starts_with(['/', '@']) || address.contains("unix@") {
                let name = "server unix@".to_owned();
                self.add(ReplacedPart::Servers, server.section, server.line, name);
            }
        }
        let usual = step.met.iter().copied().filter(|(_, it)| it.word(0) == "default-server");
        let lines = servers.iter().map(|server| (server.section, server.line));
        // Without `ssl`, and with addresses alone, nothing of the rest is used.
        let uses_tls = servers.iter().any(|server| server.is("ssl", "no-ssl"));
        let uses_names = servers.iter().any(Server::has_name);
        for (section, line) in lines.chain(usual) {
            for option in options(line) {
                let name = line.word(option.start);
                let is_used = match name {
                    "resolvers" => uses_names,
                    name => uses_tls || !is_of_tls(name),
                };
                if is_used && !servers.is_empty() {
                    self.option(section, line, option);
                }
            }
        }
        let count: u64 = servers.iter().map(Server::count).sum();
        if count > 1 {
            let header = &chain[0].header;
            let name = format!("{count} servers{}", weights(&servers));
            self.add(ReplacedPart::Servers, chain[0], header, name);
            self.balance(step);
        }
    }

    fn option(&mut self, section: &Section<'_>, line: &Statement<'_>, option: Range<usize>) {
        let words: Vec<&str> = line.words[option].iter().map(|it| &*it.text).collect();
        let name = words.join(" ");
        match words[0] {
            "resolvers" => {
                self.add(ReplacedPart::Names, section, line, "resolvers".to_owned());
                let tree = self.tree;
                let all = tree.of_kind("resolvers");
                for (_, resolvers) in all.filter(|(_, it)| it.name() == words.get(1).copied()) {
                    for line in &resolvers.statements {
                        let name = match line.word(0) {
                            "nameserver" => "nameserver".to_owned(),
                            _ => line.text(),
                        };
                        self.add(ReplacedPart::Names, resolvers, line, name);
                    }
                }
            }
            "agent-check" => self.add(ReplacedPart::Peers, section, line, name),
            option if option.starts_with("send-proxy") => {
                self.add(ReplacedPart::ProxyProtocol, section, line, name);
            }
            option if is_of_tls(option) => {
                self.add(ReplacedPart::OriginTls, section, line, name);
            }
            _ => {}
        }
    }

    /// Adds the setting by which one of several servers is chosen, unless they take turns.
    fn balance(&mut self, step: &Step<'_, '_>) {
        let find = |word: &str| step.met.iter().find(|(_, it)| it.word(0) == word);
        let Some((section, balance)) = find("balance") else {
            return;
        };
        let part = match balance.word(1) {
            "roundrobin" => return,
            "source" => ReplacedPart::ClientAddress,
            _ => ReplacedPart::Servers,
        };
        self.add(part, section, balance, balance.text());
        let is_hash = !is_among(balance.word(1), "first, leastconn, random, static-rr");
        if let Some((section, hash)) = find("hash-type").filter(|_| is_hash) {
            self.add(ReplacedPart::Servers, section, hash, hash.text());
        }
    }
}

/// Returns the servers that a request may go to while all are up: the one of `use-server`, or those that are no
/// backups, or a backup.
fn in_use<'a>(step: &Step<'a, 'a>, chain: &[&'a Section<'a>]) -> Vec<Server<'a, 'a>> {
    let mut all = servers(chain);
    if let Some(name) = step.server {
        all.retain(|server| server.line.word(1) == name);
    } else if all.iter().any(|server| !server.is("backup", "no-backup")) {
        all.retain(|server| !server.is("backup", "no-backup"));
    } else if !step.has(&["option", "allbackups"]) {
        all.truncate(1);
    }
    all
}

/// Returns the weights of several servers as text, if they differ.
fn weights(servers: &[Server<'_, '_>]) -> String {
    let weights: Vec<&str> = servers.iter().map(Server::weight).collect();
    if weights.iter().all(|weight| *weight == weights[0]) {
        String::new()
    } else {
        format!(" with weights {}", weights.join(", "))
    }
}

/// Returns true for targets of log lines on the host itself, and for words that are no targets.
fn is_local(target: &str) -> bool {
    target.starts_with(['/', '@'])
        || ["unix@", "abns@", "fd@"].iter().any(|family| target.contains(family))
        || is_among(target, "global, stdout, stderr")
}

/// Returns true for a `stick-table` that counts how often something happens.
fn counts_rates(statement: &Statement<'_>) -> bool {
    statement.word(0) == "stick-table" && statement.has(|word| word.contains("_rate("))
}

/// Returns the tables of other sections that a statement names: `track-sc0 src table NAME`, `sc_http_req_rate(0,NAME)`.
fn tables<'s>(statement: &'s Statement<'_>) -> impl Iterator<Item = &'s str> {
    let pairs = statement.words.windows(2).filter(|pair| pair[0].text == "table");
    let fetched = statement.words.iter().filter_map(|word| {
        let (_, arguments) = word.text.split_once("_rate(")?;
        arguments.split(')').next()?.rsplit(',').next()
    });
    pairs.map(|pair| &*pair[1].text).chain(fetched)
}

/// Returns true for an `acl` that is named by no statement on the request's way.
fn is_unused(acl: &Statement<'_>, step: &Step<'_, '_>) -> bool {
    let name = acl.word(1);
    !step.met.iter().any(|(_, statement)| {
        statement.word(0) != "acl" && statement.has(|word| word.trim_start_matches('!') == name)
    })
}

/// Returns the part of a statement that the copy replaces, if there is one.
fn part_of(statement: &Statement<'_>, request: &Request<'_>) -> Option<ReplacedPart> {
    if statement.begins_with(&["rate-limit"])
        || counts_rates(statement)
        || statement.word(1).starts_with("bwlim-")
        || statement.has(|word| RATES.iter().any(|fetch| word.starts_with(fetch)))
    {
        return Some(ReplacedPart::Limit);
    }
    if statement.begins_with(&["tcp-request", "connection", "expect-proxy"]) {
        return Some(ReplacedPart::ProxyProtocol);
    }
    let is_cache = ["cache-use", "cache-store"].contains(&statement.word(1));
    let is_compression = statement.begins_with(&["compression"])
        || statement.begins_with(&["filter", "compression"]);
    let reads_response = statement.begins_with(&["http-response"])
        && (statement.word(1).starts_with("replace-")
            || statement.has(|word| RESPONSE.iter().any(|fetch| word.contains(fetch)))
            || statement
                .words
                .windows(2)
                .any(|pair| pair[0].text == "{" && pair[1].text == "status"));
    if is_cache || reads_response || (is_compression && !request.is_plain()) {
        return Some(ReplacedPart::Content);
    }
    // With converters behind it, or fetches of its own.
    let is_by_client = (statement.begins_with(&["source"])
        && statement.has(|word| word == "usesrc"))
        || statement.has(|word| {
            word == "src"
                || word.starts_with("src,")
                || OF_CLIENT.iter().any(|fetch| word.starts_with(fetch))
        });
    is_by_client.then_some(ReplacedPart::ClientAddress)
}
