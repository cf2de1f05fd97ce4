//! Checks that an arm answers, and correctly, before anything is measured.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_agent::AgentError;
use weir_agent::message::{Bytes, FlowJob, OnceJob};
use weir_hosts::Host;
use weir_model::study::{LoadSpec, OriginSpec, ProxyRole, ProxySpec};

use crate::LabError;

/// Time limit for an arm's first answer.
const WITHIN: Duration = Duration::from_secs(10);

/// A first request to an arm, and the data that determine the correct answer.
pub(crate) struct FirstAnswer<'a> {
    pub(crate) arm: &'a str,
    pub(crate) proxy: &'a ProxySpec,
    pub(crate) origin: &'a OriginSpec,
    pub(crate) load: &'a LoadSpec,
    /// Address of the listener that gets the request.
    pub(crate) at: SocketAddr,
    /// True if the request is sent over TLS.
    pub(crate) tls: bool,
    /// Set when the user stops the run.
    pub(crate) interrupted: &'a AtomicBool,
}

/// Returns true if a status redirects the client (RFC 9110 §15.4).
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Explains a redirect; empty for other statuses.
fn redirect(status: u16) -> &'static str {
    if is_redirect(status) {
        ", a redirect, which weir does not follow: name what it leads to, or write `expect: status=3xx` if it is meant"
    } else {
        ""
    }
}

impl FirstAnswer<'_> {
    /// Sends the load's request once, from the generator's host. Gives a remark if the answer is right and still may not be
    /// what was meant: a redirect.
    ///
    /// # Errors
    /// There was no answer, or it has another status than it should, or the user has stopped the run.
    pub(crate) fn ask(
        &self,
        generator: &Host,
        flow: FlowJob,
        files: BTreeMap<String, Bytes>,
    ) -> Result<Option<String>, LabError> {
        let job = OnceJob {
            address: self.at,
            tls: self.tls,
            flow: Box::new(flow),
            files,
            timeout: WITHIN,
        };
        let load = &self.load.name;
        let status = match generator.ask_until(job, Some(self.interrupted)) {
            Ok(status) => status,
            Err(_) if self.interrupted.load(Ordering::Relaxed) => {
                return Err(LabError::Interrupted);
            }
            Err(AgentError::Failed(error)) => {
                let at = self.at;
                return Err(self.wrong(format!("{error} (asked {at} under load `{load}`)")));
            }
            Err(error) => return Err(error.into()),
        };
        let expected = self.expected(status);
        let expect = self.load.expect();
        match expect.and_then(|expect| Some((expect, expect.allows(status)?))) {
            Some((_, true)) => Ok(None),
            Some((expect, false)) => Err(LabError::Unexpected {
                arm: self.arm.to_owned(),
                load: load.clone(),
                status,
                expected: expect.status_words(),
                is_started: self.proxy.is_started(),
            }),
            None if status != expected => Err(self.wrong(format!(
                "status {status} instead of {expected}, under load `{load}`{}",
                redirect(status)
            ))),
            None if redirect(status).is_empty() => Ok(None),
            None => Ok(Some(format!("{load}: status {status}{}", redirect(status)))),
        }
    }

    fn expected(&self, status: u16) -> u16 {
        let is_started = self.proxy.is_started();
        let is_others = !is_started || self.origin.address.is_some();
        match self.proxy.role {
            // What somebody else's server answers is known to somebody else.
            _ if is_others && (200..400).contains(&status) => status,
            ProxyRole::ReverseProxy if is_started => self.origin.status,
            ProxyRole::ReverseProxy | ProxyRole::StaticFiles { .. } => 200,
        }
    }

    fn wrong(&self, what: String) -> LabError {
        LabError::Answer { arm: self.arm.to_owned(), what, is_started: self.proxy.is_started() }
    }
}
