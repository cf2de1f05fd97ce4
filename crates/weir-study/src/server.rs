//! Studies of servers that weir does not start: the capacity of one, and the comparison of two.

use std::net::SocketAddr;
use std::time::Duration;

use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::limit::Limit;
use weir_model::quantity::format_duration;
use weir_model::request::StatusSpec;
use weir_model::study::{
    Arm, ArmRole, BlockSpec, Compare, CpuRoles, ExternalSpec, LoadSpec, NetworkSpec, Objective,
    OriginSpec, OwnRequests, ProxyKind, ProxyRole, ProxySpec, SearchSpec, Settings, Study,
    is_arm_name,
};

/// Length of the load, which a search divides into trials of its own.
const LENGTH: Duration = Duration::from_secs(60);

/// Length of each load of a comparison, unless a budget says another.
pub(crate) const LENGTH_OF_COMPARISON: Duration = Duration::from_secs(20);

/// Largest share of what the slower of two servers completed in the closed loop, at which their response times are
/// compared.
pub(crate) const SHARE: f64 = 0.6;

/// A server by its URL.
#[derive(Debug, Clone)]
pub struct NamedServer {
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
}

/// A server whose capacity is searched.
#[derive(Debug, Clone)]
pub struct ServerSearch {
    /// The server.
    pub server: NamedServer,
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
        let server = self.server;
        let flow = expecting(self.flow, &server);
        Ok(Study {
            question: format!(
                "How many requests per second does {} carry within {}?",
                server.url,
                limits.join(", ")
            ),
            loads: vec![LoadSpec::new("requests", flow, LENGTH)],
            arms: vec![arm(arm_name(&server.authority), ArmRole::Baseline, None)],
            capacity: self.limits,
            search: SearchSpec { most_connections: self.most_connections, ..SearchSpec::default() },
            cpus: self.cpus,
            ..of_server(
                study_name("capacity", &server.host),
                format!("Capacity of {}", server.url),
                server,
            )
        })
    }
}

/// Two servers that are compared.
#[derive(Debug, Clone)]
pub struct ServerPair {
    /// The server that is known, and the one that is compared with it.
    pub servers: [NamedServer; 2],
    /// Target of the second server's requests, if it is another.
    pub other_target: Option<String>,
    /// Requests to send, as the first server gets them.
    pub flow: FlowSpec,
    /// Rate at which response times are compared, requests per second; `None`: one that both carry.
    pub rate: Option<f64>,
    /// CPUs of the roles; `None`: the lab shares them out.
    pub cpus: Option<CpuRoles>,
}

impl ServerPair {
    /// Makes the study: a closed loop for what both carry, and an open loop for their response times at one rate.
    pub fn study(self) -> Study {
        let [old, new] = self.servers;
        let is_name_given = self.flow.tls.as_ref().is_some_and(|tls| tls.server_name.is_some());
        let flow = expecting(self.flow, &old);
        let open = FlowSpec {
            arrivals: self
                .rate
                .map_or(ArrivalsSpec::UpToShareOfSlowest(SHARE), ArrivalsSpec::Constant),
            ..flow.clone()
        };
        let is_asked_alike = new.authority == old.authority && self.other_target.is_none();
        let requests = (!is_asked_alike).then(|| OwnRequests {
            server_name: (!is_name_given).then(|| new.host.clone()),
            authority: new.authority.clone(),
            target: self.other_target,
        });
        let (title, question) = (
            format!("{} and {}", old.url, new.url),
            format!("Is {} worse than {}?", new.url, old.url),
        );
        let changed = ExternalSpec { requests, ..external(new) };
        Study {
            question,
            loads: vec![
                LoadSpec::new("closed", flow, LENGTH_OF_COMPARISON),
                LoadSpec::new("open", open, LENGTH_OF_COMPARISON),
            ],
            arms: vec![
                arm("old".to_owned(), ArmRole::Baseline, None),
                arm("new".to_owned(), ArmRole::Change, Some(proxy(changed))),
            ],
            cpus: self.cpus,
            compare: Compare::Overall,
            ..of_server(study_name("compare", &old.host), title, old)
        }
    }
}

/// Returns a study of a server without loads and arms.
fn of_server(name: String, title: String, server: NamedServer) -> Study {
    Study {
        name,
        title,
        question: String::new(),
        proxy: proxy(external(server)),
        origin: OriginSpec::default(),
        loads: Vec::new(),
        arms: Vec::new(),
        launchers: Default::default(),
        compare: Compare::Against,
        blocks: BlockSpec { instances: 1, ..BlockSpec::default() },
        objective: Objective::default(),
        capacity: Vec::new(),
        search: SearchSpec::default(),
        until: Default::default(),
        budget: None,
        cpus: None,
        network: NetworkSpec::default(),
        published: None,
        left_out: Vec::new(),
        scale: None,
    }
}

fn external(server: NamedServer) -> ExternalSpec {
    ExternalSpec { also: server.also, named: Some(server.url), ..ExternalSpec::at(server.address) }
}

fn proxy(external: ExternalSpec) -> ProxySpec {
    ProxySpec {
        kind: ProxyKind::External,
        executable: None,
        role: ProxyRole::ReverseProxy,
        settings: Settings::new(),
        configuration: None,
        external: Some(external),
        controller: None,
    }
}

fn arm(name: String, role: ArmRole, proxy: Option<ProxySpec>) -> Arm {
    Arm {
        name,
        role,
        changes: Settings::new(),
        against: 0,
        settings: Settings::new(),
        proxy: proxy.map(Box::new),
        cpus: None,
        taken: None,
    }
}

/// Completes the requests. Unless a status is expected already, only 2xx counts, so that redirects and error pages,
/// which cost a server little, are not taken for its capacity.
pub(crate) fn expecting_success(mut flow: FlowSpec) -> FlowSpec {
    for one in &mut flow.requests {
        let expect = one.expect.get_or_insert_default();
        if expect.status.is_empty() {
            expect.status.push(StatusSpec::Class(2));
        }
    }
    flow
}

/// Completes the requests to a server.
fn expecting(flow: FlowSpec, server: &NamedServer) -> FlowSpec {
    let host = Some(server.authority.clone());
    let mut flow = expecting_success(FlowSpec { arrivals: ArrivalsSpec::Closed, host, ..flow });
    if let Some(tls) = &mut flow.tls {
        // The Host field may have a port, and no certificate is for one.
        tls.server_name.get_or_insert_with(|| server.host.clone());
    }
    flow
}

/// Returns a study name made from a word and a host's name: small letters, digits and dashes.
fn study_name(word: &str, host: &str) -> String {
    let name: String = host
        .chars()
        .take(60)
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    format!("{word}-{}", name.trim_matches('-'))
}

/// Returns the arm's name: the authority, or `server` if that cannot be a name, since arms name folders as well.
fn arm_name(authority: &str) -> String {
    let name: String = authority.chars().take(200).collect();
    if is_arm_name(&name) { name } else { "server".to_owned() }
}
