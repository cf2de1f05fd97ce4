//! Sections on the way of a request, with the statements of theirs that count for it.

use super::conditions::Conditions;
use super::sections::{Section, Statement};
use super::sides::is_in_order;

/// A section that a request meets or may meet, and its statements that count for it.
pub(super) struct Step<'s, 't> {
    pub(super) section: usize,
    pub(super) met: Vec<(&'s Section<'t>, &'s Statement<'t>)>,
    /// The server that `use-server` surely names.
    pub(super) server: Option<&'s str>,
    /// The request goes on from there, to another section or to a server.
    pub(super) is_left: bool,
}

impl Step<'_, '_> {
    /// Returns true if a statement counts that begins with these words.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.met
            .iter()
            .any(|(_, statement)| statement.begins_with(words))
    }
}

/// The statements of a section that count for a request.
pub(super) fn step<'s, 't>(
    section: usize,
    conditions: &Conditions<'s, 't>,
    is_left: bool,
) -> Step<'s, 't> {
    let sections = conditions.sections.iter();
    let all = sections.flat_map(|section| section.statements.iter().map(move |it| (*section, it)));
    let met = all.filter(|(_, statement)| match is_in_order(statement) {
        true => conditions
            .met
            .iter()
            .any(|it| std::ptr::eq(*it, *statement)),
        false => conditions.holds(statement) != Some(false),
    });
    let met: Vec<(&Section<'_>, &Statement<'_>)> = met.collect();
    let use_server = met.iter().find(|(_, it)| it.word(0) == "use-server");
    let use_server = use_server.filter(|(_, rule)| conditions.holds(rule) == Some(true));
    Step {
        section,
        server: use_server.map(|(_, rule)| rule.word(1)),
        met,
        is_left,
    }
}
