//! Servers of a section, each with the options that `default-server` lines above it give.

use std::net::IpAddr;

use super::options::options;
use super::sections::{Section, Statement};

/// A `server` or `server-template` line, behind the `default-server` lines that it takes options from.
pub(super) struct Server<'s, 't> {
    pub(super) section: &'s Section<'t>,
    pub(super) line: &'s Statement<'t>,
    usual: Vec<&'s Statement<'t>>,
}

/// Collects the servers of a section in front of its `defaults` that are neither disabled nor without weight.
pub(super) fn servers<'s, 't>(chain: &[&'s Section<'t>]) -> Vec<Server<'s, 't>> {
    let (mut usual, mut servers) = (Vec::new(), Vec::new());
    for section in chain.iter().rev().copied() {
        for line in &section.statements {
            match line.word(0) {
                "default-server" => usual.push(line),
                "server" | "server-template" => servers.push(Server {
                    section,
                    line,
                    usual: usual.clone(),
                }),
                _ => {}
            }
        }
    }
    servers.retain(|server| !server.is("disabled", "enabled") && server.weight() != "0");
    servers
}

impl<'s> Server<'s, '_> {
    /// Tells whether an option is in force that another one takes back.
    pub(super) fn is(&self, on: &str, off: &str) -> bool {
        let last = self
            .options()
            .filter(|(name, _)| [on, off].contains(name))
            .last();
        last.is_some_and(|(name, _)| name == on)
    }

    pub(super) fn weight(&self) -> &'s str {
        let weights = self.options().filter(|(name, _)| *name == "weight");
        weights.last().map_or("1", |(_, weight)| weight)
    }

    /// Options with the words behind them; the last of a kind counts.
    fn options(&self) -> impl Iterator<Item = (&'s str, &'s str)> {
        let lines = self.usual.iter().copied().chain([self.line]);
        lines.flat_map(|line| {
            let options = options(line).into_iter();
            options.map(move |option| (line.word(option.start), line.word(option.start + 1)))
        })
    }

    /// The address as the line has it.
    pub(super) fn address(&self) -> &str {
        self.line.word(if self.is_template() { 3 } else { 2 })
    }

    /// Returns true if the address is one that has to be looked up.
    pub(super) fn has_name(&self) -> bool {
        let address = self.address();
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        !is_address && !address.starts_with('/') && !address.contains('@')
    }

    fn is_template(&self) -> bool {
        self.line.word(0) == "server-template"
    }

    /// Servers that the line stands for: several for a `server-template`, by a number or a range.
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
