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
mod requests;
mod running;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;

use crate::admin;
use crate::installed::{Installed, Marks, word_behind};
use crate::proxy::{Started, check};
use crate::{
    Configuration, Effective, Language, LoggedRequest, Proxy, RunningProxy, SutError, Task,
};

const KIND: ProxyKind = ProxyKind::Caddy;

/// Name of the configuration file.
const FILE: &str = "caddy.json";

/// Where Caddy and its libraries keep what they keep, relative to the prefix.
const FOLDERS: [(&str, &str); 3] = [
    ("HOME", "temp"),
    ("XDG_CONFIG_HOME", "temp/config"),
    ("XDG_DATA_HOME", "temp/data"),
];

pub(crate) const MARKS: Marks = Marks {
    kind: KIND,
    names: &["caddy"],
    // `caddy version` says a number and not whose.
    ask: "environ",
    version_of,
    install: "apt-get install caddy",
    told: None,
    running: &running::RUNNING,
    open: |installed| Ok(Arc::new(Caddy { installed })),
};

/// A Caddy that is installed.
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

    /// `caddy validate` loads everything and listens nowhere.
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

    /// It answers with its configuration once all listeners are open, and not before.
    fn is_ready(&self, started: &Started<'_>) -> bool {
        effective::document(started.configuration).is_ok()
    }

    fn logged(&self, line: &str) -> Option<LoggedRequest> {
        requests::parse(line)
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
                effective::environment_of(proxy.master_pid(), configuration)?,
            ),
            None => {
                check(self, configuration)?;
                let environment = configuration.environment.iter().cloned().collect();
                (effective::written(configuration)?, environment)
            }
        };
        let met = configuration.met();
        Ok(effective::read(&document, met, &environment, catalog))
    }

    fn counters(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        admin::get(configuration, "/metrics").map(|text| counters::parse(&text))
    }
}

/// What tells Caddy where it may keep something.
fn folders() -> impl Iterator<Item = (String, String)> {
    let owned = |(name, folder): (&str, &str)| (name.to_owned(), folder.to_owned());
    FOLDERS.into_iter().map(owned)
}

/// The file is relative, as everything in the prefix is to Caddy.
fn with_file(subcommand: &str, configuration: &Configuration) -> Vec<OsString> {
    let file = configuration.file.clone().into();
    vec![subcommand.into(), "--config".into(), file]
}

/// `caddy/2.6.2` of what `caddy environ` prints. Debian leaves out the `v` and the checksum that others
/// print.
fn version_of(words: &str) -> Option<String> {
    let version = word_behind(words, "caddy.Version=")?;
    Some(format!(
        "caddy/{}",
        version.strip_prefix('v').unwrap_or(version)
    ))
}
