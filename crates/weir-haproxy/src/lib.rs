//! HAProxy: finding, configuring, checking and starting it, and reading its state.
//!
//! It runs as operators run it, with a master process (`-W`): the master reads the configuration, opens listeners as
//! the user who started it, and has one worker of many threads, as another user if it may. A reload needs the master
//! too: it starts a new worker and hands over the listeners, so no connection is refused meanwhile.
//!
//! Its threads are as many as the CPUs that it is bound to when it starts, by weir. `cpu-map` is not a parameter of the
//! catalog: it would undo weir's binding.
//!
//! Queries to the running HAProxy go through its runtime API (`stats socket`).

mod counters;
mod effective;
pub mod language;
mod layout;
mod own;
mod request_log;
mod route;
mod running;
mod runtime;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;
use weir_sut::installed::{Installed, ProxyProgram, word_behind};
use weir_sut::proxy::Started;
use weir_sut::{
    Configuration, Effective, Language, LoggedRequest, Proxy, RunningProxy, SutError, Task, admin,
};

/// Path of the master's own socket, below the prefix, as in Debian's service.
const MASTER_SOCKET: &str = "run/master.sock";

/// Name, version and functions of HAProxy.
pub const PROGRAM: ProxyProgram = ProxyProgram {
    kind: ProxyKind::Haproxy,
    names: &["haproxy"],
    version_argument: "-v",
    version_of,
    install: "apt-get install haproxy",
    read_report: None,
    running: &running::RUNNING,
    open: |installed| Ok(Arc::new(Haproxy { installed })),
};

/// An installed HAProxy.
#[derive(Debug)]
pub(crate) struct Haproxy {
    installed: Installed,
}

impl Proxy for Haproxy {
    fn installed(&self) -> &Installed {
        &self.installed
    }

    fn configure(&self, task: &Task<'_>) -> Result<Configuration, SutError> {
        layout::write(self, task)
    }

    /// Returns the arguments of `haproxy -c`, which opens no listener.
    fn checking(&self, configuration: &Configuration) -> Vec<OsString> {
        let mut arguments = vec!["-c".into()];
        arguments.extend(self.arguments(configuration));
        arguments
    }

    fn remarks(&self, said: &str) -> Vec<String> {
        tagged(said, "[WARNING]")
    }

    fn refusal(&self, said: &str) -> String {
        [tagged(said, "[WARNING]"), tagged(said, "[ALERT]")].concat().join("\n")
    }

    fn arguments(&self, configuration: &Configuration) -> Vec<OsString> {
        let socket = format!("unix@{MASTER_SOCKET},mode,600");
        let mut arguments: Vec<OsString> = vec!["-W".into(), "-S".into(), socket.into()];
        // Below the prefix, in which it is started.
        for file in configuration.files() {
            arguments.extend(["-f".into(), file.into()]);
        }
        arguments
    }

    /// Returns true once a worker answers and the master has settled. The master opens the listeners before it has a
    /// worker, and only the worker accepts and answers.
    fn is_ready(&self, started: &Started<'_>) -> bool {
        started.has_workers()
            && worker(started.configuration).is_ok()
            && master_answers(started.configuration)
    }

    fn logged(&self, line: &str) -> Option<LoggedRequest> {
        request_log::parse(line)
    }

    /// Reads the configuration, and what a running proxy reports about itself. HAProxy prints no configuration, so
    /// values that its runtime API does not report are as they were written.
    fn effective(
        &self,
        configuration: &Configuration,
        proxy: Option<&RunningProxy>,
        catalog: &Catalog,
    ) -> Result<Effective, SutError> {
        effective::read(configuration, proxy, catalog)
    }

    fn language(&self) -> Option<&dyn Language> {
        Some(self)
    }

    /// Reads counters of `show info` by their names there, and those of `show stat` as `frontend.req_tot` and
    /// `backend.reuse`, summed over all frontends and all backends. HAProxy counts them whether they are read or not.
    fn counters(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        counters::read(configuration)
    }

    fn sampled(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        counters::sampled(configuration)
    }
}

/// Returns true if the master answers. Once it has a worker, the master becomes another program that only watches the
/// worker (it executes itself again), and signals before that are lost.
fn master_answers(configuration: &Configuration) -> bool {
    let socket = configuration.prefix().join(MASTER_SOCKET);
    // Unlike a worker, it goes on listening after an answer.
    let answer = admin::line_at(configuration, &socket, "show proc;quit");
    answer.is_ok_and(|text| text.contains("worker"))
}

/// Returns the process number of the worker that answers.
fn worker(configuration: &Configuration) -> Result<u64, SutError> {
    let info = admin::line(configuration, "show info")?;
    runtime::info(&info, "Pid").ok_or_else(|| SutError::Unreadable {
        kind: ProxyKind::Haproxy,
        what: "`show info` has no `Pid`".to_owned(),
    })
}

/// Returns `haproxy/2.6.12-1+deb12u4` from `HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/`; the
/// name before 2.4 was `HA-Proxy`.
fn version_of(words: &str) -> Option<String> {
    let [new, old] = ["HAProxy version ", "HA-Proxy version "].map(|it| word_behind(words, it));
    Some(format!("haproxy/{}", new.or(old)?))
}

/// Returns the messages with this tag.
fn tagged(said: &str, tag: &str) -> Vec<String> {
    said.lines().filter(|line| line.starts_with(tag)).map(without_pid).collect()
}

/// Returns a message without the number of the process that wrote it, which differs each time: `[ALERT]    (821) :
/// config : …`.
fn without_pid(line: &str) -> String {
    match line.split_once(')') {
        Some((head, rest)) => {
            let tag = head.split_once('(').map_or(head, |(tag, _)| tag);
            format!("{}{rest}", tag.trim_end())
        }
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_do_not_differ_by_process() {
        let line = "[ALERT]    (821) : config : parsing [conf/haproxy.cfg:4] : no (such) thing";
        assert_eq!(
            without_pid(line),
            "[ALERT] : config : parsing [conf/haproxy.cfg:4] : no (such) thing"
        );
        assert_eq!(without_pid("[WARNING] plain"), "[WARNING] plain");
    }
}
