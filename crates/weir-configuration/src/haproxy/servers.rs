//! Servers of a section, each with the options that `default-server` lines above it give.

use super::options::options;
use super::sections::{Section, Statement};

/// A `server` or `server-template` line with what is in force for it.
pub(super) struct Server<'s, 't> {
    pub(super) section: &'s Section<'t>,
    pub(super) line: &'s Statement<'t>,
    pub(super) is_disabled: bool,
    pub(super) is_backup: bool,
    pub(super) is_tls: bool,
    pub(super) weight: &'s str,
}

/// Collects the servers of a section in front of its `defaults`.
pub(super) fn servers<'s, 't>(chain: &[&'s Section<'t>]) -> Vec<Server<'s, 't>> {
    let mut usual = Vec::new();
    let mut servers = Vec::new();
    for section in chain.iter().rev().copied() {
        for line in &section.statements {
            match line.word(0) {
                "default-server" => usual.push(line),
                "server" | "server-template" => {
                    servers.push(server(section, line, &usual));
                }
                _ => {}
            }
        }
    }
    servers
}

fn server<'s, 't>(
    section: &'s Section<'t>,
    line: &'s Statement<'t>,
    usual: &[&'s Statement<'t>],
) -> Server<'s, 't> {
    let mut server = Server {
        section,
        line,
        is_disabled: false,
        is_backup: false,
        is_tls: false,
        weight: "1",
    };
    for line in usual.iter().copied().chain([line]) {
        for option in options(line) {
            match line.word(option.start) {
                "disabled" => server.is_disabled = true,
                "enabled" => server.is_disabled = false,
                "backup" => server.is_backup = true,
                "no-backup" => server.is_backup = false,
                "ssl" => server.is_tls = true,
                "no-ssl" => server.is_tls = false,
                "weight" => server.weight = line.word(option.start + 1),
                _ => {}
            }
        }
    }
    server
}

impl Server<'_, '_> {
    /// The address as the line has it.
    pub(super) fn address(&self) -> &str {
        self.line.word(if self.is_template() { 3 } else { 2 })
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
        match (first.parse::<u64>(), last.parse::<u64>()) {
            (Ok(first), Ok(last)) => last.saturating_sub(first) + 1,
            _ => 1,
        }
    }
}
