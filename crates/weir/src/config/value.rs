//! Checks of settings' values by their options.

use std::error::Error as _;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command, CommandFactory};
use weir_model::nearest::nearest;

use super::settings::{Kind, Setting};
use crate::args::Args;

/// An error in a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) nearest: Option<String>,
}

/// Returns the option of a setting.
pub(crate) fn argument<'a>(command: &'a Command, setting: &Setting) -> Option<&'a Arg> {
    let long = setting.key.replace('_', "-");
    let mut all = command.get_arguments();
    all.find(|arg| arg.get_long() == Some(long.as_str()))
}

/// Returns an error in values that are set for one command, or for all that have the option. In the latter case the
/// values are valid if one of the commands accepts them.
pub(super) fn judge(setting: &Setting, command: Option<&str>, values: &[String]) -> Option<Fault> {
    let mut faults = setting
        .commands
        .iter()
        .copied()
        .filter(|name| command.is_none_or(|of| of == *name))
        .map(|name| fault(setting, name, values));
    let first = faults.next()??;
    if faults.any(|fault| fault.is_none()) { None } else { Some(first) }
}

/// Returns an error in values for a command's option.
pub(super) fn fault(setting: &Setting, command: &str, values: &[String]) -> Option<Fault> {
    if setting.kind == Kind::Flag {
        return None;
    }
    let all = Args::command();
    let option = argument(all.find_subcommand(command)?, setting)?;
    let mut faults = values.iter().filter_map(|value| {
        setting
            .kind
            .fault(value)
            .map(|message| Fault {
                message: format!("`{}`: {message}", setting.key),
                nearest: None,
            })
            .or_else(|| refused(option, value))
    });
    faults.next()
}

/// Returns an error if the option itself does not accept the value.
fn refused(option: &Arg, value: &str) -> Option<Fault> {
    let alone = Arg::new("value")
        .long("value")
        .action(ArgAction::Set)
        .value_parser(option.get_value_parser().clone());
    let command = Command::new("alone").no_binary_name(true).arg(alone);
    let error = command.try_get_matches_from([format!("--value={value}")]).err()?;
    let choices = option.get_possible_values();
    let names: Vec<&str> = choices.iter().map(PossibleValue::get_name).collect();
    Some(if names.is_empty() {
        Fault {
            message: error.source().map_or_else(
                || format!("`{value}` is not a value of it"),
                |source| {
                    let why = source.to_string();
                    if why.starts_with(&format!("`{value}`")) {
                        why
                    } else {
                        format!("`{value}`: {why}")
                    }
                },
            ),
            nearest: None,
        }
    } else {
        Fault {
            message: format!("`{value}` is not one of {}", names.join(", ")),
            nearest: nearest(value, &names).map(str::to_owned),
        }
    })
}

/// Returns the setting as command line words.
pub(super) fn words(setting: &Setting, values: &[String]) -> Vec<String> {
    let option = format!("--{}", setting.key.replace('_', "-"));
    match setting.kind {
        Kind::Flag if values == ["true"] => vec![option],
        Kind::Flag => Vec::new(),
        _ => values.iter().map(|value| format!("{option}={value}")).collect(),
    }
}
