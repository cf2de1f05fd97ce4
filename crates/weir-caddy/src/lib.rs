//! Caddy: finding, configuring, checking and starting it, and reading its state.
//!
//! weir writes Caddy's native configuration, one JSON document, and runs `caddy run` in the prefix, so all paths in the
//! document are relative. Caddy is one process with threads. It is queried and reloaded over its administration API, on
//! a unix socket of the prefix; its storage, its home folder and everything else that it would keep are below the
//! prefix too.
//!
//! Requests go to the origin server with their target and their Host field as they came. Additions that Caddy makes by
//! default stay on: the `X-Forwarded-` fields and, for clients that name no encoding, `Accept-Encoding: gzip` in
//! requests, `Server` in responses.

mod counters;
mod effective;
pub mod language;
mod layout;
mod log;
mod own;
mod request_log;
mod running;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;
use weir_sut::installed::{Installed, ProxyProgram, word_behind};
use weir_sut::proxy::{Started, check};
use weir_sut::{
    Configuration, Effective, Language, LoggedRequest, Proxy, RunningProxy, SutError, Task, admin,
};

const KIND: ProxyKind = ProxyKind::Caddy;

const FILE: &str = "caddy.json";

/// Variables with folders in which Caddy and its libraries keep files, relative to the prefix.
const FOLDERS: [(&str, &str); 3] =
    [("HOME", "temp"), ("XDG_CONFIG_HOME", "temp/config"), ("XDG_DATA_HOME", "temp/data")];

/// Name, version and functions of Caddy.
pub const PROGRAM: ProxyProgram = ProxyProgram {
    kind: KIND,
    names: &["caddy"],
    // `caddy version` says a number and not whose.
    version_argument: "environ",
    version_of,
    install: "apt-get install caddy",
    read_report: None,
    running: &running::RUNNING,
    open: |installed| Ok(Arc::new(Caddy { installed })),
};

/// An installed Caddy.
#[derive(Debug)]
pub(crate) struct Caddy {
    installed: Installed,
}

impl Proxy for Caddy {
    fn installed(&self) -> &Installed {
        &self.installed
    }

    fn language(&self) -> Option<&dyn Language> {
        Some(self)
    }

    fn configure(&self, task: &Task<'_>) -> Result<Configuration, SutError> {
        if let Some(own) = task.site.own {
            return own::write(self, task, own);
        }
        let laid_out = layout::lay_out(&task.directives()?, task.site)?;
        let configuration = Configuration {
            environment: folders().chain(laid_out.environment).collect(),
            ..Configuration::prepare(task, FILE, None)?
        };
        configuration.write(&format!("{:#}\n", laid_out.document))?;
        Ok(configuration)
    }

    /// Returns the arguments of `caddy validate`, which loads everything and listens nowhere.
    fn checking(&self, configuration: &Configuration) -> Vec<OsString> {
        with_file("validate", configuration)
    }

    fn remarks(&self, said: &str) -> Vec<String> {
        log::warnings(said)
    }

    fn refusal(&self, said: &str) -> String {
        log::without_notices(said)
    }

    fn arguments(&self, configuration: &Configuration) -> Vec<OsString> {
        with_file("run", configuration)
    }

    fn shares_ports(&self, _configuration: &Configuration) -> bool {
        // On all its listeners, so that a reload can open them anew beside the old ones.
        true
    }

    /// Returns true once Caddy answers with its configuration, which it does only when all listeners are open.
    fn is_ready(&self, started: &Started<'_>) -> bool {
        effective::document(started.configuration).is_ok()
    }

    fn logged(&self, line: &str) -> Option<LoggedRequest> {
        request_log::parse(line)
    }

    /// Reads the answer to `GET /config/`; without a process, the file after `caddy validate` accepted it.
    fn effective(
        &self,
        configuration: &Configuration,
        proxy: Option<&RunningProxy>,
        catalog: &Catalog,
    ) -> Result<Effective, SutError> {
        let (document, environment) = match proxy {
            Some(proxy) => (
                effective::document(configuration)?,
                effective::environment_of(proxy.master_pid(), configuration)?,
            ),
            None => {
                check(self, configuration)?;
                let environment = configuration.environment.iter().cloned().collect();
                (effective::written(configuration)?, environment)
            }
        };
        Ok(effective::read(&document, configuration.route_matches(), &environment, catalog))
    }

    fn counters(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        admin::get(configuration, "/metrics").map(|text| counters::parse(&text))
    }
}

/// Returns the variables that tell Caddy where it may keep files.
fn folders() -> impl Iterator<Item = (String, String)> {
    FOLDERS.into_iter().map(|(name, folder)| (name.to_owned(), folder.to_owned()))
}

/// Returns the arguments of a subcommand with the configuration file, relative to the prefix.
fn with_file(subcommand: &str, configuration: &Configuration) -> Vec<OsString> {
    let file = configuration.file.clone().into();
    vec![subcommand.into(), "--config".into(), file]
}

/// Returns `caddy/2.6.2` from the output of `caddy environ`. Debian leaves out the `v` and the checksum that others
/// print.
fn version_of(words: &str) -> Option<String> {
    let version = word_behind(words, "caddy.Version=")?;
    Some(format!("caddy/{}", version.strip_prefix('v').unwrap_or(version)))
}
