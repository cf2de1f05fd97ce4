//! Path of a load through a configuration: its sections, lines and options that apply to the load.

use weir_configuration::Spot;
use weir_sut::route_match::RouteMatch;

use crate::language::{self, Section, Statement, Tree, is_used_by};

/// Parts of a configuration that apply to a load. If a keyword has several lines, the first one takes precedence.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// Names of the section that accepts the requests, and of the one that passes them on to the origin server.
    pub(super) frontend: String,
    pub(super) backend: String,
    pub(super) global: Vec<String>,
    /// Lines of the section that accepts the requests, followed by those of its `defaults`.
    pub(super) client_side: Vec<String>,
    /// Lines of the section that passes the requests on, followed by those of its `defaults`.
    pub(super) origin_side: Vec<String>,
    /// Line of the address that the load connects to.
    pub(super) bind: String,
    /// Options of the first server, or the first of a template; the last one takes precedence. Options of
    /// `default-server` lines stand before the server's own.
    pub(super) server: String,
}

impl Route {
    /// Finds the path of a load: by the section that the look-up found, or else the one that listens at the load's
    /// address, or else the first one that listens.
    pub(super) fn of(tree: &Tree<'_>, route_match: &RouteMatch) -> Route {
        let address = route_match.at.to_string();
        let sections = || tree.sections.iter().enumerate();
        // The one that answers may stand behind another, which passes connections on to it.
        let frontend = find_at(tree, route_match.server.as_ref())
            .or_else(|| {
                sections().find(|(_, section)| {
                    section.has_frontend() && binds(section).any(|bind| listens(bind, &address))
                })
            })
            .or_else(|| sections().find(|(_, section)| section.has_frontend()));
        let backend = find_at(tree, route_match.location.as_ref())
            .or_else(|| frontend.and_then(|(index, section)| find_backend(tree, index, section)))
            .or_else(|| sections().find(|(_, section)| section.has_backend()));

        let global = tree.of_kind("global");
        let mut route = Route {
            global: global.flat_map(|(_, section)| lines_of(section)).collect(),
            ..Route::default()
        };
        if let Some((index, section)) = frontend {
            route.frontend = section.name().unwrap_or_default().to_owned();
            route.client_side = lines(tree, index);
            let bind = binds(section)
                .find(|bind| listens(bind, &address))
                .or_else(|| binds(section).next());
            route.bind = bind.map_or_else(String::new, line);
            // An address's own counts in the place of its section's.
            let backlog = route
                .bind
                .split_once(" backlog ")
                .and_then(|(_, rest)| rest.split(' ').next())
                .map(|number| format!("backlog {number}"));
            route.client_side.splice(..0, backlog);
            // So does what it says of TLS in the place of what `global` says for all.
            let defaults = bind.into_iter().flat_map(language::as_defaults);
            route.global.splice(..0, defaults);
        }
        if let Some((index, section)) = backend {
            route.backend = section.name().unwrap_or_default().to_owned();
            route.origin_side = lines(tree, index);
            route.server = server(tree, index);
        }
        route
    }

    /// Returns the lines of a keyword, one or several words, perhaps with `no` before it, that apply to a context.
    /// Lines of a side that does not use the keyword are ignored.
    pub(super) fn lines(&self, context: &str, keyword: &str) -> Vec<&str> {
        let sides: [&[String]; 2] = match context {
            "global" => [&self.global, &[]],
            "frontend" => [&self.client_side, &[]],
            "backend" => [&[], &self.origin_side],
            _ => [
                if is_used_by(keyword, "frontend") { &self.client_side } else { &[] },
                if is_used_by(keyword, "backend") { &self.origin_side } else { &[] },
            ],
        };
        sides
            .into_iter()
            .flatten()
            .map(String::as_str)
            .filter(|line| is_named(line, keyword))
            .collect()
    }
}

fn find_at<'s, 't>(tree: &'s Tree<'t>, spot: Option<&Spot>) -> Option<(usize, &'s Section<'t>)> {
    tree.sections
        .iter()
        .enumerate()
        .find(|(_, section)| spot.is_some_and(|spot| is_at(section, spot)))
}

/// Returns the section that answers a frontend's requests: itself, its default backend, or else the first one that it
/// names.
fn find_backend<'s, 't>(
    tree: &'s Tree<'t>,
    index: usize,
    frontend: &'s Section<'t>,
) -> Option<(usize, &'s Section<'t>)> {
    if frontend.has_backend() {
        return Some((index, frontend));
    }
    let statements: Vec<_> = std::iter::once(frontend)
        .chain(tree.defaults_of(index).into_iter().map(|i| &tree.sections[i]))
        .flat_map(|section| &section.statements)
        .collect();
    let name = ["default_backend", "use_backend"]
        .iter()
        .find_map(|keyword| statements.iter().find(|statement| statement.word(0) == *keyword))?
        .word(1);
    let mut sections = tree.sections.iter().enumerate();
    sections.find(|(_, section)| section.has_backend() && section.name() == Some(name))
}

/// Returns the lines of a section, followed by those of its `defaults`.
fn lines(tree: &Tree<'_>, index: usize) -> Vec<String> {
    std::iter::once(index)
        .chain(tree.defaults_of(index))
        .flat_map(|index| lines_of(&tree.sections[index]))
        .collect()
}

/// Returns the lines of a section; a line that lists options becomes one line for each option. Order is reversed, since
/// the later of two lines takes precedence.
fn lines_of(section: &Section<'_>) -> impl Iterator<Item = String> {
    section
        .statements
        .iter()
        .rev()
        .flat_map(|statement| language::lines(statement).into_iter().rev())
}

/// Returns the options of the first server of a section, behind those of its `default-server` lines.
fn server(tree: &Tree<'_>, index: usize) -> String {
    let section = &tree.sections[index];
    let above: Vec<_> = section
        .statements
        .iter()
        .take_while(|statement| !matches!(statement.word(0), "server" | "server-template"))
        .collect();
    let server = section.statements.get(above.len());
    let mut chain = tree.defaults_of(index);
    chain.reverse();
    let defaults = chain
        .iter()
        .flat_map(|&index| &tree.sections[index].statements)
        .chain(above)
        .filter(|statement| statement.word(0) == "default-server");
    defaults.chain(server).flat_map(options_of_server).collect::<Vec<_>>().join(" ")
}

/// Returns the options of a `server`, `server-template` or `default-server` line.
fn options_of_server(statement: &Statement<'_>) -> Vec<String> {
    let from = match statement.word(0) {
        "default-server" => 1,
        "server-template" => 4,
        _ => 3,
    };
    statement.words.iter().skip(from).map(|word| word.text.clone().into_owned()).collect()
}

fn binds<'s, 't>(section: &'s Section<'t>) -> impl Iterator<Item = &'s Statement<'t>> {
    section.statements.iter().filter(|statement| statement.word(0) == "bind")
}

/// Returns true if a `bind` line has this address.
fn listens(bind: &Statement<'_>, address: &str) -> bool {
    bind.word(1).split(',').any(|bound| bound == address)
}

/// Returns true if a section is the one that a spot names: a copy has other line numbers, but the same names.
fn is_at(section: &Section<'_>, spot: &Spot) -> bool {
    spot.name == format!("{} {}", section.kind(), section.name().unwrap_or_default())
}

fn line(statement: &Statement<'_>) -> String {
    let words: Vec<&str> = statement.words.iter().map(|word| &*word.text).collect();
    words.join(" ")
}

fn is_named(line: &str, keyword: &str) -> bool {
    line.strip_prefix("no ")
        .unwrap_or(line)
        .strip_prefix(keyword)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}
