//! What a load asks of a configuration that the user wrote, as far as the configuration chooses by it
//! what answers.

use serde::{Deserialize, Serialize};

use super::{OwnConfiguration, ProxyRole, ProxySpec, Study};
use crate::flow::{FlowSpec, LoadSpec};
use crate::load::RequestSpec;

/// The server's name in handshakes and Host fields where a load names none; the same length for every
/// arm, whatever its port.
pub const HOST: &str = "weir.test";

/// Different requests of a flow that are looked up at most: enough for what people write, and few
/// beside a file of a million.
const MOST_REQUESTS: usize = 64;

/// What a flow asks for. Flows that ask the same have one of these in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskSpec {
    /// The port that the load names. A listener must be there, whatever it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The port that the proxy names, for loads that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_port: Option<u16>,
    /// Whether it asks over TLS.
    pub tls: bool,
    /// Whether its clients show certificates.
    #[serde(default)]
    pub certified: bool,
    /// Whether the proxy is to answer from files of its own.
    pub files: bool,
    /// The name that the load gives, with a port if its Host fields have one; `None`: [`HOST`], and any server may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its different requests, in their order.
    pub requests: Vec<RequestedSpec>,
}

/// One request as far as a proxy chooses by it what answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestedSpec {
    /// Its own Host field, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The target, with its query; slots as they are written.
    pub target: String,
    /// Its method; empty for GET.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// Its other fields; slots as they are written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// Whether 404 is a right answer, so that nothing need be there.
    #[serde(default)]
    pub may_miss: bool,
}

impl AskSpec {
    /// What a flow of a load asks of a configuration in a role. Connections that are held and name nothing go
    /// to where the load's own flow asks.
    pub fn of(
        load: &LoadSpec,
        flow: &FlowSpec,
        own: &OwnConfiguration,
        role: &ProxyRole,
    ) -> AskSpec {
        let names_nothing = flow.port.is_none() && flow.host.is_none() && flow.tls.is_none();
        let flow = match flow.is_held() && names_nothing {
            true => &load.main,
            false => flow,
        };
        let mut requests: Vec<RequestedSpec> = Vec::new();
        for weighted in &flow.requests {
            let request = &weighted.request;
            let is_other = |(name, _): &&(String, String)| !name.eq_ignore_ascii_case("host");
            let requested = RequestedSpec {
                host: host_field(request).map(str::to_owned),
                target: request.target.clone(),
                method: match &*request.method {
                    "GET" => String::new(),
                    other => other.to_owned(),
                },
                fields: request.fields.iter().filter(is_other).cloned().collect(),
                may_miss: weighted
                    .expect
                    .as_ref()
                    .and_then(|expect| expect.allows(404))
                    == Some(true),
            };
            if requests.len() < MOST_REQUESTS && !requests.contains(&requested) {
                requests.push(requested);
            }
        }
        AskSpec {
            port: flow.port,
            proxy_port: own.port,
            tls: flow.tls.is_some(),
            certified: flow.tls.as_ref().is_some_and(|tls| tls.client.is_some()),
            files: matches!(role, ProxyRole::StaticFiles { .. }),
            host: flow.host.clone(),
            requests,
        }
    }

    /// What Host fields have where requests have none of their own.
    pub fn authority(&self) -> &str {
        self.host.as_deref().unwrap_or_else(|| self.server_name())
    }

    /// The name in handshakes.
    pub fn server_name(&self) -> &str {
        let of_requests = self.requests.iter().map(|it| it.host.as_deref());
        named(self.host.as_deref(), of_requests)
    }
}

/// What the Host fields of a flow's requests have that have none of their own: the name that it gives, with its port, or else
/// the name in its handshakes.
pub fn authority(flow: &FlowSpec) -> &str {
    flow.host.as_deref().unwrap_or_else(|| server_name(flow))
}

/// The name in a flow's handshakes: the one that it gives, or else the one that all its requests have.
pub fn server_name(flow: &FlowSpec) -> &str {
    let of_requests = flow.requests.iter().map(|it| host_field(&it.request));
    named(flow.host.as_deref(), of_requests)
}

fn named<'n>(
    host: Option<&'n str>,
    mut of_requests: impl Iterator<Item = Option<&'n str>>,
) -> &'n str {
    let first = of_requests.next().flatten();
    let in_common = first.filter(|first| of_requests.all(|other| other == Some(*first)));
    // One with a port or a slot is no name.
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let in_common = in_common.filter(|name| !name.is_empty() && name.chars().all(is_inner));
    let host = host.map(|host| host.split_once(':').map_or(host, |(name, _)| name));
    host.or(in_common).unwrap_or(HOST)
}

/// The Host field that a request has of its own.
fn host_field(request: &RequestSpec) -> Option<&str> {
    let mut fields = request.fields.iter();
    let own = fields.find(|(name, _)| name.eq_ignore_ascii_case("host"));
    own.map(|(_, host)| host.as_str())
}

impl Study {
    /// What the loads ask of a proxy with a configuration of the user's, each once, in their order; nothing
    /// of another proxy.
    pub fn asks(&self, proxy: &ProxySpec) -> Vec<AskSpec> {
        let Some(own) = &proxy.configuration else {
            return Vec::new();
        };
        let mut asks: Vec<AskSpec> = Vec::new();
        for load in &self.loads {
            for flow in load.flows() {
                let ask = AskSpec::of(load, flow, own, &proxy.role);
                if !asks.contains(&ask) {
                    asks.push(ask);
                }
            }
        }
        asks
    }

    /// The names of the servers that loads ask over TLS, [`HOST`] first: a certificate is for these.
    pub fn server_names(&self) -> Vec<String> {
        let mut names = vec![HOST.to_owned()];
        let flows = self.loads.iter().flat_map(LoadSpec::flows);
        for flow in flows {
            let name = server_name(flow);
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}
