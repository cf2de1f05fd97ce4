//! Properties of a load's requests by which a user's configuration chooses the part that answers.

use serde::{Deserialize, Serialize};

use super::{OwnConfiguration, ProxyRole, ProxySpec, Study};
use crate::flow::{FlowSpec, LoadSpec};
use crate::load::RequestSpec;

/// Default server name in handshakes and Host fields; it has the same length for every arm, whatever the port.
pub const HOST: &str = "weir.test";

/// Maximum number of different requests of a flow that are looked up: enough for handwritten loads, and few compared
/// with a file of a million.
const MOST_REQUESTS: usize = 64;

/// Properties of a flow by which a configuration chooses the part that answers. Flows with equal properties share one
/// value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskSpec {
    /// Port that the load names. The configuration must have a listener there, whatever it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Port that the study names for the proxy, used for loads that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_port: Option<u16>,
    /// True if the flow uses TLS.
    pub tls: bool,
    /// True if the flow's clients present certificates.
    pub certified: bool,
    /// True if the proxy is expected to serve its own files.
    pub files: bool,
    /// Host name that the load gives, with a port if its Host fields have one; `None`: [`HOST`], and any server may
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Different requests of the flow, in order.
    pub requests: Vec<RequestedSpec>,
}

/// Properties of one request by which a proxy chooses the part that answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestedSpec {
    /// Host field of the request, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Target with its query; slots are not filled in.
    pub target: String,
    /// Method; empty for GET.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// Fields other than Host; slots are not filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// True if status 404 is accepted, so that the target need not exist.
    pub may_miss: bool,
}

impl AskSpec {
    /// Returns the properties of a load's flow for a configuration in this role. Held connections without a port, host
    /// or TLS of their own use the properties of the load's main flow.
    pub fn of(
        load: &LoadSpec,
        flow: &FlowSpec,
        own: &OwnConfiguration,
        role: &ProxyRole,
    ) -> AskSpec {
        let names_nothing = flow.port.is_none() && flow.host.is_none() && flow.tls.is_none();
        let flow = if flow.is_held() && names_nothing { &load.main } else { flow };
        let mut requests: Vec<RequestedSpec> = Vec::new();
        for weighted in &flow.requests {
            let request = &weighted.request;
            let requested = RequestedSpec {
                host: host_field(request).map(str::to_owned),
                target: request.target.clone(),
                method: match &*request.method {
                    "GET" => String::new(),
                    other => other.to_owned(),
                },
                fields: request
                    .fields
                    .iter()
                    .filter(|(name, _)| !name.eq_ignore_ascii_case("host"))
                    .cloned()
                    .collect(),
                may_miss: weighted.expect.as_ref().and_then(|expect| expect.allows(404))
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

    /// Value of Host fields for requests that have none of their own.
    pub fn authority(&self) -> &str {
        self.host.as_deref().unwrap_or_else(|| self.server_name())
    }

    /// Server name in handshakes.
    pub fn server_name(&self) -> &str {
        let of_requests = self.requests.iter().map(|it| it.host.as_deref());
        named(self.host.as_deref(), of_requests)
    }
}

/// Returns the value of Host fields for requests of a flow that have none of their own: the flow's host with its port,
/// or else the server name in its handshakes.
pub fn authority(flow: &FlowSpec) -> &str {
    flow.host.as_deref().unwrap_or_else(|| server_name(flow))
}

/// Returns the server name in a flow's handshakes: the flow's host, or else the one that all its requests have.
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
    let name = in_common.filter(|name| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
    });
    host.map(|host| host.split_once(':').map_or(host, |(name, _)| name)).or(name).unwrap_or(HOST)
}

/// Returns the Host field of a request that has one of its own.
fn host_field(request: &RequestSpec) -> Option<&str> {
    let mut fields = request.fields.iter();
    fields.find(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, host)| host.as_str())
}

impl Study {
    /// Properties of the loads' flows for a proxy with a user's configuration, without duplicates and in order; empty
    /// for any other proxy.
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

    /// Names of the servers that loads connect to, [`HOST`] first, for use in a certificate.
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
