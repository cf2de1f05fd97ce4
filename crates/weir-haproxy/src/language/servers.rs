//! Servers of a section, each with the options from the `default-server` lines above it.

use std::net::IpAddr;

use super::options::options;
use super::sections::{Section, Statement};

/// A `server` or `server-template` line, with the `default-server` lines that it takes options from.
pub(super) struct Server<'s, 't> {
    pub(super) section: &'s Section<'t>,
    pub(super) line: &'s Statement<'t>,
    usual: Vec<&'s Statement<'t>>,
}

/// Returns the servers of a section that are neither disabled nor without weight. `chain` is the section, followed by
/// its `defaults`.
pub(super) fn servers<'s, 't>(chain: &[&'s Section<'t>]) -> Vec<Server<'s, 't>> {
    let (mut usual, mut servers) = (Vec::new(), Vec::new());
    for section in chain.iter().rev().copied() {
        for line in &section.statements {
            match line.word(0) {
                "default-server" => usual.push(line),
                "server" | "server-template" => {
                    servers.push(Server { section, line, usual: usual.clone() });
                }
                _ => {}
            }
        }
    }
    servers.retain(|server| !server.is("disabled", "enabled") && server.weight() != "0");
    servers
}

impl<'s> Server<'s, '_> {
    /// Returns true if the option `on` is in force, and not taken back by `off`.
    pub(super) fn is(&self, on: &str, off: &str) -> bool {
        let last = self.options().filter(|(name, _)| [on, off].contains(name)).last();
        last.is_some_and(|(name, _)| name == on)
    }

    pub(super) fn weight(&self) -> &'s str {
        self.options()
            .filter(|(name, _)| *name == "weight")
            .last()
            .map_or("1", |(_, weight)| weight)
    }

    /// Returns all options with their arguments; the last one of a name counts.
    fn options(&self) -> impl Iterator<Item = (&'s str, &'s str)> {
        self.usual.iter().copied().chain([self.line]).flat_map(|line| {
            options(line)
                .into_iter()
                .map(move |option| (line.word(option.start), line.word(option.start + 1)))
        })
    }

    /// Returns the address as the line has it.
    pub(super) fn address(&self) -> &str {
        self.line.word(if self.is_template() { 3 } else { 2 })
    }

    /// Returns true if the address is a name that has to be looked up.
    pub(super) fn has_name(&self) -> bool {
        let address = self.address();
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        !is_address && !address.starts_with('/') && !address.contains('@')
    }

    fn is_template(&self) -> bool {
        self.line.word(0) == "server-template"
    }

    /// Returns the number of servers that the line stands for: several for a `server-template`, by a number or a range.
    pub(super) fn count(&self) -> u64 {
        if !self.is_template() {
            return 1;
        }
        let number = self.line.word(2);
        let (first, last) = number.split_once('-').unwrap_or(("1", number));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) => u64::from(last.saturating_sub(first)) + 1,
            _ => 1,
        }
    }
}
