//! Apache httpd: finding, configuring, checking and starting it, and reading its state.
//!
//! Paths in the configuration are relative to the prefix (`httpd -d`), including the folder of modules: a link in the
//! prefix leads to it, as installations of httpd have it.
//!
//! httpd has no administration socket. It reports about itself (mod_status, mod_info) over HTTP, to this host alone, at
//! the listener in clear, as in Debian's package: a separate listener would change how connections are accepted. See
//! [`status`].

mod configuration;
mod counters;
mod effective;
mod modules;
mod request_log;
mod running;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::{fs, io};

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;
use weir_sut::installed::{Installed, ProxyProgram, word_behind};
use weir_sut::proxy::Started;
use weir_sut::{Configuration, Effective, LoggedRequest, Proxy, RunningProxy, SutError, Task};

use self::modules::Modules;

/// Log message of httpd once its processes are started.
const STARTED: &str = "resuming normal operations";

/// Name, version and functions of Apache httpd.
pub const PROGRAM: ProxyProgram = ProxyProgram {
    kind: ProxyKind::Httpd,
    // Debian's name first: on PATH, `httpd` may be another program's.
    names: &["apache2", "httpd"],
    version_argument: "-v",
    version_of,
    install: "apt-get install apache2-bin",
    read_report: None,
    running: &running::RUNNING,
    open: |installed| {
        let modules = Modules::of(&installed.program)?;
        Ok(Arc::new(Httpd { installed, modules }))
    },
};

/// An installed httpd.
#[derive(Debug)]
pub(crate) struct Httpd {
    installed: Installed,
    modules: Modules,
}

impl Proxy for Httpd {
    fn installed(&self) -> &Installed {
        &self.installed
    }

    fn configure(&self, task: &Task<'_>) -> Result<Configuration, SutError> {
        configuration::write(self, task)
    }

    fn checking(&self, configuration: &Configuration) -> Vec<OsString> {
        with(configuration, &["-t"])
    }

    fn remarks(&self, said: &str) -> Vec<String> {
        said.lines()
            .filter(|line| !line.trim().is_empty() && *line != "Syntax OK")
            .map(str::to_owned)
            .collect()
    }

    fn arguments(&self, configuration: &Configuration) -> Vec<OsString> {
        with(configuration, &["-D", "FOREGROUND"])
    }

    fn shares_ports(&self, configuration: &Configuration) -> bool {
        // What cannot be read is told when it is checked.
        configuration::shares_ports(configuration).unwrap_or(false)
    }

    /// Removes an earlier log: readiness is read from the log ([`Httpd::is_ready`]), and an old one would show it too
    /// soon.
    fn before_start(&self, configuration: &Configuration) -> Result<(), SutError> {
        let file = configuration.prefix().join(configuration::ERROR_LOG);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SutError::file("remove", file)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns false for lines that only print that httpd failed; the reason is in the log.
    fn is_telling(&self, line: &str) -> bool {
        !line.contains("Configuration Failed") && !line.starts_with("AH00558")
    }

    fn logs_why(&self) -> bool {
        true
    }

    fn is_ready(&self, started: &Started<'_>) -> bool {
        let log = weir_files::read(&started.configuration.error_log()).unwrap_or_default();
        String::from_utf8_lossy(&log).contains(STARTED) && started.has_workers()
    }

    fn logged(&self, line: &str) -> Option<LoggedRequest> {
        request_log::parse(line)
    }

    /// Reads the configuration that a running httpd reports, or httpd's listing of the file.
    fn effective(
        &self,
        configuration: &Configuration,
        proxy: Option<&RunningProxy>,
        catalog: &Catalog,
    ) -> Result<Effective, SutError> {
        let nofile = proxy.map(RunningProxy::nofile).transpose()?;
        let text = match proxy {
            Some(_) => counters::configuration(configuration)?,
            None => self.dump(configuration)?,
        };
        Ok(effective::read(text, catalog, nofile))
    }

    /// Reads totals of mod_status and of the cache of TLS sessions, and the number of log entries for each of httpd's
    /// numbered errors: httpd reports an exhausted pool nowhere else.
    fn counters(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        counters::counters(configuration)
    }

    fn sampled(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        counters::sampled(configuration)
    }
}

/// Returns the arguments that name the configuration, followed by others.
fn with(configuration: &Configuration, others: &[&str]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        vec!["-d".into(), configuration.prefix().into(), "-f".into(), configuration.file().into()];
    arguments.extend(others.iter().map(OsString::from));
    arguments
}

/// Returns `Apache/2.4.57` from `Server version: Apache/2.4.57 (Debian)`.
fn version_of(words: &str) -> Option<String> {
    let name = word_behind(words, "Server version: ")?;
    name.starts_with("Apache/").then(|| name.to_owned())
}
