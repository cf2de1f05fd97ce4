//! Values of settings, as the options judge them.

use std::error::Error as _;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command, CommandFactory};
use weir_model::nearest::nearest;

use super::settings::{Kind, Setting};
use crate::args::Args;

/// What is wrong with a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) nearest: Option<String>,
}

/// The option of a setting.
pub(crate) fn argument<'a>(command: &'a Command, setting: &Setting) -> Option<&'a Arg> {
    let long = setting.key.replace('_', "-");
    let mut all = command.get_arguments();
    all.find(|arg| arg.get_long() == Some(long.as_str()))
}

/// What is wrong with values that are said for one command, or for all that have the option: then it is enough that one
/// of them knows the value.
pub(super) fn judge(setting: &Setting, command: Option<&str>, values: &[String]) -> Option<Fault> {
    let all = setting.commands.iter().copied();
    let mut faults = all
        .filter(|name| command.is_none_or(|of| of == *name))
        .map(|name| fault(setting, name, values));
    let first = faults.next()??;
    match faults.any(|fault| fault.is_none()) {
        true => None,
        false => Some(first),
    }
}

/// What is wrong with values of a command's option.
pub(super) fn fault(setting: &Setting, command: &str, values: &[String]) -> Option<Fault> {
    if setting.kind == Kind::Flag {
        return None;
    }
    let all = Args::command();
    let option = argument(all.find_subcommand(command)?, setting)?;
    let mut faults = values.iter().filter_map(|value| {
        let meaning = setting.kind.fault(value).map(|message| Fault {
            message: format!("`{}`: {message}", setting.key),
            nearest: None,
        });
        meaning.or_else(|| refused(option, value))
    });
    faults.next()
}

/// Why the option alone does not take the value.
fn refused(option: &Arg, value: &str) -> Option<Fault> {
    let alone = Arg::new("value")
        .long("value")
        .action(ArgAction::Set)
        .value_parser(option.get_value_parser().clone());
    let command = Command::new("alone").no_binary_name(true).arg(alone);
    let error = command
        .try_get_matches_from([format!("--value={value}")])
        .err()?;
    let choices = option.get_possible_values();
    let names: Vec<&str> = choices.iter().map(PossibleValue::get_name).collect();
    Some(match names.is_empty() {
        true => Fault {
            message: error.source().map_or_else(
                || format!("`{value}` is not a value of it"),
                |why| {
                    let why = why.to_string();
                    if why.starts_with(&format!("`{value}`")) {
                        why
                    } else {
                        format!("`{value}`: {why}")
                    }
                },
            ),
            nearest: None,
        },
        false => Fault {
            message: format!("`{value}` is not one of {}", names.join(", ")),
            nearest: nearest(value, &names).map(str::to_owned),
        },
    })
}

/// The setting as it would be typed.
pub(super) fn words(setting: &Setting, values: &[String]) -> Vec<String> {
    let option = format!("--{}", setting.key.replace('_', "-"));
    match setting.kind {
        Kind::Flag if values == ["true"] => vec![option],
        Kind::Flag => Vec::new(),
        _ => values
            .iter()
            .map(|value| format!("{option}={value}"))
            .collect(),
    }
}
