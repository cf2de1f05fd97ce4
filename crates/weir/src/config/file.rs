//! Reading of `weir.toml`: errors have positions, and a file that others could have written is refused.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weir_load::files::{LARGEST_DESCRIPTION, read_at_most};
use weir_model::nearest::nearest;
use weir_study::{Finding, StudyErrors, utf8};

use super::settings::{Kind, SETTINGS, Setting};
use super::value::judge;
use super::{Layer, Source, UserDefault};
use crate::failure::Failure;
use crate::terminal;

/// Reads a file; `None` if there is none. `is_own` is true for the user's own file, and false for that of a folder.
pub(super) fn read(path: &Path, is_own: bool) -> Result<Option<Layer>, Failure> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    let name = path.display().to_string();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let trusted = weir_files::only_ours_named(folder.unwrap_or(Path::new(".")));
    let real = fs::canonicalize(path)
        .map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
    trusted.and_then(|()| weir_files::only_ours_file(&real)).map_err(|why| {
        Failure::input(format!("{name} is not used: {why}")).hint(
            "let nobody else write it or its folder (chmod go-w), or start weir in another folder",
        )
    })?;
    let bytes = read_at_most(&real, LARGEST_DESCRIPTION)
        .map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
    let refused =
        |errors: StudyErrors| Failure::described(errors.render(terminal::color_on_stderr()));
    let text = utf8(bytes, &name).map_err(refused)?;
    parse(&text, &name, is_own).map(Some).map_err(refused)
}

/// Reads a text; `name` is its name in errors.
pub(super) fn parse(text: &str, name: &str, is_own: bool) -> Result<Layer, StudyErrors> {
    let mut reader = Reader { text, name, is_own, layer: BTreeMap::new(), findings: Vec::new() };
    match DeTable::parse(text) {
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            reader.fault(span, error.message());
        }
        Ok(table) => {
            for (key, value) in table.get_ref() {
                reader.entry(key, value);
            }
        }
    }
    if reader.findings.is_empty() {
        Ok(reader.layer)
    } else {
        Err(StudyErrors::new(name, text, reader.findings))
    }
}

struct Reader<'a> {
    text: &'a str,
    name: &'a str,
    is_own: bool,
    layer: Layer,
    findings: Vec<Finding>,
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

impl Reader<'_> {
    fn fault(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Finding {
        self.findings.push(Finding::new(span, message));
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// Reads a setting of all commands, or the table of one command.
    fn entry(&mut self, key: &Key<'_>, value: &Spanned<DeValue<'_>>) {
        let name = &**key.get_ref();
        let command = SETTINGS
            .iter()
            .flat_map(|setting| setting.commands.iter().copied())
            .find(|command| *command == name);
        match (command, value.get_ref()) {
            (Some(command), DeValue::Table(table)) => {
                for (key, value) in table {
                    self.setting(Some(command), key, value);
                }
            }
            (Some(command), _) => {
                self.fault(value.span(), format!("`{command}` is a table: [{command}]"));
            }
            (None, _) => self.setting(None, key, value),
        }
    }

    fn setting(
        &mut self,
        command: Option<&'static str>,
        key: &Key<'_>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let name = &**key.get_ref();
        let applicable = SETTINGS
            .iter()
            .filter(|setting| command.is_none_or(|of| setting.commands.contains(&of)));
        let Some(setting) = applicable.clone().find(|setting| setting.key == name) else {
            let mut names: Vec<&str> = applicable.map(|setting| setting.key).collect();
            if command.is_none() {
                names.extend(SETTINGS.iter().flat_map(|setting| setting.commands));
            }
            let scope = command.map_or(String::new(), |command| format!(" of `weir {command}`"));
            let finding = self.fault(key.span(), format!("`{name}` is not a setting{scope}"));
            finding.nearest = nearest(name, &names).map(str::to_owned);
            finding.hint("`weir config` lists all settings");
            return;
        };
        if setting.own && !self.is_own {
            let message = format!("`{name}` is not allowed in the weir.toml of a folder");
            self.fault(key.span(), message)
                .hint("it can start programs or reach other hosts: write it in your own weir.toml (`weir config` names it), or on the command line");
            return;
        }
        let Some(values) = self.values(setting, value) else {
            return;
        };
        if let Some(fault) = judge(setting, command, &values) {
            let finding = self.fault(value.span(), fault.message);
            finding.nearest = fault.nearest;
            return;
        }
        let before = &self.text[..key.span().start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let source = Source::File {
            path: self.name.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        };
        let default = UserDefault { values, source };
        self.layer.insert((command, setting.key), default);
    }

    /// Returns a value as it would be typed; `None` after a fault.
    fn values(&mut self, setting: &Setting, value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
        let written = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(_) | DeValue::Float(_) => {
                Some(self.text[value.span()].replace('_', ""))
            }
            _ => None,
        };
        let (found, wanted) = match (setting.kind, value.get_ref()) {
            (Kind::Flag, DeValue::Boolean(on)) => (Some(vec![on.to_string()]), ""),
            (Kind::Flag, _) => (None, "true or false"),
            (Kind::Values, DeValue::Array(all)) => {
                (all.iter().map(written).collect(), "a list of texts")
            }
            (Kind::Values, _) => (None, "a list, such as [\"…\"]"),
            _ => (written(value).map(|text| vec![text]), "a text or a number"),
        };
        if found.is_none() {
            let message = format!("the value of `{}` must be {wanted}", setting.key);
            self.fault(value.span(), message);
        }
        found
    }
}
