//! nginx: finding, configuring, checking and starting it.
//!
//! Paths in the configuration are relative to the prefix (`nginx -p`).

mod configuration;
mod counters;
mod effective;
pub mod language;
mod own;
mod request_log;
mod running;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;
use weir_sut::installed::{Installed, ProxyProgram, word_behind};
use weir_sut::proxy::{Started, answer};
use weir_sut::{
    Configuration, Effective, Language, LoggedRequest, Proxy, RunningProxy, SutError, Task, admin,
};

use crate::language::directives;
use crate::language::syntax::SyntaxError;

/// Name, version and functions of nginx.
pub const PROGRAM: ProxyProgram = ProxyProgram {
    kind: ProxyKind::Nginx,
    names: &["nginx"],
    version_argument: "-V",
    version_of,
    install: "apt-get install nginx-light",
    read_report: Some(|text, meeting, catalog| {
        let route_match = own::match_route(&text, meeting)?;
        let tree = directives(&text)?;
        Ok(effective::read(text, &tree, vec![route_match], catalog, None))
    }),
    running: &running::RUNNING,
    open: |installed| Ok(Arc::new(Nginx { installed })),
};

impl From<SyntaxError> for SutError {
    fn from(error: SyntaxError) -> SutError {
        SutError::NotReadBack { kind: ProxyKind::Nginx, words: error.to_string() }
    }
}

/// An installed nginx.
#[derive(Debug)]
pub(crate) struct Nginx {
    installed: Installed,
}

impl Nginx {
    /// Returns true if nginx was built with counters (ngx_http_stub_status_module).
    fn tells_status(&self) -> bool {
        self.installed.version_output.contains("--with-http_stub_status_module")
    }

    fn is_at_least(&self, wanted: [u32; 3]) -> bool {
        let digits = self.installed.version.rsplit('/').next();
        let mut parts =
            digits.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        std::array::from_fn(|_| parts.next().unwrap_or(0)) >= wanted
    }

    /// Returns the arguments that make nginx check or print a configuration and exit.
    fn with(&self, option: &str, configuration: &Configuration) -> Vec<OsString> {
        let mut arguments = vec![option.into()];
        arguments.extend(self.arguments(configuration));
        arguments
    }
}

impl Proxy for Nginx {
    fn installed(&self) -> &Installed {
        &self.installed
    }

    fn configure(&self, task: &Task<'_>) -> Result<Configuration, SutError> {
        configuration::write(self, task)
    }

    fn checking(&self, configuration: &Configuration) -> Vec<OsString> {
        self.with("-t", configuration)
    }

    fn remarks(&self, said: &str) -> Vec<String> {
        said.lines().filter(|line| line.contains(": [")).map(str::to_owned).collect()
    }

    fn arguments(&self, configuration: &Configuration) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            "-p".into(),
            configuration.prefix().into(),
            "-c".into(),
            configuration.file().into(),
        ];
        // Until it has read its configuration nginx writes to the log it was built with, often one
        // that is not for everybody to write. Since 1.19.5 that can be changed.
        if self.is_at_least([1, 19, 5]) {
            arguments.extend(["-e".into(), configuration.error_log().into()]);
        }
        arguments
    }

    fn is_ready(&self, started: &Started<'_>) -> bool {
        if started.configuration.own.is_some() {
            own::has_workers(started)
        } else {
            started.has_workers()
        }
    }

    fn is_passing(&self, pid: u32) -> bool {
        own::is_cache_loader(pid)
    }

    fn logged(&self, line: &str) -> Option<LoggedRequest> {
        request_log::parse(line)
    }

    /// Reads the output of `nginx -T`.
    fn effective(
        &self,
        configuration: &Configuration,
        proxy: Option<&RunningProxy>,
        catalog: &Catalog,
    ) -> Result<Effective, SutError> {
        let output = answer(self, configuration, self.with("-T", configuration))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let nofile = proxy.map(RunningProxy::nofile).transpose()?;
        let tree = if configuration.own.is_some() {
            own::tree(configuration)?
        } else {
            directives(&text)?
        };
        Ok(effective::read(text, &tree, configuration.route_matches(), catalog, nofile))
    }

    fn language(&self) -> Option<&dyn Language> {
        Some(self)
    }

    /// Reads the counters of stub_status, which include the request for them.
    fn counters(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        let Some(text) = self.status(configuration)? else {
            return Ok(BTreeMap::new());
        };
        counters::counters(&text).ok_or_else(|| SutError::Unreadable {
            kind: ProxyKind::Nginx,
            what: format!("`{}` is not the output of stub_status", text.trim()),
        })
    }

    fn sampled(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        let text = self.status(configuration)?.unwrap_or_default();
        Ok(counters::sampled(&text))
    }
}

impl Nginx {
    /// Returns the answer of stub_status; `None` if this nginx or a user's configuration has none.
    fn status(&self, configuration: &Configuration) -> Result<Option<String>, SutError> {
        if self.tells_status() && configuration.own.is_none() {
            admin::get(configuration, "/").map(Some)
        } else {
            Ok(None)
        }
    }
}

/// Returns `nginx/1.22.1` from `nginx version: nginx/1.22.1`, and similar names of related programs.
fn version_of(words: &str) -> Option<String> {
    word_behind(words, "nginx version: ").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_nginx_and_its_relatives_are_told_apart_by_number() {
        for (version, expected) in [
            ("nginx/1.18.0", false),
            ("nginx/1.19.4", false),
            ("nginx/1.19.5", true),
            ("nginx/1.22.1", true),
            ("nginx/2.0", true),
            ("nginx/unknown", false),
        ] {
            let installed = Installed {
                kind: ProxyKind::Nginx,
                program: "nginx".into(),
                version: version.to_owned(),
                version_output: String::new(),
            };
            assert_eq!(Nginx { installed }.is_at_least([1, 19, 5]), expected, "{version}");
        }
    }
}
