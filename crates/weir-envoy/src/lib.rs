//! Envoy: finding, configuring, checking and starting it, and reading its state.
//!
//! Its configuration is one static document, `conf/envoy.json`, which describes everything that it does. Paths in the
//! document are relative: Envoy is started in the prefix. It is queried over its administration interface, HTTP on a
//! unix socket below the prefix, which its main thread serves; workers, who carry the requests, are not involved.
//!
//! Requests go to the origin server with their target and their Host field as they came. Additions that Envoy makes by
//! default stay on: `x-request-id`, `x-forwarded-proto` and `x-envoy-expected-rq-timeout-ms` in requests, `server`,
//! `date` if there is none and `x-envoy-upstream-service-time` in responses.

mod counters;
mod document;
mod effective;
pub mod language;
mod layout;
mod own;
mod reported;
mod request_log;
mod running;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;
use weir_sut::installed::{Installed, ProxyProgram};
use weir_sut::proxy::{Started, check};
use weir_sut::{
    Configuration, Effective, Language, LoggedRequest, Proxy, RunningProxy, SutError, Task, admin,
};

/// Mark of a warning in Envoy's log, behind time and thread.
const WARNING: &str = "[warning]";

/// Name, version and functions of Envoy.
pub const PROGRAM: ProxyProgram = ProxyProgram {
    kind: ProxyKind::Envoy,
    names: &["envoy"],
    version_argument: "--version",
    version_of,
    install: "scripts/setup proxies, or see envoyproxy.io",
    read_report: Some(effective::read_report),
    running: &running::RUNNING,
    open: |installed| Ok(Arc::new(Envoy { installed })),
};

/// An installed Envoy.
#[derive(Debug)]
pub(crate) struct Envoy {
    installed: Installed,
}

impl Proxy for Envoy {
    fn installed(&self) -> &Installed {
        &self.installed
    }

    fn configure(&self, task: &Task<'_>) -> Result<Configuration, SutError> {
        layout::write(self, task)
    }

    fn language(&self) -> Option<&dyn Language> {
        Some(self)
    }

    /// Returns the arguments of `envoy --mode validate`. Listeners, clusters and certificates are made as for a start;
    /// no port is bound.
    fn checking(&self, configuration: &Configuration) -> Vec<OsString> {
        let mut arguments = vec!["--mode".into(), "validate".into()];
        arguments.extend(self.arguments(configuration));
        arguments
    }

    /// Returns Envoy's warnings without time and thread, which differ each time.
    fn remarks(&self, said: &str) -> Vec<String> {
        said.lines().filter_map(|line| Some(line[line.find(WARNING)?..].to_owned())).collect()
    }

    fn refusal(&self, said: &str) -> String {
        refusal(said)
    }

    fn arguments(&self, configuration: &Configuration) -> Vec<OsString> {
        let path = configuration.file();
        let file = path.strip_prefix(configuration.prefix()).unwrap_or(&path);
        vec![
            "--config-path".into(),
            file.into(),
            // Two of them would meet in shared memory and at an abstract socket, outside the prefix.
            "--disable-hot-restart".into(),
            // Below that it lists its extensions at each start; nothing is logged by request.
            "--log-level".into(),
            "warning".into(),
        ]
    }

    /// Returns true if Envoy reports LIVE: all listeners are there and all workers run.
    fn is_ready(&self, started: &Started<'_>) -> bool {
        admin::get(started.configuration, "/ready").is_ok_and(|state| state.trim() == "LIVE")
    }

    fn logged(&self, line: &str) -> Option<LoggedRequest> {
        request_log::parse(line)
    }

    fn effective(
        &self,
        configuration: &Configuration,
        proxy: Option<&RunningProxy>,
        catalog: &Catalog,
    ) -> Result<Effective, SutError> {
        match proxy {
            Some(proxy) => effective::of_process(configuration, proxy, catalog),
            None => {
                check(self, configuration)?;
                effective::of_file(configuration, catalog)
            }
        }
    }

    fn counters(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        counters::read(configuration)
    }

    fn sampled(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        counters::sampled(configuration)
    }

    fn shares_ports(&self, _configuration: &Configuration) -> bool {
        true
    }

    /// Returns false for lines of the document, which Envoy prints in full behind the description of an error.
    fn is_telling(&self, line: &str) -> bool {
        !line.starts_with([' ', '{', '}', '[', ']']) || line.starts_with("[2")
    }
}

/// Returns `envoy/1.40.0` from `envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL`.
fn version_of(words: &str) -> Option<String> {
    let line = words.lines().find(|line| line.contains("envoy"))?;
    let (_, build) = line.split_once("version: ")?;
    let number = build.split('/').nth(1)?;
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    is_number.then(|| format!("envoy/{number}"))
}

/// Returns the message of `--mode validate`, without the document that follows some refusals. Blanks are normalised
/// too: protobuf inserts some at random, so that no program relies on its wording.
fn refusal(said: &str) -> String {
    let lines = said
        .lines()
        .filter(|line| !line.starts_with([' ', '{', '}']) && !line.trim().is_empty())
        .map(|line| {
            line.strip_suffix('{').unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" ")
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_shown_without_the_document() {
        let output =
            "[t][1][critical][main] cannot do  it   (duration   must): {\n \"admin\": {\n }\n}\n";
        let expected = "[t][1][critical][main] cannot do it (duration must):";
        assert_eq!(refusal(output), expected);
        let installed = Installed {
            kind: ProxyKind::Envoy,
            program: "envoy".into(),
            version: "envoy/1.40.0".to_owned(),
            version_output: String::new(),
        };
        let proxy = (PROGRAM.open)(installed).unwrap();
        let line = "[2026-11-21 19:43:18.799][27002][warning][main] [s.cc:1] no limit";
        assert_eq!(proxy.remarks(line), ["[warning][main] [s.cc:1] no limit"]);
        let none = proxy.remarks("[2026-11-21][1][info][main] x");
        assert_eq!(none, Vec::<String>::new());
    }
}
