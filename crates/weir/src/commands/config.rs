//! `weir config`: the default of every option, and its source.

use std::process::ExitCode;

use clap::{Arg, CommandFactory};
use serde::Serialize;
use weir_report::secrets::masked;

use crate::args::{Args, ConfigArgs, TextOrJson};
use crate::config::{Defaults, SETTINGS, Source, argument};
use crate::failure::Failure;
use crate::terminal;

/// Name and version of the JSON output's format.
pub(crate) const FORMAT: &str = "weir-config/1";

/// The defaults in force.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Shown"))]
pub(crate) struct ConfigListing {
    /// `weir-config/1`.
    format: &'static str,
    /// Paths of `weir.toml` that are read here, in order of precedence.
    files: Vec<ShownFile>,
    /// Settings, sorted by command and option.
    settings: Vec<ShownSetting>,
}

/// A `weir.toml`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ShownFile {
    path: String,
    /// True if the file exists.
    is_read: bool,
}

/// The default of a command's option.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ShownSetting {
    command: String,
    /// Option as it is typed: `--NAME`.
    option: String,
    /// Default values as they would be typed, empty if the option has no default. For a flag: true or false.
    values: Vec<String>,
    /// `environment`, `file` or `default`.
    from: &'static str,
    /// The variable, or the file with line and column; absent for the option's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

pub(crate) fn run(args: &ConfigArgs) -> Result<ExitCode, Failure> {
    let shown = list_settings(&Defaults::read()?);
    let text = match args.format {
        TextOrJson::Text => text(&shown),
        TextOrJson::Json => {
            let json = serde_json::to_string_pretty(&shown);
            json.map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))? + "\n"
        }
    };
    terminal::print(&masked(&text))?;
    Ok(ExitCode::SUCCESS)
}

fn list_settings(defaults: &Defaults) -> ConfigListing {
    let all = Args::command();
    let mut settings = Vec::new();
    for command in all.get_subcommands() {
        let name = command.get_name();
        for setting in SETTINGS.iter().filter(|setting| setting.commands.contains(&name)) {
            let Some(option) = argument(command, setting) else {
                continue;
            };
            let default = defaults.of(name, setting).map(|(_, default)| default);
            settings.push(ShownSetting {
                command: name.to_owned(),
                option: format!("--{}", option.get_long().unwrap_or_default()),
                values: default
                    .map_or_else(|| own_default(option), |default| default.values.clone()),
                from: match default.map(|default| &default.source) {
                    None => "default",
                    Some(Source::Environment(_)) => "environment",
                    Some(Source::File { .. }) => "file",
                },
                place: default.map(|default| default.source.to_string()),
            });
        }
    }
    let files = defaults
        .files
        .iter()
        .map(|(path, is_read)| ShownFile { path: path.display().to_string(), is_read: *is_read });
    ConfigListing { format: FORMAT, files: files.collect(), settings }
}

/// Returns the option's own default: clap's, or the `[default: …]` of its help.
fn own_default(option: &Arg) -> Vec<String> {
    let defaults: Vec<String> = option
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if !defaults.is_empty() {
        return defaults;
    }
    let help = option.get_help().map(ToString::to_string);
    let in_help = help
        .as_deref()
        .and_then(|help| help.split_once("[default: "))
        .and_then(|(_, rest)| rest.split_once(']'));
    in_help.map(|(text, _)| text.replace('\n', " ")).into_iter().collect()
}

fn text(shown: &ConfigListing) -> String {
    let mut text = String::new();
    for file in &shown.files {
        let state = if file.is_read { "read" } else { "not there" };
        text += &format!("{}: {state}\n", file.path);
    }
    let width = shown
        .settings
        .iter()
        .filter(|setting| setting.place.is_some())
        .map(|setting| join_values(setting).chars().count())
        .max()
        .unwrap_or_default()
        .max(24);
    let lengths = shown.settings.iter().map(|setting| setting.option.chars().count());
    let options = lengths.max().unwrap_or_default();
    let mut command = "";
    for setting in &shown.settings {
        if setting.command != command {
            command = &setting.command;
            text += &format!("\nweir {command}\n");
        }
        let (option, value) = (&setting.option, join_values(setting));
        text += &match &setting.place {
            Some(place) => format!("  {option:options$}  {value:width$}  {place}\n"),
            // An option's own default may be a sentence, which would not stay in its column.
            None => format!("  {option:options$}  {value}\n"),
        };
    }
    text += "\nValues without a place are the options' own.\n";
    text
}

fn join_values(setting: &ShownSetting) -> String {
    if setting.values.is_empty() { "-".to_owned() } else { setting.values.join(" ") }
}
