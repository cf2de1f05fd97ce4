//! Caddy's effective configuration: the document that Caddy itself reports, and its environment.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use serde_json::Value;
use weir_parameters::{Catalog, EffectiveFrom, Parameter};

use super::KIND;
use super::layout::{ENVIRONMENT, Way};
use crate::met::Met;
use crate::{Configuration, Effective, SutError, admin};

/// Environment variables of a process by name.
pub(super) type Environment = BTreeMap<String, String>;

/// Reads the document that is in force.
pub(super) fn document(configuration: &Configuration) -> Result<Value, SutError> {
    parse(&admin::get(configuration, "/config/")?)
}

/// Reads the document in the file.
pub(super) fn written(configuration: &Configuration) -> Result<Value, SutError> {
    let file = configuration.file();
    parse(&fs::read_to_string(&file).map_err(SutError::file("read", file))?)
}

fn parse(text: &str) -> Result<Value, SutError> {
    let unreadable = |what: String| SutError::Unreadable { kind: KIND, what };
    let document: Value = serde_json::from_str(text)
        .map_err(|error| unreadable(format!("its configuration is no JSON: {error}")))?;
    if document.is_object() {
        Ok(document)
    } else {
        // `null` until the first one is in force.

        Err(unreadable(format!("its configuration is `{document}`")))
    }
}

/// Returns the variables that a process was started with, or those that weir gave it if its program has capabilities of
/// its own and so does not show them.
pub(super) fn environment_of(
    pid: u32,
    configuration: &Configuration,
) -> Result<Environment, SutError> {
    match variables(pid) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(configuration.environment.iter().cloned().collect())
        }
        variables => variables.map_err(SutError::file("read", format!("/proc/{pid}/environ"))),
    }
}

/// Reads the variables that a process was started with (proc_pid_environ(5)).
pub(super) fn variables(pid: u32) -> io::Result<Environment> {
    let bytes = fs::read(format!("/proc/{pid}/environ"))?;
    let text = String::from_utf8_lossy(&bytes);
    let pairs = text
        .split('\0')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(pairs.collect())
}

/// Reads the levels of all parameters for the ways that loads take.
pub(super) fn read(
    document: &Value,
    met: Vec<Met>,
    environment: &Environment,
    catalog: &Catalog,
) -> Effective {
    let ways = met.iter().map(|met| (met.is_secure, Way::of(document, met)));
    let ways: Vec<(bool, Way<'_>)> = ways.collect();
    let text = format!("{document:#}\n");
    Effective::of_ways(text, (catalog, KIND), &ways, is_of_tls, |row, way| {
        level(row, way, environment)
    })
}

/// Returns true if a row is about TLS towards clients, which only a server with TLS has.
fn is_of_tls(row: &Parameter) -> bool {
    matches!(&row.effective, EffectiveFrom::Value { context, .. } if context.name() == "tls_policy")
}

fn level(row: &Parameter, way: &Way<'_>, environment: &Environment) -> Option<String> {
    let found = match &row.effective {
        EffectiveFrom::Value { context, at } if context.name() == ENVIRONMENT => {
            let variable = environment.get(at.trim_start_matches('/'));
            variable.map(|value| Value::from(value.as_str()).to_string())
        }
        EffectiveFrom::Value { context, at } => {
            let section = way.section(context.name());
            if let Some(level) = section.and_then(|section| switched(row, section)) {
                return Some(level);
            }
            let value = section.and_then(|section| section.pointer(at));
            value.map(Value::to_string)
        }
        _ => None,
    };
    row.read_back(found.as_deref()).or(found)
}

/// Returns the level that a row has through a value other than its own: one that the row writes beside its own at this
/// level only, such as `enabled: false` of kept connections.
fn switched(row: &Parameter, section: &Value) -> Option<String> {
    let EffectiveFrom::Value { context, at } = &row.effective else {
        return None;
    };
    let mut levels = row
        .writes
        .iter()
        .filter(|write| {
            write.context == *context && write.at.as_ref() != Some(at) && write.text == "false"
        })
        .filter_map(|write| {
            let [level] = &write.only[..] else {
                return None;
            };
            let value = section.pointer(write.at.as_deref()?)?;
            (*value == Value::Bool(false)).then(|| level.clone())
        });
    levels.next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the way to one listener: the one in clear with weir's name.
    fn anywhere() -> Vec<Met> {
        vec![Met::at("127.0.0.1:9".parse().unwrap(), false)]
    }

    /// A load over TLS reads the server with TLS; a pool that is switched off keeps nothing.
    #[test]
    fn the_server_that_a_load_asks_counts() {
        let server = |listen: &str, timeout: &str, enabled: bool| {
            let transport = json!({"protocol": "http", "keep_alive": {"enabled": enabled}});
            let proxy = json!({"handler": "reverse_proxy", "transport": transport});
            json!({"listen": [listen], "idle_timeout": timeout, "routes": [{"handle": [proxy]}]})
        };
        let document = json!({"apps": {"http": {"servers": {
            "a": server("127.0.0.1:1", "1s", true), "b": server("127.0.0.1:2", "2s", false),
        }}}});
        let catalog = Catalog::builtin();
        let met = |at: &str, is_secure| Met::at(at.parse().unwrap(), is_secure);
        let (a, b) = (met("127.0.0.1:1", false), met("127.0.0.1:2", true));
        for (met, expected) in [
            (vec![a.clone()], ["1s", "32"]),
            (vec![b.clone()], ["2s", "0"]),
            (vec![a, b], ["1s and 2s", "32 and 0"]),
        ] {
            let levels = read(&document, met, &Environment::new(), &catalog).levels;
            let ids = ["keepalive_timeout", "origin_keepalive"];
            assert_eq!(ids.map(|id| &*levels[id]), expected);
        }
    }

    #[test]
    fn what_is_not_there_is_the_default_and_what_no_level_leads_to_stands_as_it_is() {
        let catalog = Catalog::builtin();
        let nothing = read(&json!({}), anywhere(), &Environment::new(), &catalog);
        assert_eq!(nothing.levels, catalog.defaults(KIND));

        let server = json!({"idle_timeout": "1w", "protocols": ["h2c"], "read_timeout": "5s"});
        let document = json!({"apps": {"http": {"servers": {"site": server}}}});
        let environment = Environment::from([("GOGC".to_owned(), "400".to_owned())]);
        let levels = read(&document, anywhere(), &environment, &catalog).levels;
        assert_eq!(levels["protocols"], "[\"h2c\"]");
        assert_eq!(levels["keepalive_timeout"], "\"1w\"");
        assert_eq!(levels["read_timeout"], "5s");
        assert_eq!(levels["gogc"], "400");
    }

    #[test]
    fn an_answer_before_the_first_configuration_is_none() {
        assert!(parse("null\n").is_err());
        assert!(parse("{}").is_ok());
    }
}
