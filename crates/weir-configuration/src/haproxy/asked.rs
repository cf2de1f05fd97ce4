//! Which frontend and backend a request meets, as HAProxy chooses them: by `bind`, the rules of `http-request` and
//! `redirect`, `use_backend` and `default_backend` (configuration manual §4.2). A rule whose condition depends on
//! more than the request is taken not to be followed.

use std::net::SocketAddr;

use weir_model::study::AskSpec;

use super::conditions::Conditions;
use super::listeners::{is_tls, last_port, port};
use super::sections::{Section, Statement, Tree};
use crate::asked::{self, Answer, Asked, Door, Map, Request, Spot, Way};
use crate::place::line_and_column;
use crate::{Ask, ConfigurationError, Listener, Source};

/// Looks up what answers the requests of a load: one for each.
///
/// # Errors
/// The configuration cannot be read ([`Tree::parse`]); no listener is as asked; a host or path that is named
/// meets nothing.
pub fn asked(source: &Source, ask: &AskSpec) -> Result<Vec<Asked>, ConfigurationError> {
    let tree = Tree::parse(source)?;
    asked::look_up(&Frontends::of(source, &tree), ask)
}

/// The addresses that loads ask, by the place of their `bind` line among all, and where the copy has them.
pub(super) fn addresses(
    source: &Source,
    tree: &Tree<'_>,
    asks: &[Ask],
) -> Result<Vec<(usize, SocketAddr)>, ConfigurationError> {
    let frontends = Frontends::of(source, tree);
    let found = asked::addresses(&frontends, asks)?.into_iter();
    Ok(found
        .map(|(door, at)| (frontends.lines[door], at))
        .collect())
}

/// The addresses of all `bind` lines of frontends and listens, in order.
///
/// # Errors
/// The configuration cannot be read ([`Tree::parse`]).
pub fn listeners(source: &Source) -> Result<Vec<Listener>, ConfigurationError> {
    let tree = Tree::parse(source)?;
    let frontends = Frontends::of(source, &tree);
    Ok(frontends
        .doors
        .into_iter()
        .map(|door| door.listener)
        .collect())
}

/// The sections that listen.
struct Frontends<'s, 't> {
    source: &'s Source,
    tree: &'s Tree<'t>,
    doors: Vec<Door>,
    /// Of each door, the place of its `bind` line among all.
    lines: Vec<usize>,
}

impl<'s, 't> Frontends<'s, 't> {
    fn of(source: &'s Source, tree: &'s Tree<'t>) -> Frontends<'s, 't> {
        let mut frontends = Frontends {
            source,
            tree,
            doors: Vec::new(),
            lines: Vec::new(),
        };
        let mut line = 0;
        for (group, section) in tree.sections.iter().enumerate() {
            if !section.has_frontend() {
                continue;
            }
            for bind in section.statements.iter().filter(|it| it.word(0) == "bind") {
                frontends.bind(group, section, bind, line);
                line += 1;
            }
        }
        frontends
    }

    fn bind(&mut self, group: usize, section: &Section<'_>, bind: &Statement<'_>, line: usize) {
        let file = &self.source.files[section.file];
        let first = self.doors.len();
        for address in bind.word(1).split(',') {
            self.doors.push(Door {
                listener: Listener {
                    file: file.path.clone(),
                    line: line_and_column(&file.text, bind.line.start).0,
                    address: address.to_owned(),
                    port: port(address),
                    tls: is_tls(bind),
                },
                at: (section.file, bind.words_from(0).start),
                last_port: last_port(address),
                group,
                first,
                is_udp: address.starts_with("quic"),
            });
            self.lines.push(line);
        }
    }

    /// A section and behind it the `defaults` that it takes its settings from.
    fn chain(&self, index: usize) -> Vec<&'s Section<'t>> {
        let chain = std::iter::once(index).chain(self.tree.defaults_of(index));
        chain.map(|index| &self.tree.sections[index]).collect()
    }

    fn spot(&self, index: usize) -> Spot {
        let section = &self.tree.sections[index];
        let name = section.name().unwrap_or_default();
        let name = format!("{} {name}", section.kind()).trim_end().to_owned();
        Spot::new(
            self.source,
            section.file,
            section.header.words_from(0),
            name,
        )
    }

    /// The backend that a frontend chooses by name.
    fn backend(&self, name: &str) -> Option<usize> {
        let mut all = self.tree.sections.iter();
        all.position(|section| section.has_backend() && section.name() == Some(name))
    }

    /// The way from a section that listens on.
    fn from<'c>(
        &'c self,
        index: usize,
        conditions: &Conditions<'c, 't>,
    ) -> (Option<usize>, Answer) {
        let chain = self.chain(index);
        let section = chain[0];
        if mode(&chain) != "http" {
            let (backend, _) = self.chosen(index, &chain, conditions);
            // Whoever looks into a handshake before passes TLS on as it is.
            let looks = |it: &Statement<'_>| {
                it.words.iter().any(|word| {
                    word.text.contains("ssl_sni") || word.text.contains("ssl_hello_type")
                })
            };
            return match conditions.request.is_tls() || !section.statements.iter().any(looks) {
                true => (backend, Answer::Tunnels),
                false => (backend, Answer::Closes),
            };
        }
        if let Some(answer) = by_itself(&chain, conditions) {
            return (None, answer);
        }
        let (backend, is_sure) = self.chosen(index, &chain, conditions);
        let Some(backend) = backend else {
            return (
                None,
                match is_sure {
                    true => Answer::Nothing("no rule gives it a backend".to_owned()),
                    false => Answer::Unknown,
                },
            );
        };
        let chain = self.chain(backend);
        let of_backend = Conditions {
            sections: chain.clone(),
            ..*conditions
        };
        let by_itself = by_itself(&chain, &of_backend).filter(|_| backend != index);
        let answer = match by_itself.unwrap_or_else(|| served(&chain)) {
            Answer::Passes => Answer::Passes,
            // A rule before it that is not decided may have another backend for it.
            _ if !is_sure => Answer::Unknown,
            answer => answer,
        };
        (Some(backend), answer)
    }

    /// The backend, and whether every rule before it is decided.
    fn chosen(
        &self,
        index: usize,
        chain: &[&Section<'t>],
        conditions: &Conditions<'_, 't>,
    ) -> (Option<usize>, bool) {
        let mut is_sure = true;
        let rules = chain[0].statements.iter();
        for rule in rules.filter(|rule| rule.word(0) == "use_backend") {
            match (conditions.holds(rule), self.backend(rule.word(1))) {
                (Some(true), Some(backend)) => return (Some(backend), true),
                // A name that is made when a request comes.
                (Some(true), None) | (None, _) => is_sure = false,
                (Some(false), _) => {}
            }
        }
        let default = first(chain, &["default_backend"]);
        let default = default.and_then(|statement| self.backend(statement.word(1)));
        let itself = chain[0].has_backend().then_some(index);
        (default.or(itself), is_sure)
    }
}

impl Map for Frontends<'_, '_> {
    fn source(&self) -> &Source {
        self.source
    }

    fn doors(&self) -> &[Door] {
        &self.doors
    }

    fn missing(&self, tls: bool) -> &'static str {
        match tls {
            true => "no `bind` line of a frontend has `ssl`",
            false => "no `bind` line of a frontend is in clear",
        }
    }

    fn without_any(&self) -> &'static str {
        "add a frontend with a `bind` line"
    }

    fn way(&self, door: usize, request: &Request<'_>) -> Way {
        let door = &self.doors[door];
        let Door {
            group, listener, ..
        } = door;
        let named = request.port.filter(|port| door.has_port(*port));
        let conditions = Conditions {
            sections: self.chain(*group),
            request: *request,
            port: named.or(listener.port),
        };
        let (backend, answer) = self.from(*group, &conditions);
        Way {
            server: Some(self.spot(*group)),
            location: backend
                .filter(|backend| backend != group)
                .map(|backend| self.spot(backend)),
            answer,
        }
    }
}

/// The first statement of a chain that begins with these words.
fn first<'s, 't>(chain: &[&'s Section<'t>], words: &[&str]) -> Option<&'s Statement<'t>> {
    let mut all = chain.iter().flat_map(|section| &section.statements);
    all.find(|statement| statement.begins_with(words))
}

/// `http`, or `tcp` where nothing is said.
fn mode<'s>(chain: &[&'s Section<'_>]) -> &'s str {
    first(chain, &["mode"]).map_or("tcp", |statement| statement.word(1))
}

/// What a section answers without any server.
fn by_itself(chain: &[&Section<'_>], conditions: &Conditions<'_, '_>) -> Option<Answer> {
    let request = &conditions.request;
    let monitor = first(chain, &["monitor-uri"]);
    if monitor.is_some_and(|monitor| monitor.word(1) == request.path) {
        return Some(Answer::Statistics);
    }
    for rule in &chain[0].statements {
        let action = match rule.word(0) {
            "redirect" => "redirect",
            "http-request" => rule.word(1),
            _ => continue,
        };
        let answer = match action {
            "redirect" => Answer::Redirects,
            "deny" | "tarpit" => {
                let otherwise = if action == "deny" { 403 } else { 500 };
                Answer::of_status(status_of(rule).unwrap_or(otherwise))
            }
            "auth" => Answer::Returns(401),
            "reject" | "silent-drop" => Answer::Closes,
            "use-service" => Answer::Statistics,
            "return" => Answer::of_status(status_of(rule).unwrap_or(200)),
            _ => continue,
        };
        if conditions.holds(rule) == Some(true) {
            return Some(answer);
        }
    }
    statistics(chain, request)
}

/// The status that a rule says.
fn status_of(rule: &Statement<'_>) -> Option<u16> {
    let mut words = rule.words.iter();
    let at = words.position(|word| matches!(&*word.text, "status" | "deny_status"))?;
    rule.word(at + 1).parse().ok()
}

/// The page of statistics, where a section or its `defaults` have one and the request is for it.
fn statistics(chain: &[&Section<'_>], request: &Request<'_>) -> Option<Answer> {
    let has = |option: &str| first(chain, &["stats", option]);
    let known = [
        "enable",
        "uri",
        "auth",
        "realm",
        "refresh",
        "scope",
        "admin",
        "hide-version",
    ];
    if !known.iter().any(|option| has(option).is_some()) {
        return None;
    }
    let uri = has("uri").map_or("/haproxy?stats", |statement| statement.word(2));
    let names_backend = |it: &Statement<'_>| {
        matches!(
            it.word(0),
            "use_backend" | "server" | "server-template" | "dispatch"
        )
    };
    let is_alone = !chain[0].statements.iter().any(names_backend)
        && first(chain, &["default_backend"]).is_none();
    // Of other pages a section with nothing else answers 503.
    (is_alone || request.target.starts_with(uri)).then_some(Answer::Statistics)
}

/// What becomes of a request in a section that has servers.
fn served(chain: &[&Section<'_>]) -> Answer {
    let asks = |it: &Statement<'_>| matches!(it.word(0), "server" | "server-template" | "dispatch");
    let option = |name: &str| first(chain, &["option", name]).is_some();
    match chain[0].statements.iter().any(asks) || option("transparent") || option("http_proxy") {
        true => Answer::Passes,
        false => Answer::Returns(503),
    }
}
