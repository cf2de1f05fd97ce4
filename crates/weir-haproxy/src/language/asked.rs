//! Looks up the frontend and backend of a request, as HAProxy chooses them: by `bind`, the rules of `http-request` and
//! `redirect`, `use_backend` and `default_backend` (configuration manual §4.2). A rule that answers is assumed not to
//! apply if its condition depends on more than the request; a `use_backend` with such a condition leaves the answer
//! open. A frontend in TCP whose server is a listener of the same configuration leads to the frontend of that listener.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use weir_configuration::answer::{Answer, Barrier};
use weir_configuration::asked::{
    self, Candidates, ListenerCandidate, Map, Missing, Request, RequestOutcome, Route, Spot,
};
use weir_configuration::place::line_and_column;
use weir_configuration::{Ask, ConfigurationError, Listener, Source, SourceFile};
use weir_model::study::AskSpec;

use super::conditions::Conditions;
use super::listeners::{is_own, is_tls, last_port, plain, port};
use super::maps::{Files, Rewritten};
use super::options::options;
use super::sections::{Section, Statement, Tree, first, mode};
use super::sides::{by_itself, looks_into_tls, served};
use super::steps::{Step, step};

const NO_RULE: &str = "no rule gives it a backend";

/// First words of the statement that switches compression on.
pub(super) const COMPRESSION: [&str; 2] = ["compression", "algo"];

/// Maximum number of sections that a request goes through; more are a circle.
const MOST_STEPS: usize = 20;

const MISSING: Missing = Missing {
    clear: "no `bind` line of a frontend is in clear",
    tls: "no `bind` line of a frontend has `ssl`",
    hint: "add a frontend with a `bind` line",
};

/// Looks up the answers to the requests of a load, one for each.
///
/// # Errors
/// Returns an error if the configuration cannot be read ([`Tree::parse`]); if no listener matches the load; if a host
/// or path that the load names matches nothing; or if the configuration demands a certificate or HTTP/2, or passes TLS
/// on as it is.
pub fn asked(source: &Source, ask: &AskSpec) -> Result<Vec<RequestOutcome>, ConfigurationError> {
    let tree = Tree::parse(source)?;
    asked::look_up(&Frontends::of(source, &tree), ask)
}

/// `bind` lines, by their indices among all.
pub(super) struct Lines {
    /// Lines that loads ask, each with its address in the copy.
    pub(super) asked: Vec<(usize, SocketAddr)>,
    /// Lines at which the TLS of a load may end.
    pub(super) secure: Vec<usize>,
}

/// Returns the `bind` lines that loads reach.
pub(super) fn lines(
    source: &Source,
    tree: &Tree<'_>,
    asks: &[Ask],
) -> Result<Lines, ConfigurationError> {
    let frontends = Frontends::of(source, tree);
    let load_addresses: Vec<(usize, SocketAddr)> = asked::addresses(&frontends, asks)?
        .into_iter()
        .map(|(candidate, at)| (frontends.lines[candidate], at))
        .collect();
    let mut reached: Vec<usize> = load_addresses.iter().map(|(line, _)| *line).collect();
    let mut next = 0;
    while let Some(&line) = reached.get(next) {
        next += 1;
        for behind in &frontends.behind[line] {
            if !reached.contains(behind) {
                reached.push(*behind);
            }
        }
    }
    reached.retain(|&line| is_tls(frontends.binds[line].1));
    Ok(Lines { asked: load_addresses, secure: reached })
}

/// Returns the addresses of all `bind` lines of sections `frontend` and `listen`, in order.
///
/// # Errors
/// Returns an error if the configuration cannot be read ([`Tree::parse`]).
pub fn listeners(source: &Source) -> Result<Vec<Listener>, ConfigurationError> {
    let tree = Tree::parse(source)?;
    Ok(Frontends::of(source, &tree).candidates.listeners())
}

/// State of the TLS of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tls {
    /// The connection is in clear.
    None,
    /// The connection is encrypted, and no listener has decrypted it.
    Sealed,
    /// A listener has decrypted the connection.
    Ended,
}

/// The sections that listen, with their `bind` lines.
pub(super) struct Frontends<'s, 't> {
    candidates: Candidates<'s>,
    tree: &'s Tree<'t>,
    /// Index of its `bind` line, for each listener.
    lines: Vec<usize>,
    /// All `bind` lines, each with the index of its section.
    binds: Vec<(usize, &'s Statement<'t>)>,
    /// Indices of the `bind` lines, by address ([`plain`]).
    by_address: BTreeMap<String, usize>,
    /// Lines that a `bind` line may pass connections on to, for each `bind` line.
    behind: Vec<Vec<usize>>,
    files: Files,
}

/// Backends that a frontend may choose.
struct Choice {
    /// Backend of the first rule that certainly applies, or the default one.
    backend: Option<usize>,
    /// Backends of earlier rules whose conditions are not decided.
    others: Vec<usize>,
    is_sure: bool,
}

impl<'s, 't> Frontends<'s, 't> {
    pub(super) fn of(source: &'s Source, tree: &'s Tree<'t>) -> Frontends<'s, 't> {
        let binds = tree
            .sections
            .iter()
            .enumerate()
            .filter(|(_, section)| section.has_frontend())
            .flat_map(|(group, section)| {
                section
                    .statements
                    .iter()
                    .filter(|it| it.word(0) == "bind")
                    .map(move |bind| (group, bind))
            });
        let candidates = Candidates { source, all: Vec::new(), missing: MISSING };
        let mut frontends = Frontends {
            candidates,
            tree,
            lines: Vec::new(),
            binds: binds.collect(),
            by_address: BTreeMap::new(),
            behind: Vec::new(),
            files: Files::of(source, tree),
        };
        for (line, (_, bind)) in frontends.binds.iter().enumerate() {
            for address in bind.word(1).split(',').map(plain) {
                frontends.by_address.entry(address).or_insert(line);
            }
        }
        let lines = 0..frontends.binds.len();
        frontends.behind = lines.clone().map(|line| frontends.behind(line)).collect();
        let inner: BTreeSet<usize> = frontends.behind.iter().flatten().copied().collect();
        for line in lines {
            frontends.bind(line, inner.contains(&line));
        }
        frontends
    }

    fn bind(&mut self, line: usize, is_behind: bool) {
        let (group, bind) = self.binds[line];
        let file = self.tree.sections[group].file;
        let SourceFile { path, text } = &self.candidates.source.files[file];
        let mut behind = self.behind[line].iter();
        let in_tcp = !is_tls(bind) && mode(&self.chain(group)) != "http";
        let is_either = behind.any(|line| is_tls(self.binds[*line].1))
            || (in_tcp && looks_into_tls(&self.tree.sections[group]));
        let first = self.candidates.all.len();
        for address in bind.word(1).split(',') {
            self.candidates.all.push(ListenerCandidate {
                listener: Listener {
                    file: path.clone(),
                    line: line_and_column(text, bind.line.start).0,
                    address: address.to_owned(),
                    port: port(address),
                    tls: is_tls(bind),
                },
                at: (file, bind.words_from(0).start),
                last_port: last_port(address),
                group,
                first,
                is_udp: address.starts_with("quic"),
                is_either,
                is_inner: is_behind && is_own(address),
            });
            self.lines.push(line);
        }
    }

    /// Returns the listeners of this configuration that a listener in TCP may pass its connections on to, with TLS as
    /// it is.
    fn behind(&self, line: usize) -> Vec<usize> {
        let (section, bind) = self.binds[line];
        let chain = self.chain(section);
        if is_tls(bind) || mode(&chain) == "http" {
            return Vec::new();
        }
        let rules = chain[0].statements.iter().filter(|rule| rule.word(0) == "use_backend");
        let default = first(&chain, &["default_backend"]);
        let names: Vec<&str> = rules.chain(default).map(|rule| rule.word(1)).collect();
        let is_any = names.iter().any(|name| name.contains('%'));
        let behind = self.tree.sections.iter().enumerate().filter(|(index, it)| {
            let is_named = it.name().is_some_and(|name| names.contains(&name));
            it.has_backend() && (*index == section || is_named || is_any)
        });
        behind
            .flat_map(|(_, it)| it.statements.iter().filter_map(move |it| self.find_listener(it)))
            .collect()
    }

    /// Returns the listener of this configuration that a `server` line leads to.
    fn find_listener(&self, statement: &Statement<'_>) -> Option<usize> {
        if statement.word(0) != "server" {
            return None;
        }
        self.by_address.get(&plain(statement.word(2))).copied()
    }

    fn chain(&self, index: usize) -> Vec<&'s Section<'t>> {
        self.tree.chain(index)
    }

    fn spot(&self, index: usize) -> Spot {
        let section = &self.tree.sections[index];
        let name = section.name().unwrap_or_default();
        let name = format!("{} {name}", section.kind()).trim_end().to_owned();
        Spot::new(self.candidates.source, section.file, section.header.words_from(0), name)
    }

    /// Returns the listener that the first server of a backend leads to, and the line of that server.
    fn next(&self, backend: usize) -> Option<(usize, &'s Statement<'t>)> {
        let mut statements = self.tree.sections[backend].statements.iter();
        let server = statements.find(|it| it.word(0) == "server")?;
        Some((self.find_listener(server)?, server))
    }

    /// Returns the answer of a section in TCP to a connection that leads to no listener of this configuration.
    fn tunnelled(&self, section: usize, backend: Option<usize>, tls: Tls) -> Answer {
        match (tls, backend.map(|backend| self.spot(backend))) {
            (Tls::Sealed, Some(backend)) => {
                let at = (backend.file, backend.span.start);
                Answer::Bars(Barrier::sealed(at, &backend.name))
            }
            (Tls::None, _) if looks_into_tls(&self.tree.sections[section]) => Answer::Closes,
            _ => Answer::Tunnels,
        }
    }

    /// Returns the demand of a `bind` line that the clients of a load cannot meet, if it has one.
    fn barrier(&self, line: usize, request: &Request<'_>) -> Option<Barrier> {
        let (section, bind) = self.binds[line];
        let file = self.tree.sections[section].file;
        options(bind).into_iter().map(|option| option.start).find_map(|at| {
            let position = (file, bind.words[at].span.start);
            let option = (bind.word(at), bind.word(at + 1));
            if option == ("proto", "h2") {
                return Some(Barrier::http2(position, "proto h2"));
            }
            let demands = option == ("verify", "required") && is_tls(bind) && !request.is_certified;
            demands.then(|| Barrier::certificate(position, "verify required"))
        })
    }

    /// Returns the way from a `bind` line on, with the sections that it leads through.
    fn visit<'c>(
        &'c self,
        line: usize,
        mut conditions: Conditions<'c, 't>,
        mut tls: Tls,
        steps: &mut Vec<Step<'c, 't>>,
    ) -> Route {
        let (section, bind) = self.binds[line];
        conditions.sections = self.chain(section);
        conditions.met.clear();
        let is_http = mode(&conditions.sections) == "http";
        // Of listeners that another frontend leads to: they expect TLS where there is none any more, or none.
        if is_tls(bind) != (tls == Tls::Sealed) && (is_tls(bind) || is_http) {
            return self.end_in(section, Answer::Closes);
        }
        if let Some(barrier) = self.barrier(line, &conditions.request) {
            return self.end_in(section, Answer::Bars(barrier));
        }
        if let Some(answer) = by_itself(&mut conditions) {
            steps.push(step(section, &conditions, false));
            return self.end_in(section, answer);
        }
        tls = if is_tls(bind) { Tls::Ended } else { tls };
        let choice = self.choose(section, &mut conditions);
        steps.push(step(section, &conditions, true));
        let answer = if choice.is_sure && (is_http || tls == Tls::Sealed) {
            Answer::Nothing(NO_RULE.to_owned())
        } else {
            self.tunnelled(section, None, tls)
        };
        let mut route = self.end_in(section, answer);
        for backend in choice.others.into_iter().chain(choice.backend) {
            let mut inner = conditions.clone();
            let mut answer = None;
            if backend != section {
                inner.sections = self.chain(backend);
                inner.met.clear();
                answer = by_itself(&mut inner);
                steps.push(step(backend, &inner, answer.is_none()));
            }
            let next = self.next(backend).filter(|_| answer.is_none() && steps.len() < MOST_STEPS);
            if let Some((next, server)) = next {
                if is_http {
                    tls = inner.pass_on(server, self.binds[next].1);
                }
                let behind = self.visit(next, inner, tls, steps);
                route = behind.through(self.spot(section));
                continue;
            }
            let answer = answer.unwrap_or_else(|| {
                if is_http {
                    served(&inner.sections)
                } else {
                    self.tunnelled(section, Some(backend), tls)
                }
            });
            route = self.end_in(section, answer);
            route.location = (backend != section).then(|| self.spot(backend));
        }
        match choice.backend {
            _ if choice.is_sure => route,
            None => self.end_in(section, Answer::Unknown),
            Some(_) => Route { answer: Answer::Unknown, ..route },
        }
    }

    /// Returns the way of a request that ends in a section.
    fn end_in(&self, section: usize, answer: Answer) -> Route {
        Route { server: Some(self.spot(section)), ..Route::end(answer) }
    }

    fn choose<'c>(&'c self, index: usize, conditions: &mut Conditions<'c, 't>) -> Choice {
        let chain = self.chain(index);
        let default = first(&chain, &["default_backend"]);
        let is_sure = default.is_none_or(|it| conditions.holds(it).is_some());
        let backend = default.and_then(|statement| self.tree.backend(statement.word(1)));
        let itself = chain[0].has_backend().then_some(index);
        let mut choice = Choice { backend: backend.or(itself), others: Vec::new(), is_sure };
        let rules = chain[0].statements.iter();
        for rule in rules.filter(|rule| rule.word(0) == "use_backend") {
            let holds = conditions.meet(rule);
            if holds == Some(false) {
                continue;
            }
            let name = conditions.format(rule.word(1));
            let named = name.as_ref().and_then(|name| self.tree.backend(name));
            if holds == Some(true) && name.is_some() {
                // Without a backend of a name that is made of the request it is the default.
                choice.backend = named.or(choice.backend);
                return choice;
            }
            choice.is_sure = false;
            choice.others.extend(match name {
                Some(_) => named.into_iter().collect(),
                None => self.called_like(rule.word(1)),
            });
            if holds == Some(true) {
                return choice;
            }
        }
        choice
    }

    /// Returns the backends whose names a log format could produce.
    fn called_like(&self, format: &str) -> Vec<usize> {
        let before = format.split('%').next().unwrap_or_default();
        let behind = format.rsplit(']').next().unwrap_or_default();
        let fits = self.tree.sections.iter().enumerate().filter(|(_, section)| {
            let name = section.name().unwrap_or_default();
            section.has_backend() && name.starts_with(before) && name.ends_with(behind)
        });
        fits.map(|(index, _)| index).collect()
    }

    /// Returns the way of a request from a listener on, and the sections on it.
    pub(super) fn walk<'c>(
        &'c self,
        candidate: usize,
        request: &Request<'c>,
    ) -> (Route, Vec<Step<'c, 't>>) {
        let listener = &self.candidates.all[candidate];
        let named = request.port.filter(|port| listener.has_port(*port));
        let conditions = Conditions {
            tree: self.tree,
            sections: Vec::new(),
            request: *request,
            port: named.or(listener.listener.port),
            files: &self.files,
            rewritten: Rewritten::default(),
            met: Vec::new(),
        };
        let tls = if request.is_tls() { Tls::Sealed } else { Tls::None };
        let mut steps = Vec::new();
        let route = self.visit(self.lines[candidate], conditions, tls, &mut steps);
        let compression = steps
            .iter()
            .flat_map(|step| &step.met)
            .find(|(_, statement)| statement.begins_with(&COMPRESSION));
        let is_passed = matches!(route.answer, Answer::Passes | Answer::Unknown);
        let compressed = compression.filter(|_| is_passed).map(|(section, statement)| {
            let span = statement.words_from(0);
            Spot::new(self.candidates.source, section.file, span, statement.text())
        });
        (Route { compressed, ..route }, steps)
    }
}

impl Map for Frontends<'_, '_> {
    fn candidates(&self) -> &Candidates<'_> {
        &self.candidates
    }

    fn before(&self, candidate: usize) -> Vec<Spot> {
        let target = self.lines[candidate];
        (0..self.binds.len())
            .filter(|&line| self.behind[line].contains(&target))
            .map(|line| self.spot(self.binds[line].0))
            .collect()
    }

    fn variable(&self, candidate: usize) -> Option<&str> {
        let (_, bind) = self.binds[self.lines[candidate]];
        bind.words.get(1)?.variable.as_deref()
    }

    fn how_to_set(&self, variable: &str, port: u16) -> String {
        format!(
            "write `setenv {variable} {port}` into `global` of a copy of your configuration, or start weir with \
             {variable}={port} in its environment"
        )
    }

    fn find_route(&self, candidate: usize, request: &Request<'_>) -> Route {
        self.walk(candidate, request).0
    }
}
