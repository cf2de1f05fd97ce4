//! Sections on the way of a request, with their statements that apply to it.

use super::conditions::Conditions;
use super::sections::{Section, Statement};
use super::sides::is_in_order;

/// A section that a request reaches or may reach, with its statements that apply to the request.
pub(super) struct Step<'s, 't> {
    pub(super) section: usize,
    pub(super) met: Vec<(&'s Section<'t>, &'s Statement<'t>)>,
    /// Server that `use-server` certainly names.
    pub(super) server: Option<&'s str>,
    /// True if the request goes on from this section, to another section or to a server.
    pub(super) is_left: bool,
}

impl Step<'_, '_> {
    /// Returns true if a statement that begins with these words applies.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.met.iter().any(|(_, statement)| statement.begins_with(words))
    }
}

/// Collects the statements of a section that apply to a request.
pub(super) fn step<'s, 't>(
    section: usize,
    conditions: &Conditions<'s, 't>,
    is_left: bool,
) -> Step<'s, 't> {
    let statements: Vec<(&Section<'_>, &Statement<'_>)> = conditions
        .sections
        .iter()
        .flat_map(|section| section.statements.iter().map(move |it| (*section, it)))
        .filter(|(_, statement)| {
            if is_in_order(statement) {
                conditions.met.iter().any(|it| std::ptr::eq(*it, *statement))
            } else {
                conditions.holds(statement) != Some(false)
            }
        })
        .collect();
    let use_server = statements
        .iter()
        .find(|(_, it)| it.word(0) == "use-server")
        .filter(|(_, rule)| conditions.holds(rule) == Some(true));
    Step { section, server: use_server.map(|(_, rule)| rule.word(1)), met: statements, is_left }
}
