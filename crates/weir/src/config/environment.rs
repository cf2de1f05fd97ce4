//! Variables of the environment: `WEIR_OPTION`, or `WEIR_COMMAND_OPTION` for one command alone.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::settings::{Kind, SETTINGS};
use super::value::judge;
use super::{Layer, Source, UserDefault};
use crate::failure::Failure;
use crate::terminal;

/// Beginning of all names.
const PREFIX: &str = "WEIR_";

/// Reads the variables. An empty one counts as not set.
pub(super) fn read(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Layer, Failure> {
    let mut layer = BTreeMap::new();
    let texts = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    for (name, value) in texts.filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
    {
        let Some((command, key)) = names().find(|(command, key)| variable(*command, key) == name)
        else {
            warn(&name);
            continue;
        };
        let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
            continue;
        };
        let value = value
            .into_string()
            .map_err(|_| Failure::input(format!("{name}: its value is not UTF-8")))?;
        let values = parse_values(setting.kind, &value)
            .map_err(|wanted| Failure::input(format!("{name}: `{value}` is not {wanted}")))?;
        if let Some(fault) = judge(setting, command, &values) {
            let hint = fault.nearest.map(|name| format!("did you mean `{name}`?"));
            return Err(Failure::input(format!("{name}: {}", fault.message)).maybe_hint(hint));
        }
        let source = Source::Environment(name);
        layer.insert((command, key), UserDefault { values, source });
    }
    Ok(layer)
}

/// Returns all pairs of command and key that a variable can have; `None` means all commands.
fn names() -> impl Iterator<Item = (Option<&'static str>, &'static str)> {
    SETTINGS.iter().flat_map(|setting| {
        let commands = setting.commands.iter().map(|command| Some(*command));
        std::iter::once(None).chain(commands).map(move |command| (command, setting.key))
    })
}

/// Returns the name of the variable for a setting.
pub(super) fn variable(command: Option<&str>, key: &str) -> String {
    let prefix = command.map_or(String::new(), |command| format!("{command}_"));
    format!("{PREFIX}{prefix}{key}").to_ascii_uppercase()
}

fn parse_values(kind: Kind, text: &str) -> Result<Vec<String>, &'static str> {
    match kind {
        Kind::Flag => match &*text.to_ascii_lowercase() {
            "true" | "1" | "yes" | "on" => Ok(vec!["true".to_owned()]),
            "false" | "0" | "no" | "off" => Ok(vec!["false".to_owned()]),
            _ => Err("true or false"),
        },
        Kind::Values => shlex::split(text).ok_or("a list of words, quoted as for a shell"),
        _ => Ok(vec![text.to_owned()]),
    }
}

/// Warns about a variable whose name differs from a setting's by one letter. Other unknown variables may belong to
/// other programs.
fn warn(name: &str) {
    let mut similar = names()
        .map(|(command, key)| variable(command, key))
        .filter(|setting| strsim::damerau_levenshtein(setting, name) == 1);
    if let Some(similar) = similar.next() {
        terminal::tell(&format!("weir: {name} is not a setting; did you mean {similar}?\n"));
    }
}
