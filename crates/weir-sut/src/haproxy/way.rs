//! The way of the load through a configuration: which of its sections, lines and options it meets.

use weir_configuration::Spot;
use weir_configuration::haproxy::{self, Section, Statement, Tree, is_used_by};

use crate::met::Met;

/// What the load meets. Of several lines of one keyword that counts which stands first.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// Name of the section that is asked, and of the one that asks the origin server.
    pub(super) frontend: String,
    pub(super) backend: String,
    pub(super) global: Vec<String>,
    /// What the section that is asked says, and behind it its `defaults`.
    pub(super) client_side: Vec<String>,
    /// The same of the section that asks.
    pub(super) origin_side: Vec<String>,
    /// The line of the address that is asked.
    pub(super) bind: String,
    /// The first server, or the first of a template, with its options, what stands last counts: those of
    /// `default-server` lines stand before its own.
    pub(super) server: String,
}

impl Way {
    /// The way of a load, by the section that was found to answer, or that listens at its address, or the first
    /// that listens.
    pub(super) fn of(tree: &Tree<'_>, met: &Met) -> Way {
        let asked = met.at.to_string();
        let is_asked = |section: &Section<'_>| binds(section).any(|bind| listens(bind, &asked));
        let sections = || tree.sections.iter().enumerate();
        let by_spot = |spot: &Spot| sections().find(|(_, section)| is_at(section, spot));
        // The one that answers may stand behind another, which passes connections on to it.
        let frontend = (met.server.as_ref().and_then(by_spot))
            .or_else(|| sections().find(|(_, section)| section.has_frontend() && is_asked(section)))
            .or_else(|| sections().find(|(_, section)| section.has_frontend()));
        let backend = (met.location.as_ref().and_then(by_spot))
            .or_else(|| frontend.and_then(|(index, section)| behind(tree, index, section)))
            .or_else(|| sections().find(|(_, section)| section.has_backend()));

        let global = tree.of_kind("global");
        let mut way = Way {
            global: global.flat_map(|(_, section)| lines_of(section)).collect(),
            ..Way::default()
        };
        if let Some((index, section)) = frontend {
            way.frontend = section.name().unwrap_or_default().to_owned();
            way.client_side = lines(tree, index);
            let bind = binds(section).find(|bind| listens(bind, &asked));
            let bind = bind.or_else(|| binds(section).next());
            way.bind = bind.map_or_else(String::new, line);
            // An address's own counts in the place of its section's.
            let own = way.bind.split_once(" backlog ");
            let own = own.and_then(|(_, rest)| rest.split(' ').next());
            let own = own.map(|number| format!("backlog {number}"));
            way.client_side.splice(..0, own);
            // So does what it says of TLS in the place of what `global` says for all.
            let own = bind.into_iter().flat_map(haproxy::as_defaults);
            way.global.splice(..0, own);
        }
        if let Some((index, section)) = backend {
            way.backend = section.name().unwrap_or_default().to_owned();
            way.origin_side = lines(tree, index);
            way.server = server(tree, index);
        }
        way
    }

    /// The lines of a keyword of one or several words, perhaps with `no` before it, that count for a
    /// context. A side that has no use for a keyword has no say in it.
    pub(super) fn lines(&self, context: &str, keyword: &str) -> Vec<&str> {
        let sides: [&[String]; 2] = match context {
            "global" => [&self.global, &[]],
            "frontend" => [&self.client_side, &[]],
            "backend" => [&[], &self.origin_side],
            _ => [
                if is_used_by(keyword, "frontend") {
                    &self.client_side
                } else {
                    &[]
                },
                if is_used_by(keyword, "backend") {
                    &self.origin_side
                } else {
                    &[]
                },
            ],
        };
        let lines = sides.into_iter().flatten().map(String::as_str);
        lines.filter(|line| is_named(line, keyword)).collect()
    }
}

/// The section that a frontend has its requests answered by: itself, the one by default, or else the
/// first that it names.
fn behind<'s, 't>(
    tree: &'s Tree<'t>,
    index: usize,
    frontend: &'s Section<'t>,
) -> Option<(usize, &'s Section<'t>)> {
    if frontend.has_backend() {
        return Some((index, frontend));
    }
    let chain = std::iter::once(frontend).chain(
        tree.defaults_of(index)
            .into_iter()
            .map(|i| &tree.sections[i]),
    );
    let statements: Vec<_> = chain.flat_map(|section| &section.statements).collect();
    let named = |keyword: &str| {
        statements
            .iter()
            .find(|statement| statement.word(0) == keyword)
    };
    let name = named("default_backend")
        .or_else(|| named("use_backend"))?
        .word(1);
    let mut sections = tree.sections.iter().enumerate();
    sections.find(|(_, section)| section.has_backend() && section.name() == Some(name))
}

/// The lines of a section and behind them those of its `defaults`.
fn lines(tree: &Tree<'_>, index: usize) -> Vec<String> {
    let chain = std::iter::once(index).chain(tree.defaults_of(index));
    chain
        .flat_map(|index| lines_of(&tree.sections[index]))
        .collect()
}

/// Its lines, and of those that list options each option's; the later one of two counts.
fn lines_of(section: &Section<'_>) -> impl Iterator<Item = String> {
    let statements = section.statements.iter().rev();
    statements.flat_map(|statement| haproxy::lines(statement).into_iter().rev())
}

/// The first server of a section behind what `default-server` lines say of it.
fn server(tree: &Tree<'_>, index: usize) -> String {
    let section = &tree.sections[index];
    let is_server = |it: &Statement<'_>| matches!(it.word(0), "server" | "server-template");
    let own = section.statements.iter();
    let above: Vec<_> = own.take_while(|statement| !is_server(statement)).collect();
    let server = section.statements.get(above.len());
    let mut chain = tree.defaults_of(index);
    chain.reverse();
    let defaults = chain
        .iter()
        .flat_map(|&index| &tree.sections[index].statements);
    let defaults = defaults
        .chain(above)
        .filter(|statement| statement.word(0) == "default-server");
    let words = defaults.chain(server).flat_map(options_of_server);
    words.collect::<Vec<_>>().join(" ")
}

/// The options of a line that stands for a server or for several, or for what servers have in common.
fn options_of_server(statement: &Statement<'_>) -> Vec<String> {
    let from = match statement.word(0) {
        "default-server" => 1,
        "server-template" => 4,
        _ => 3,
    };
    let words = statement.words.iter().skip(from);
    words.map(|word| word.text.clone().into_owned()).collect()
}

fn binds<'s, 't>(section: &'s Section<'t>) -> impl Iterator<Item = &'s Statement<'t>> {
    section
        .statements
        .iter()
        .filter(|statement| statement.word(0) == "bind")
}

/// Whether one of the addresses of a `bind` line is this one.
fn listens(bind: &Statement<'_>, address: &str) -> bool {
    bind.word(1).split(',').any(|own| own == address)
}

/// Whether a section is the one that a spot names: a copy has other lines, and the same names.
fn is_at(section: &Section<'_>, spot: &Spot) -> bool {
    spot.name == format!("{} {}", section.kind(), section.name().unwrap_or_default())
}

fn line(statement: &Statement<'_>) -> String {
    let words: Vec<&str> = statement.words.iter().map(|word| &*word.text).collect();
    words.join(" ")
}

fn is_named(line: &str, keyword: &str) -> bool {
    let line = line.strip_prefix("no ").unwrap_or(line);
    let rest = line.strip_prefix(keyword);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}
