//! Caddy: found, configured, checked, started and asked.
//!
//! weir writes Caddy's native configuration, one JSON document, and runs `caddy run` in the prefix, so
//! all paths in the document are relative. Caddy is one process with threads. It is asked and reloaded
//! over its administration API, on a unix socket of the prefix; its storage, its home folder and all
//! else that it would keep are below the prefix too.
//!
//! Requests go to the origin server with their target and their Host field as they came. What Caddy adds
//! by itself it adds here too: the `X-Forwarded-` fields and, for clients that name no encoding,
//! `Accept-Encoding: gzip` to requests, `Server` to responses.

mod counters;
mod effective;
mod layout;
mod log;
mod own;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::Signal;
use weir_model::study::{ProxyKind, Settings};
use weir_parameters::Catalog;

use crate::admin;
use crate::configuration::directives;
use crate::installed::{Installed, Marks, output, words};
use crate::{Configuration, Effective, Proxy, RunningProxy, Site, SutError};

const KIND: ProxyKind = ProxyKind::Caddy;

/// Name of the configuration file.
const FILE: &str = "caddy.json";

/// Where Caddy and its libraries keep what they keep, relative to the prefix.
const FOLDERS: [(&str, &str); 3] = [
    ("HOME", "temp"),
    ("XDG_CONFIG_HOME", "temp/config"),
    ("XDG_DATA_HOME", "temp/data"),
];

const MARKS: Marks = Marks {
    kind: KIND,
    names: &["caddy"],
    // `caddy version` says a number and not whose.
    ask: "environ",
    version_of,
};

/// A Caddy that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caddy {
    installed: Installed,
}

impl Caddy {
    /// Looks for Caddy, where it is said to be or else on PATH and in the folders of system programs,
    /// and asks its version.
    ///
    /// # Errors
    /// [`SutError::NotFound`]; or the program is something else.
    pub fn find(executable: Option<&Path>) -> Result<Caddy, SutError> {
        let installed = Installed::find(&MARKS, executable)?;
        Ok(Caddy { installed })
    }

    /// Runs the program in the prefix, as it is run to serve.
    fn ask(&self, configuration: &Configuration, subcommand: &str) -> Result<Output, SutError> {
        let mut command: Command = self.installed.command();
        command
            .arg(subcommand)
            .args(config_arguments(configuration))
            .envs(configuration.environment.iter().cloned())
            .current_dir(configuration.prefix());
        output(command)
    }
}

impl Proxy for Caddy {
    fn installed(&self) -> &Installed {
        &self.installed
    }

    fn write(
        &self,
        prefix: &Path,
        settings: &Settings,
        site: &Site<'_>,
        catalog: &Catalog,
    ) -> Result<Configuration, SutError> {
        if let Some(own) = site.own {
            return own::write(self, prefix, settings, site, own, catalog);
        }
        let laid_out = layout::lay_out(&directives(KIND, settings, catalog)?, site)?;
        let configuration = Configuration {
            environment: folders().chain(laid_out.environment).collect(),
            ..Configuration::prepare(KIND, prefix, FILE, site, None)?
        };
        configuration.write(&format!("{:#}\n", laid_out.document))?;
        Ok(configuration)
    }

    /// `caddy validate`, which loads everything and listens nowhere. Its warnings are the remarks.
    fn check(&self, configuration: &Configuration) -> Result<Vec<String>, SutError> {
        let answer = self.ask(configuration, "validate")?;
        let printed = words(&answer);
        match answer.status.success() {
            true => {
                let warnings = log::warnings(&printed).into_iter();
                Ok(warnings.map(|remark| configuration.told(&remark)).collect())
            }
            false => Err(configuration.refused(&log::without_notices(&printed))),
        }
    }

    fn arguments(&self, configuration: &Configuration) -> Vec<OsString> {
        let mut arguments = vec!["run".into()];
        arguments.extend(config_arguments(configuration));
        arguments
    }

    fn shares_ports(&self, _configuration: &Configuration) -> bool {
        // On all its listeners, so that a reload can open them anew beside the old ones.
        true
    }

    /// It answers with its configuration once all listeners are open, and not before.
    fn is_ready(
        &self,
        configuration: &Configuration,
        _proxy: &RunningProxy,
        _since: Duration,
    ) -> bool {
        effective::document(configuration).is_ok()
    }

    /// What `GET /config/` answers; without a process, the file after `caddy validate` took it.
    fn effective(
        &self,
        configuration: &Configuration,
        proxy: Option<&RunningProxy>,
        catalog: &Catalog,
    ) -> Result<Effective, SutError> {
        let (document, environment) = match proxy {
            Some(proxy) => (
                effective::document(configuration)?,
                effective::environment_of(proxy.master_pid())?,
            ),
            None => {
                self.check(configuration)?;
                let environment = configuration.environment.iter().cloned().collect();
                (effective::written(configuration)?, environment)
            }
        };
        let servers = match configuration.own.is_some() {
            true => own::servers(configuration, &document),
            false => layout::Servers::default(),
        };
        Ok(effective::read(&document, &servers, &environment, catalog))
    }

    fn counters(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        admin::get(configuration, "/metrics").map(|text| counters::parse(&text))
    }

    fn graceful(&self) -> Signal {
        Signal::TERM
    }

    /// `POST /load`. Requests in flight are answered by the old configuration; idle connections of
    /// clients are closed, and those to the origin begin anew. What is in the environment stays.
    fn reload(
        &self,
        configuration: &Configuration,
        _proxy: &mut RunningProxy,
    ) -> Result<(), SutError> {
        self.check(configuration)?;
        let file = configuration.file();
        let text = fs::read_to_string(&file).map_err(SutError::file("read", &file))?;
        admin::request(configuration, "POST", "/load", &text).map(drop)
    }
}

/// What tells Caddy where it may keep something.
fn folders() -> impl Iterator<Item = (String, String)> {
    let owned = |(name, folder): (&str, &str)| (name.to_owned(), folder.to_owned());
    FOLDERS.into_iter().map(owned)
}

/// Relative, as everything in the prefix is to Caddy.
fn config_arguments(configuration: &Configuration) -> [OsString; 2] {
    ["--config".into(), configuration.file.clone().into()]
}

/// `caddy/2.6.2` of what `caddy environ` prints. Debian leaves out the `v` and the checksum that others
/// print.
fn version_of(words: &str) -> Option<String> {
    let mut lines = words.lines();
    let line = lines.find_map(|line| line.strip_prefix("caddy.Version="))?;
    let version = line.split_ascii_whitespace().next()?;
    let version = version.strip_prefix('v').unwrap_or(version);
    Some(format!("caddy/{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_debian_and_of_others_look_alike() {
        let of = |version: &str| version_of(&format!("caddy.HomeDir=/\n{version}\nHOME=/\n"));
        assert_eq!(of("caddy.Version=2.6.2").as_deref(), Some("caddy/2.6.2"));
        let released = "caddy.Version=v2.8.4 h1:q3pe0wpBj1OcHFZ3n/1nl4V4bxBrYoSoab7rL9BMYNk=";
        assert_eq!(of(released).as_deref(), Some("caddy/2.8.4"));
        assert_eq!(of("caddy.Version="), None);
        assert_eq!(of("nginx version: nginx/1.22.1"), None);
    }
}
