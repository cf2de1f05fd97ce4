//! Caddy's effective configuration: the document that Caddy itself reports, and its environment.

use std::collections::BTreeMap;
use std::{fs, io};

use serde_json::Value;
use weir_parameters::{Catalog, EffectiveFrom, Parameter};
use weir_sut::route_match::RouteMatch;
use weir_sut::{Configuration, Effective, SutError, admin};

use super::KIND;
use super::layout::{ENVIRONMENT, Route};

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
    let document: Value = serde_json::from_str(text)
        .map_err(|error| unreadable(format!("its configuration is no JSON: {error}")))?;
    if document.is_object() {
        Ok(document)
    } else {
        // `null` until the first one is in force.

        Err(unreadable(format!("its configuration is `{document}`")))
    }
}

fn unreadable(what: String) -> SutError {
    SutError::Unreadable { kind: KIND, what }
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
    route_matches: Vec<RouteMatch>,
    environment: &Environment,
    catalog: &Catalog,
) -> Effective {
    let routes = route_matches
        .iter()
        .map(|route_match| (route_match.is_secure, Route::of(document, route_match)));
    let routes: Vec<(bool, Route<'_>)> = routes.collect();
    let text = format!("{document:#}\n");
    Effective::of_routes(text, (catalog, KIND), &routes, is_of_tls, |row, route| {
        level(row, route, environment)
    })
}

/// Returns true if a row is about TLS towards clients, which only a server with TLS has.
fn is_of_tls(row: &Parameter) -> bool {
    matches!(&row.effective, EffectiveFrom::Value { context, .. } if context.name() == "tls_policy")
}

fn level(row: &Parameter, route: &Route<'_>, environment: &Environment) -> Option<String> {
    let value = match &row.effective {
        EffectiveFrom::Value { context, at } if context.name() == ENVIRONMENT => {
            let variable = environment.get(at.trim_start_matches('/'));
            variable.map(|value| Value::from(value.as_str()).to_string())
        }
        EffectiveFrom::Value { context, at } => {
            let section = route.section(context.name());
            if let Some(level) = section.and_then(|section| switched(row, section)) {
                return Some(level);
            }
            let value = section.and_then(|section| section.pointer(at));
            value.map(Value::to_string)
        }
        _ => None,
    };
    row.read_back(value.as_deref()).or(value)
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
    fn anywhere() -> Vec<RouteMatch> {
        vec![RouteMatch::at("127.0.0.1:9".parse().unwrap(), false)]
    }

    /// A load over TLS reads the server with TLS; a pool that is switched off keeps nothing.
    #[test]
    fn the_server_that_a_load_asks_counts() {
        let document = json!({"apps": {"http": {"servers": {
            "a": server_with("127.0.0.1:1", "1s", true), "b": server_with("127.0.0.1:2", "2s", false),
        }}}});
        let catalog = Catalog::builtin();
        let a = RouteMatch::at("127.0.0.1:1".parse().unwrap(), false);
        let b = RouteMatch::at("127.0.0.1:2".parse().unwrap(), true);
        for (route_matches, expected) in [
            (vec![a.clone()], ["1s", "32"]),
            (vec![b.clone()], ["2s", "0"]),
            (vec![a, b], ["1s and 2s", "32 and 0"]),
        ] {
            let levels = read(&document, route_matches, &Environment::new(), &catalog).levels;
            let ids = ["keepalive_timeout", "origin_keepalive"];
            assert_eq!(ids.map(|id| &*levels[id]), expected);
        }
    }

    fn server_with(listen: &str, timeout: &str, enabled: bool) -> Value {
        let transport = json!({"protocol": "http", "keep_alive": {"enabled": enabled}});
        let proxy = json!({"handler": "reverse_proxy", "transport": transport});
        json!({"listen": [listen], "idle_timeout": timeout, "routes": [{"handle": [proxy]}]})
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
