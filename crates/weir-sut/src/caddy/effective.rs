//! What Caddy is really running with: its document, as it gives it out itself, and its environment.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use serde_json::Value;
use weir_parameters::{Catalog, EffectiveFrom, Parameter};

use super::KIND;
use super::layout::{ENVIRONMENT, Servers, section};
use crate::{Configuration, Effective, SutError, admin};

/// Variables of a process by name.
pub(super) type Environment = BTreeMap<String, String>;

/// The document that is in force.
pub(super) fn document(configuration: &Configuration) -> Result<Value, SutError> {
    parse(&admin::get(configuration, "/config/")?)
}

/// The document in the file.
pub(super) fn written(configuration: &Configuration) -> Result<Value, SutError> {
    let file = configuration.file();
    parse(&fs::read_to_string(&file).map_err(SutError::file("read", file))?)
}

fn parse(text: &str) -> Result<Value, SutError> {
    let unreadable = |what: String| SutError::Unreadable { kind: KIND, what };
    let document: Value = serde_json::from_str(text)
        .map_err(|error| unreadable(format!("its configuration is no JSON: {error}")))?;
    match document.is_object() {
        true => Ok(document),
        // `null` until the first one is in force.
        false => Err(unreadable(format!("its configuration is `{document}`"))),
    }
}

/// The variables that a process was started with; where its program has capabilities of its own and so
/// does not show them, those that it was given.
pub(super) fn environment_of(
    pid: u32,
    configuration: &Configuration,
) -> Result<Environment, SutError> {
    let path = format!("/proc/{pid}/environ");
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(configuration.environment.iter().cloned().collect());
        }
        bytes => bytes.map_err(SutError::file("read", &path))?,
    };
    let text = String::from_utf8_lossy(&bytes);
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(pairs.collect())
}

/// Reads the levels of all parameters.
pub(super) fn read(
    document: &Value,
    servers: &Servers,
    environment: &Environment,
    catalog: &Catalog,
) -> Effective {
    let text = format!("{document:#}\n");
    let level = |row: &Parameter| level(row, document, servers, environment);
    Effective::of(text, (catalog, KIND), level)
}

fn level(
    row: &Parameter,
    document: &Value,
    servers: &Servers,
    environment: &Environment,
) -> Option<String> {
    let found = match &row.effective {
        EffectiveFrom::Value { context, at } if context.name() == ENVIRONMENT => {
            let variable = environment.get(at.trim_start_matches('/'));
            variable.map(|value| Value::from(value.as_str()).to_string())
        }
        EffectiveFrom::Value { context, at } => section(document, context.name(), servers)
            .and_then(|section| section.pointer(at))
            .map(Value::to_string),
        _ => None,
    };
    row.read_back(found.as_deref()).or(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_there_is_the_default_and_what_no_level_leads_to_stands_as_it_is() {
        let catalog = Catalog::builtin();
        let nothing = read(
            &json!({}),
            &Servers::default(),
            &Environment::new(),
            &catalog,
        );
        assert_eq!(nothing.levels, catalog.defaults(KIND));

        let server = json!({"idle_timeout": "1m30s", "protocols": ["h2c"], "read_timeout": "5s"});
        let document = json!({"apps": {"http": {"servers": {"site": server}}}});
        let environment = Environment::from([("GOGC".to_owned(), "400".to_owned())]);
        let levels = read(&document, &Servers::default(), &environment, &catalog).levels;
        assert_eq!(levels["protocols"], "[\"h2c\"]");
        assert_eq!(levels["keepalive_timeout"], "\"1m30s\"");
        assert_eq!(levels["read_timeout"], "5s");
        assert_eq!(levels["gogc"], "400");
    }

    #[test]
    fn an_answer_before_the_first_configuration_is_none() {
        assert!(parse("null\n").is_err());
        assert!(parse("{}").is_ok());
    }
}
