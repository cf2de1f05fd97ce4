//! Table of the options that can have defaults set by the user.

use clap::ArgMatches;
use weir_model::quantity::{CpuSet, parse_duration};

/// An option that can have a default in the environment and in files.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Name in files: the option's, with `_` for `-`.
    pub(crate) key: &'static str,
    /// Commands that have the option.
    pub(crate) commands: &'static [&'static str],
    /// Kind of the value, for checks beyond the option's own.
    pub(crate) kind: Kind,
    /// True for options that start programs, reach other hosts or change what is believed: they are never taken from a
    /// `weir.toml` that came with somebody's folder.
    pub(crate) own: bool,
    /// Returns true if the default does not apply with this command line.
    pub(crate) unless: fn(&ArgMatches) -> bool,
}

/// Kind of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On or off.
    Flag,
    /// One value, checked by the option.
    Value,
    /// A time.
    Duration,
    /// Numbers of CPUs.
    Cpus,
    /// Any number of values.
    Values,
}

impl Kind {
    /// Returns an error about the value's meaning; `None` if it is valid.
    pub(crate) fn fault(self, text: &str) -> Option<String> {
        match self {
            Kind::Duration => parse_duration(text).err().map(|error| error.to_string()),
            Kind::Cpus => text.parse::<CpuSet>().err().map(|error| error.to_string()),
            Kind::Flag | Kind::Value | Kind::Values => None,
        }
    }
}

const LOAD: &[&str] = &["load"];
const CAPACITY: &[&str] = &["capacity"];
const RUN: &[&str] = &["run"];
const RUNS: &[&str] = &["run", "capacity"];
const LOADS: &[&str] = &["load", "capacity"];
const ALL: &[&str] = &["run", "capacity", "load"];
const FORMATS: &[&str] = &["load", "capacity", "run", "report", "doctor", "parameters", "config"];

const fn row(key: &'static str, commands: &'static [&'static str], kind: Kind) -> Setting {
    Setting { key, commands, kind, own: false, unless: |_| false }
}

const fn own(key: &'static str, commands: &'static [&'static str], kind: Kind) -> Setting {
    Setting { own: true, ..row(key, commands, kind) }
}

/// Returns a setting of a load, which does not apply if a study describes the load.
const fn of_load(key: &'static str, commands: &'static [&'static str], kind: Kind) -> Setting {
    Setting { unless: is_described, ..row(key, commands, kind) }
}

/// All settings. Options that a user has to agree to each time are missing (`--yes-this-is-mine`,
/// `--allow-host-settings`, `--insecure`), and so is the name of one result (`--output`).
pub(crate) static SETTINGS: [Setting; 28] = [
    row("format", FORMATS, Kind::Value),
    row("quiet", LOADS, Kind::Flag),
    row("out", RUNS, Kind::Value),
    of_load("connections", LOADS, Kind::Value),
    row("threads", LOAD, Kind::Value),
    of_load("cpus", LOADS, Kind::Cpus),
    Setting { unless: has_its_own_length, ..row("duration", LOAD, Kind::Duration) },
    of_load("timeout", LOADS, Kind::Duration),
    row("rate", LOAD, Kind::Value),
    row("ramp_up", LOAD, Kind::Duration),
    row("io", LOAD, Kind::Value),
    row("spin", LOAD, Kind::Value),
    row("latency", LOAD, Kind::Flag),
    of_load("header", LOADS, Kind::Values),
    of_load("objective", CAPACITY, Kind::Value),
    row("confidence", CAPACITY, Kind::Value),
    row("precision", CAPACITY, Kind::Value),
    row("hold", CAPACITY, Kind::Duration),
    row("budget", RUNS, Kind::Duration),
    row("until", RUN, Kind::Value),
    row("scale", RUN, Kind::Value),
    row("check_alone", RUN, Kind::Flag),
    row("samples", RUNS, Kind::Value),
    row("where_time_goes", RUNS, Kind::Flag),
    row("confirm", RUNS, Kind::Flag),
    own("place", RUNS, Kind::Values),
    own("ssh_option", ALL, Kind::Values),
    own("agent", ALL, Kind::Value),
];

/// Returns true if the command line itself determines the length of the load.
fn has_its_own_length(typed: &ArgMatches) -> bool {
    ["requests", "trace", "calibrate"].into_iter().any(|id| was_typed(typed, id))
}

/// Returns true if a study, or the run to resume, describes the load.
fn is_described(typed: &ArgMatches) -> bool {
    if was_typed(typed, "resume") || was_typed(typed, "calibrate") {
        return true;
    }
    // `weir load` takes URLs alone, of which one may be wrong.
    let is_capacity = typed.try_contains_id("objective").is_ok();
    let url = typed.try_get_one::<String>("url").ok().flatten();
    is_capacity && url.is_some_and(|url| !url.contains("://"))
}

/// Returns true if an option was given on the command line.
pub(crate) fn was_typed(typed: &ArgMatches, id: &str) -> bool {
    let is_known = typed.try_contains_id(id).is_ok();
    is_known && typed.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
}
