//! Defaults of the user's: from the environment and from `weir.toml`.
//!
//! An option that was not typed is put on the command line before it is read, so a default means what the option means and is
//! judged by the same code. First comes what was typed, then the environment, `weir.toml` of the current folder, the
//! user's own `weir.toml`, and the option's own default (docs/config.md).

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

/// Where a default is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// This variable of the environment.
    Environment(String),
    /// This place of a file, from 1.
    File {
        path: String,
        line: usize,
        column: usize,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Environment(name) => f.write_str(name),
            Source::File { path, line, column } => write!(f, "{path}:{line}:{column}"),
        }
    }
}

/// A default as it would be typed, and where it is from. Of a flag: `true` or `false`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) values: Vec<String>,
    pub(crate) source: Source,
}

/// By command, or `None` for all that have the option, and key.
type Layer = BTreeMap<(Option<&'static str>, &'static str), Given>;

/// All defaults of the user's.
#[derive(Debug)]
pub(crate) struct Defaults {
    /// The first one that has an option counts.
    layers: Vec<Layer>,
    /// The files that are looked for, and whether they are there.
    pub(crate) files: Vec<(PathBuf, bool)>,
}

impl Defaults {
    /// Reads the environment and the files.
    ///
    /// # Errors
    /// A value is not one, a key is not known, or a file could have been written by others.
    pub(crate) fn read() -> Result<Defaults, Failure> {
        let mut layers = vec![environment::read(env::vars_os())?];
        let mut files = Vec::new();
        let own = own_file().map(|path| (path, true));
        for (path, is_own) in [(PathBuf::from(FILE), false)].into_iter().chain(own) {
            let layer = file::read(&path, is_own)?;
            files.push((path, layer.is_some()));
            layers.extend(layer);
        }
        Ok(Defaults { layers, files })
    }

    /// The default of a command's option, if it has one of the user's, and the number of its layer. In each layer, that of
    /// the command comes before that of all. A value that only other commands know is not this one's.
    pub(crate) fn of(&self, command: &str, setting: &Setting) -> Option<(usize, &Given)> {
        let layers = self.layers.iter().enumerate();
        let mut given = layers.filter_map(|(number, layer)| {
            let own = found(layer, Some(command), setting.key);
            let given = own.or_else(|| found(layer, None, setting.key))?;
            Some((number, given))
        });
        given.find(|(_, given)| value::fault(setting, command, &given.values).is_none())
    }
}

fn found<'a>(layer: &'a Layer, command: Option<&str>, key: &str) -> Option<&'a Given> {
    let mut all = layer.iter();
    all.find(|((of, name), _)| *of == command && *name == key)
        .map(|(_, given)| given)
}

/// $XDG_CONFIG_HOME/weir/weir.toml, or the same under ~/.config (XDG Base Directory Specification).
fn own_file() -> Option<PathBuf> {
    let set = |name: &str| {
        let value = env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("weir").join(FILE))
}

/// A command line, with the user's defaults for what was not typed.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    pub(crate) words: Vec<OsString>,
    /// The options that were not typed, as they would be (`--rate`, `-R`), and where each is from.
    defaults: Vec<(Vec<String>, Source)>,
}

impl Completed {
    fn typed(words: Vec<OsString>) -> Completed {
        Completed {
            words,
            defaults: Vec::new(),
        }
    }

    /// Where the options are from that a message is about and that nobody has typed; a line each.
    pub(crate) fn sources(&self, message: &str) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let words: Vec<&str> = message.split(|c| !is_word(c)).collect();
        let named = |names: &&(Vec<String>, Source)| {
            let mut all = names.0.iter();
            all.any(|name| words.contains(&&**name))
        };
        let named = self.defaults.iter().filter(named);
        let line = |(names, source): &(Vec<String>, Source)| {
            format!("note: {} was not typed: it is from {source}\n", names[0])
        };
        named.map(line).collect()
    }
}

/// What was typed, with the user's defaults for what was not.
///
/// # Errors
/// As [`Defaults::read`]; only of a command that can have defaults.
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
    if !SETTINGS.iter().any(|one| one.commands.contains(&name)) {
        return Ok(Completed::typed(typed));
    }
    let in_force = words(&Defaults::read()?, command, matches);
    // The program's name, the command's, and then the options.
    let (begin, end) = typed.split_at(2);
    Ok(Completed {
        words: [begin, &in_force.words[..], end].concat(),
        ..in_force
    })
}

/// The defaults in force beside what was typed, as words of the command line.
fn words(defaults: &Defaults, command: &Command, typed: &ArgMatches) -> Completed {
    let arguments = command.get_arguments();
    let mut said: Vec<&Arg> = arguments
        .filter(|arg| was_typed(typed, arg.get_id().as_str()))
        .collect();
    let own = SETTINGS.iter().filter(|setting| {
        setting.commands.contains(&command.get_name()) && !(setting.unless)(typed)
    });
    let mut given: Vec<_> = own
        .filter_map(|setting| {
            let (layer, given) = defaults.of(command.get_name(), setting)?;
            Some((layer, setting, given))
        })
        .collect();
    given.sort_by_key(|(layer, ..)| *layer);
    let mut in_force = Completed::default();
    for (_, setting, given) in given {
        let Some(arg) = argument(command, setting) else {
            continue;
        };
        if said.iter().any(|other| excludes(command, arg, other)) {
            continue;
        }
        let words = value::words(setting, &given.values);
        in_force.words.extend(words.into_iter().map(OsString::from));
        let names = arg.get_long().map(|long| format!("--{long}"));
        let names = names
            .into_iter()
            .chain(arg.get_short().map(|short| format!("-{short}")));
        in_force
            .defaults
            .push((names.collect(), given.source.clone()));
        said.push(arg);
    }
    in_force
}

/// Whether two options are the same or cannot stand beside each other.
fn excludes(command: &Command, one: &Arg, other: &Arg) -> bool {
    let has = |one: &Arg, other: &Arg| {
        let all = command.get_arg_conflicts_with(one);
        all.iter().any(|arg| arg.get_id() == other.get_id())
    };
    one.get_id() == other.get_id() || has(one, other) || has(other, one)
}

#[cfg(test)]
mod tests;
