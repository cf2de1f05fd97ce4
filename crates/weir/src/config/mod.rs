//! Defaults set by the user: in the environment and in `weir.toml`.
//!
//! A default for an option that was not typed is added to the command line before this is parsed, so a default means
//! the same as the option and is checked by the same code. The order of precedence is: the command line, the
//! environment, `weir.toml` of the current folder, the user's own `weir.toml`, and the option's own default
//! (docs/config.md).

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, CommandFactory};

use crate::args::Args;
use crate::failure::Failure;

mod environment;
mod file;
mod settings;
mod value;

pub(crate) use settings::{SETTINGS, Setting};
pub(crate) use value::argument;

use settings::was_typed;

/// Name of the file.
const FILE: &str = "weir.toml";

/// Source of a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// This variable of the environment.
    Environment(String),
    /// A position in a file; line and column begin at 1.
    File { path: String, line: usize, column: usize },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Environment(name) => f.write_str(name),
            Source::File { path, line, column } => write!(f, "{path}:{line}:{column}"),
        }
    }
}

/// A default as it would be typed, and its source. A flag has `true` or `false`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserDefault {
    pub(crate) values: Vec<String>,
    pub(crate) source: Source,
}

/// Defaults of one source by command and key; the command `None` means all commands that have the option.
type Layer = BTreeMap<(Option<&'static str>, &'static str), UserDefault>;

/// All defaults set by the user.
#[derive(Debug)]
pub(crate) struct Defaults {
    /// Defaults by source; the first layer that has an option counts.
    layers: Vec<Layer>,
    /// Paths of the files that are read here, each with true if it exists.
    pub(crate) files: Vec<(PathBuf, bool)>,
}

impl Defaults {
    /// Reads the environment and the files.
    ///
    /// # Errors
    /// A value is invalid, a key is unknown, or a file could have been written by others.
    pub(crate) fn read() -> Result<Defaults, Failure> {
        let mut layers = vec![environment::read(env::vars_os())?];
        let mut files = Vec::new();
        let user_file = own_file().map(|path| (path, true));
        for (path, is_own) in [(PathBuf::from(FILE), false)].into_iter().chain(user_file) {
            let layer = file::read(&path, is_own)?;
            files.push((path, layer.is_some()));
            layers.extend(layer);
        }
        Ok(Defaults { layers, files })
    }

    /// Returns the user's default for a command's option, with the number of its layer. In each layer, a default for
    /// the command precedes one for all commands. A value that is only valid for other commands is ignored.
    pub(crate) fn of(&self, command: &str, setting: &Setting) -> Option<(usize, &UserDefault)> {
        let mut defaults = self.layers.iter().enumerate().filter_map(|(number, layer)| {
            let default = find_default(layer, Some(command), setting.key)
                .or_else(|| find_default(layer, None, setting.key))?;
            Some((number, default))
        });
        defaults.find(|(_, default)| value::fault(setting, command, &default.values).is_none())
    }
}

fn find_default<'a>(layer: &'a Layer, command: Option<&str>, key: &str) -> Option<&'a UserDefault> {
    let mut all = layer.iter();
    all.find(|((of, name), _)| *of == command && *name == key).map(|(_, default)| default)
}

/// Path of the user's own file: $XDG_CONFIG_HOME/weir/weir.toml, or the same under ~/.config (XDG Base Directory
/// Specification).
fn own_file() -> Option<PathBuf> {
    let folder = absolute_path("XDG_CONFIG_HOME")
        .or_else(|| Some(absolute_path("HOME")?.join(".config")))?;
    Some(folder.join("weir").join(FILE))
}

fn absolute_path(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A command line, completed by the user's defaults.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    pub(crate) words: Vec<OsString>,
    /// Options added as defaults, each with the ways in which it can be typed (`--rate`, `-R`) and its source.
    defaults: Vec<(Vec<String>, Source)>,
}

impl Completed {
    fn typed(words: Vec<OsString>) -> Completed {
        Completed { words, defaults: Vec::new() }
    }

    /// Returns a line for each option in a message that comes from a default, with its source.
    pub(crate) fn sources(&self, message: &str) -> String {
        let words: Vec<&str> =
            message.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
        self.defaults
            .iter()
            .filter(|(names, _)| names.iter().any(|name| words.contains(&&**name)))
            .map(|(names, source)| {
                format!("note: {} was not typed: it is from {source}\n", names[0])
            })
            .collect()
    }
}

/// Completes the command line with the user's defaults for options that were not typed.
///
/// # Errors
/// Same as [`Defaults::read`], but only for a command that can have defaults.
pub(crate) fn complete(typed: Vec<OsString>) -> Result<Completed, Failure> {
    let all = Args::command();
    // What is wrong with it is told when all of it is read.
    let matches = all.clone().ignore_errors(true);
    let Ok(matches) = matches.try_get_matches_from(&typed) else {
        return Ok(Completed::typed(typed));
    };
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(Completed::typed(typed));
    };
    let Some(command) = all.find_subcommand(name) else {
        return Ok(Completed::typed(typed));
    };
    if !SETTINGS.iter().any(|setting| setting.commands.contains(&name)) {
        return Ok(Completed::typed(typed));
    }
    let in_force = words(&Defaults::read()?, command, matches);
    // The program's name, the command's, and then the options.
    let (begin, end) = typed.split_at(2);
    Ok(Completed { words: [begin, &in_force.words[..], end].concat(), ..in_force })
}

/// Returns the command line words for the defaults that apply in addition to the typed options.
fn words(defaults: &Defaults, command: &Command, typed: &ArgMatches) -> Completed {
    let arguments = command.get_arguments();
    let mut in_effect: Vec<&Arg> =
        arguments.filter(|arg| was_typed(typed, arg.get_id().as_str())).collect();
    let mut applicable: Vec<_> = SETTINGS
        .iter()
        .filter(|setting| {
            setting.commands.contains(&command.get_name()) && !(setting.unless)(typed)
        })
        .filter_map(|setting| {
            let (layer, default) = defaults.of(command.get_name(), setting)?;
            Some((layer, setting, default))
        })
        .collect();
    applicable.sort_by_key(|(layer, ..)| *layer);
    let mut in_force = Completed::default();
    for (_, setting, default) in applicable {
        let Some(arg) = argument(command, setting) else {
            continue;
        };
        if in_effect.iter().any(|other| excludes(command, arg, other)) {
            continue;
        }
        let words = value::words(setting, &default.values);
        in_force.words.extend(words.into_iter().map(OsString::from));
        let names = arg
            .get_long()
            .map(|long| format!("--{long}"))
            .into_iter()
            .chain(arg.get_short().map(|short| format!("-{short}")));
        in_force.defaults.push((names.collect(), default.source.clone()));
        in_effect.push(arg);
    }
    in_force
}

/// Returns true if two options are the same or exclude each other.
fn excludes(command: &Command, one: &Arg, other: &Arg) -> bool {
    one.get_id() == other.get_id()
        || declares_conflict(command, one, other)
        || declares_conflict(command, other, one)
}

fn declares_conflict(command: &Command, one: &Arg, other: &Arg) -> bool {
    command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
}

#[cfg(test)]
mod tests;
