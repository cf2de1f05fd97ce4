//! Finds what a copy replaces, of what the requests of a load meet ([`super::adapt`]).

use std::collections::BTreeSet;
use std::net::SocketAddr;

use weir_model::record::{ReplacedPart, ReplacedRecord};
use weir_model::study::AskSpec;

use super::addresses::is_of_tls;
use super::asked::{Frontends, lines};
use super::listeners::plain;
use super::options::options;
use super::paths::Bases;
use super::sections::{Section, Statement, Tree};
use crate::asked::{Request, Spot, look_up};
use crate::replaced::Replacements;
use crate::{Ask, ConfigurationError, PemLocation, ShownCertificate, Source};

/// Fetches of headers and cookies of responses (manual §7.3.6), as they begin.
const RESPONSE: [&str; 4] = ["res.hdr", "res.fhdr", "res.cook", "res.ver"];

/// Fetches about the client's address (manual §7.3.3), as they begin.
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

/// Finds what a copy replaces, of what the requests of a load meet.
///
/// # Errors
/// As of [`super::asked`].
pub fn replaced(source: &Source, ask: &AskSpec) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
    let tree = Tree::parse(source)?;
    let asked = look_up(&Frontends::of(source, &tree), ask)?;
    let listening = tree
        .sections
        .iter()
        .filter(|section| section.has_frontend());
    let binds = listening.flat_map(|section| &section.statements);
    let binds = binds.filter(|statement| statement.word(0) == "bind");
    let mut search = Search {
        source,
        tree: &tree,
        own: binds
            .flat_map(|bind| bind.word(1).split(',').map(plain))
            .collect(),
        found: Replacements::new(source),
    };
    for (request, asked) in Request::all(ask).zip(&asked) {
        for spot in &asked.past {
            search.found.add(ReplacedPart::Before, spot);
        }
        let ways = asked.through.iter().chain(&asked.server);
        for (place, spot) in ways.chain(&asked.location).enumerate() {
            let Some(index) = search.section(spot) else {
                continue;
            };
            if place == 0 {
                search.listeners(index, &asked.listener.address);
            }
            search.proxy(index, &request);
        }
    }
    Ok(search.found.done())
}

/// The certificates that a configuration shows to the clients of a load.
///
/// # Errors
/// As of [`super::asked`].
pub fn certificates(
    source: &Source,
    ask: &AskSpec,
) -> Result<Vec<ShownCertificate>, ConfigurationError> {
    let tree = Tree::parse(source)?;
    let spec = ask.clone();
    let at = SocketAddr::from(([127, 0, 0, 1], 0));
    let secure = lines(source, &tree, &[Ask { spec, at }])?.secure;
    let globals = tree
        .of_kind("global")
        .flat_map(|(_, global)| &global.statements);
    let folder = Bases::of(source, &tree).folder;
    let base = globals.filter(|it| it.word(0) == "crt-base").last();
    let base = folder.join(base.map_or("", |statement| statement.word(1)));
    let listening = tree
        .sections
        .iter()
        .filter(|section| section.has_frontend());
    let binds = listening.flat_map(|section| {
        let binds = section.statements.iter().filter(|it| it.word(0) == "bind");
        binds.map(move |bind| (section.file, bind))
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
            shown.push(ShownCertificate {
                spot: spot.record(source),
                pem,
            });
        }
    }
    Ok(shown)
}

struct Search<'a> {
    source: &'a Source,
    tree: &'a Tree<'a>,
    /// Addresses that the configuration listens at.
    own: BTreeSet<String>,
    found: Replacements<'a>,
}

impl<'a> Search<'a> {
    /// The section at a place.
    fn section(&self, spot: &Spot) -> Option<usize> {
        let mut all = self.tree.sections.iter();
        all.position(|it| (it.file, it.header.words_from(0)) == (spot.file, spot.span.clone()))
    }

    fn add(&mut self, part: ReplacedPart, section: &Section<'_>, at: &Statement<'_>, name: String) {
        let spot = Spot::new(self.source, section.file, at.words_from(0), name);
        self.found.add(part, &spot);
    }

    /// Adds what the `bind` lines lose by which a section is asked.
    fn listeners(&mut self, index: usize, address: &str) {
        let section = &self.tree.sections[index];
        for bind in section.statements.iter().filter(|it| it.word(0) == "bind") {
            let is_asked = bind.word(1).split(',').any(|it| it == address);
            let protocol = options(bind)
                .into_iter()
                .map(|option| bind.word(option.start));
            let mut protocol = protocol.filter(|name| name.starts_with("accept-"));
            if let (true, Some(option)) = (is_asked, protocol.next()) {
                let name = format!("bind … {option}");
                self.add(ReplacedPart::ProxyProtocol, section, bind, name);
            }
        }
    }

    /// Adds what is replaced of a proxy section and of the `defaults` above it.
    fn proxy(&mut self, index: usize, request: &Request<'_>) {
        let above = self.tree.defaults_of(index);
        let chain: Vec<&'a Section<'a>> = std::iter::once(index)
            .chain(above)
            .map(|index| &self.tree.sections[index])
            .collect();
        for section in &chain {
            for statement in &section.statements {
                if let Some(part) = part_of(statement, request)
                    && !is_unused(statement, &chain)
                {
                    self.add(part, section, statement, statement.text());
                }
                for name in tables(statement) {
                    self.table(name);
                }
            }
        }
        if chain[0].has_backend() {
            self.servers(&chain);
        }
    }

    /// Adds the table of another section, if it counts rates.
    fn table(&mut self, name: &str) {
        let mut sections = self.tree.sections.iter();
        let section = sections.find(|it| it.name() == Some(name) && it.is_proxy());
        let Some(section) = section else { return };
        if let Some(table) = section.statements.iter().find(|it| counts_rates(it)) {
            self.add(ReplacedPart::Limit, section, table, table.text());
        }
    }

    /// The servers of a section that are not listeners of the configuration itself.
    fn servers(&mut self, chain: &[&'a Section<'a>]) {
        let (mut count, mut uses_tls, mut of_tls) = (0, false, Vec::new());
        let lines: Vec<(&Section<'_>, &Statement<'_>)> = (chain.iter())
            .flat_map(|section| section.statements.iter().map(move |line| (*section, line)))
            .collect();
        let is_tls_usual = (lines.iter())
            .any(|(_, line)| line.word(0) == "default-server" && line.has(|word| word == "ssl"));
        for (section, line) in lines {
            let address = match line.word(0) {
                "server" => Some(line.word(2)),
                "server-template" => Some(line.word(3)),
                "default-server" => None,
                _ => continue,
            };
            let is_off = line.has(|word| word == "disabled");
            if address.is_some_and(|address| is_off || self.own.contains(&plain(address))) {
                continue;
            }
            if let Some(address) = address {
                count += servers_in(line);
                let is_tls = is_tls_usual || line.has(|word| word == "ssl");
                uses_tls |= is_tls && !line.has(|word| word == "no-ssl");
                if address.starts_with(['/', '@']) || address.contains("unix@") {
                    self.add(
                        ReplacedPart::Servers,
                        section,
                        line,
                        "server unix@".to_owned(),
                    );
                }
            }
            for option in options(line) {
                let words: Vec<&str> = line.words[option].iter().map(|it| &*it.text).collect();
                let name = words.join(" ");
                match words[0] {
                    "resolvers" => {
                        self.add(ReplacedPart::Names, section, line, "resolvers".to_owned());
                    }
                    option if option.starts_with("send-proxy") => {
                        self.add(ReplacedPart::ProxyProtocol, section, line, name);
                    }
                    option if is_of_tls(option) => of_tls.push((section, line, name)),
                    _ => {}
                }
            }
        }
        // Without `ssl` nothing of the rest is used.
        if uses_tls {
            for (section, line, name) in of_tls {
                self.add(ReplacedPart::OriginTls, section, line, name);
            }
        }
        if count > 1 {
            let header = &chain[0].header;
            self.add(
                ReplacedPart::Servers,
                chain[0],
                header,
                format!("{count} servers"),
            );
        }
    }
}

/// Servers that a line stands for: several for a `server-template`, by a number or a range.
fn servers_in(line: &Statement<'_>) -> u64 {
    if line.word(0) != "server-template" {
        return 1;
    }
    let (first, last) = line.word(2).split_once('-').unwrap_or(("1", line.word(2)));
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) => last.saturating_sub(first) + 1,
        _ => 1,
    }
}

/// Returns true for a `stick-table` that counts how often something happens.
fn counts_rates(statement: &Statement<'_>) -> bool {
    statement.word(0) == "stick-table" && statement.has(|word| word.contains("_rate("))
}

/// Tables of other sections that a statement names: `track-sc0 src table NAME`, `sc_http_req_rate(0,NAME)`.
fn tables<'s>(statement: &'s Statement<'_>) -> impl Iterator<Item = &'s str> {
    let words = || statement.words.iter().map(|word| &*word.text);
    let named = words()
        .zip(words().skip(1))
        .filter(|(word, _)| *word == "table");
    let fetched = words().filter_map(|word| {
        let (_, arguments) = word.split_once("_rate(")?;
        arguments.split(')').next()?.rsplit(',').next()
    });
    named.map(|(_, name)| name).chain(fetched)
}

/// Returns true for an `acl` that no statement of these sections names.
fn is_unused(acl: &Statement<'_>, chain: &[&Section<'_>]) -> bool {
    let name = acl.word(1);
    let mut statements = chain.iter().flat_map(|section| &section.statements);
    acl.word(0) == "acl"
        && !statements.any(|statement| {
            statement.word(0) != "acl" && statement.has(|word| word.trim_start_matches('!') == name)
        })
}

/// Tells which part of a statement the copy replaces, if any.
fn part_of(statement: &Statement<'_>, request: &Request<'_>) -> Option<ReplacedPart> {
    let begins = |words: &[&str]| statement.begins_with(words);
    if begins(&["rate-limit"]) || counts_rates(statement) || statement.word(1).starts_with("bwlim-")
    {
        return Some(ReplacedPart::Limit);
    }
    if begins(&["tcp-request", "connection", "expect-proxy"]) {
        return Some(ReplacedPart::ProxyProtocol);
    }
    let is_cache = ["cache-use", "cache-store"].contains(&statement.word(1));
    let is_compression = begins(&["compression"]) || begins(&["filter", "compression"]);
    let reads_response = begins(&["http-response"])
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
    let is_client = |word: &str| {
        word == "src"
            || word.starts_with("src,")
            || OF_CLIENT.iter().any(|fetch| word.starts_with(fetch))
    };
    let is_by_client = begins(&["balance", "source"])
        || (begins(&["source"]) && statement.has(|word| word == "usesrc"))
        || statement.has(is_client);
    is_by_client.then_some(ReplacedPart::ClientAddress)
}
