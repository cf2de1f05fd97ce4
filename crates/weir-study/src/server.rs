//! Studies of a server that weir does not start: one arm, one load, and limits within which its capacity is searched.

use std::net::SocketAddr;
use std::time::Duration;

use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::limit::Limit;
use weir_model::quantity::format_duration;
use weir_model::request::StatusSpec;
use weir_model::study::{
    Arm, ArmRole, BlockSpec, Compare, CpuRoles, ExternalSpec, LoadSpec, NetworkSpec, Objective,
    OriginSpec, ProxyKind, ProxyRole, ProxySpec, SearchSpec, Settings, Study, is_arm_name,
};

/// Length of the load, which a search divides into trials of its own.
const LENGTH: Duration = Duration::from_secs(60);

/// A server whose capacity is searched.
#[derive(Debug, Clone)]
pub struct ServerSearch {
    /// URL of the server, as the user typed it.
    pub url: String,
    /// Host of the URL, without a port.
    pub host: String,
    /// Host and port for the Host field.
    pub authority: String,
    /// First address of the server.
    pub address: SocketAddr,
    /// Further addresses of the server.
    pub also: Vec<SocketAddr>,
    /// Requests to send; the search sets their rate.
    pub flow: FlowSpec,
    /// Limits that the responses have to keep; at least one.
    pub limits: Vec<Limit>,
    /// CPUs of the roles; `None`: the lab shares them out.
    pub cpus: Option<CpuRoles>,
    /// Largest number of connections that the search may open; `None`: those of `flow`.
    pub most_connections: Option<u32>,
}

/// A limit that no response can be seen to break.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("requests that take longer than {} fail, so no response can take {}", format_duration(self.timeout), format_duration(self.limit))]
pub struct UnseenLimit {
    /// The longest limit on a time.
    pub limit: Duration,
    /// Timeout of a response, which is shorter.
    pub timeout: Duration,
}

/// Checks that the timeout is long enough to see a response that breaks the longest limit.
///
/// # Errors
/// It is not.
pub fn check_timeout(limits: &[Limit], timeout: Duration) -> Result<(), UnseenLimit> {
    match limits.iter().filter_map(Limit::time).max().filter(|limit| *limit > timeout) {
        Some(limit) => Err(UnseenLimit { limit, timeout }),
        None => Ok(()),
    }
}

impl ServerSearch {
    /// Makes the study.
    ///
    /// # Errors
    /// No response could be seen to break a limit.
    pub fn study(self) -> Result<Study, UnseenLimit> {
        check_timeout(&self.limits, self.flow.timeout)?;
        let limits: Vec<String> = self.limits.iter().map(Limit::to_string).collect();
        let external =
            ExternalSpec { address: self.address, also: self.also, named: Some(self.url.clone()) };
        Ok(Study {
            name: study_name(&self.host),
            title: format!("Capacity of {}", self.url),
            question: format!(
                "How many requests per second does {} carry within {}?",
                self.url,
                limits.join(", ")
            ),
            proxy: ProxySpec {
                kind: ProxyKind::External,
                executable: None,
                role: ProxyRole::ReverseProxy,
                settings: Settings::new(),
                configuration: None,
                external: Some(external),
                controller: None,
            },
            origin: OriginSpec::default(),
            loads: vec![LoadSpec::new(
                "requests",
                expecting(self.flow, &self.authority, &self.host),
                LENGTH,
            )],
            arms: vec![Arm {
                name: arm_name(&self.authority),
                role: ArmRole::Baseline,
                changes: Settings::new(),
                against: 0,
                settings: Settings::new(),
                proxy: None,
                cpus: None,
                taken: None,
            }],
            launchers: Default::default(),
            compare: Compare::Against,
            blocks: BlockSpec { instances: 1, ..BlockSpec::default() },
            objective: Objective::default(),
            capacity: self.limits,
            search: SearchSpec { most_connections: self.most_connections, ..SearchSpec::default() },
            until: Default::default(),
            budget: None,
            cpus: self.cpus,
            network: NetworkSpec::default(),
            published: None,
            left_out: Vec::new(),
            scale: None,
        })
    }
}

/// Completes the requests. Unless a status is expected already, only 2xx counts, so that redirects and error pages,
/// which cost a server little, are not taken for its capacity.
fn expecting(flow: FlowSpec, authority: &str, host: &str) -> FlowSpec {
    let mut flow =
        FlowSpec { arrivals: ArrivalsSpec::Closed, host: Some(authority.to_owned()), ..flow };
    for one in &mut flow.requests {
        let expect = one.expect.get_or_insert_default();
        if expect.status.is_empty() {
            expect.status.push(StatusSpec::Class(2));
        }
    }
    if let Some(tls) = &mut flow.tls {
        // The Host field may have a port, and no certificate is for one.
        tls.server_name.get_or_insert_with(|| host.to_owned());
    }
    flow
}

/// Returns a study name made from a host's name: small letters, digits and dashes.
fn study_name(host: &str) -> String {
    let name: String = host
        .chars()
        .take(60)
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    format!("capacity-{}", name.trim_matches('-'))
}

/// Returns the arm's name: the authority, or `server` if that cannot be a name, since arms name folders as well.
fn arm_name(authority: &str) -> String {
    let name: String = authority.chars().take(200).collect();
    if is_arm_name(&name) { name } else { "server".to_owned() }
}
