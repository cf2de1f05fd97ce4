//! The proxy under test: its program, role, configuration and start.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Arm, ArmRole, Compare, Settings, Study};
use crate::flow::FlowSpec;

/// The proxy under test, with its settings before any arm changes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProxySpec {
    /// Program of the proxy.
    pub kind: ProxyKind,
    /// Path of the executable; `None`: the one found on PATH.
    pub executable: Option<PathBuf>,
    /// Role of the proxy.
    pub role: ProxyRole,
    /// Settings of the baseline: the packaged defaults with the study's own on top. With a user's configuration: the
    /// changes to it in every arm.
    pub settings: Settings,
    /// The user's own configuration, of which the arms use copies; `None`: weir writes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<OwnConfiguration>,
    /// Address of a proxy that weir does not start, because it is of [`ProxyKind::External`] or has a controller;
    /// `None` if weir starts the proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSpec>,
    /// Cluster controller that configures the proxy, if weir is to change its settings; `external` has the proxy's
    /// address then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerSpec>,
}

impl ProxySpec {
    /// Returns true if weir starts the proxy.
    pub fn is_started(&self) -> bool {
        self.kind.is_started() && self.external.is_none()
    }
}

impl Study {
    /// Returns the proxy and its cluster controller; `None` if it has none.
    pub fn controlled(&self) -> Option<(&ProxySpec, &ControllerSpec)> {
        Some((&self.proxy, self.proxy.controller.as_ref()?))
    }

    /// Returns true if all arms use one proxy by turns, configured by a controller.
    pub fn is_in_turn(&self) -> bool {
        let controlled = self.controlled();
        controlled.is_some_and(|(_, controller)| controller.beside.is_empty())
    }
}

impl Study {
    /// Returns the baseline and the only change if the study asks for a verdict on all figures.
    pub fn overall_pair(&self) -> Option<[&Arm; 2]> {
        let change = self.arms.iter().find(|arm| arm.role == ArmRole::Change)?;
        (self.compare == Compare::Overall).then(|| [&self.arms[change.against], change])
    }
}

impl ControllerSpec {
    /// Iterates over all instances of the controller, the first one first.
    pub fn instances(&self) -> impl Iterator<Item = &InstanceSpec> {
        std::iter::once(&self.first).chain(self.beside.iter().map(|one| &one.instance))
    }
}

/// A controller in a Kubernetes cluster, which configures a proxy from the content of objects. weir changes the objects
/// for an arm, and restores them afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControllerSpec {
    /// Type of the controller: the name of a file in `controllers/`.
    pub is: String,
    /// First instance that the study names.
    #[serde(flatten)]
    pub first: InstanceSpec,
    /// Further instances, each with a proxy of its own, so that arms run side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideSpec>,
    /// Maximum time until a setting is in force; `None`: the maximum for this type of controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
    /// Way to set kernel settings for the proxy's pods.
    #[serde(default, skip_serializing_if = "SysctlMeans::is_pods")]
    pub sysctls: SysctlMeans,
}

/// An instance of a controller: the location of its settings, and the way to read them back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstanceSpec {
    /// Namespace of objects that do not name one.
    pub namespace: String,
    /// Objects with the settings, `configmap/NAME` or `configmap/NAMESPACE/NAME`, by their names in the file in
    /// `controllers/`.
    pub objects: BTreeMap<String, String>,
    /// Command on weir's own host that prints the proxy's current settings; empty: they are read in the pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Command on weir's own host that restarts the controller if it only reads an object at its start; empty: its pods
    /// are restarted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart: Vec<String>,
}

/// Way to set kernel settings for pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SysctlMeans {
    /// The pods' securityContext names the settings, and the kubelet sets those that it allows.
    #[default]
    Pods,
    /// A privileged init container of the pods sets them in the pods' network namespace.
    InitContainer,
    /// The settings are made on the nodes of the pods, and affect everything that runs there.
    Node,
}

impl SysctlMeans {
    /// All values with their names in studies.
    pub const NAMES: [(&str, SysctlMeans); 3] = [
        ("pods", SysctlMeans::Pods),
        ("init-container", SysctlMeans::InitContainer),
        ("node", SysctlMeans::Node),
    ];

    /// Returns true for the default.
    pub fn is_pods(&self) -> bool {
        *self == SysctlMeans::Pods
    }
}

/// A further instance of a controller, with a proxy of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BesideSpec {
    /// Addresses of the instance's proxy.
    pub at: ExternalSpec,
    /// The controller instance.
    #[serde(flatten)]
    pub instance: InstanceSpec,
}

/// A configuration that the user wrote. It is read on the proxies' host and never modified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnConfiguration {
    /// Path of the main file.
    pub file: PathBuf,
    /// Port of the listener to use, as in the configuration; `None`: the first without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A proxy that runs independently of weir, which sends it requests and changes nothing about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExternalSpec {
    /// Address of the proxy, with or without TLS as the load says.
    pub address: SocketAddr,
    /// Further addresses of the proxy; connections go to all of them in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<SocketAddr>,
    /// The user's name for the proxy if it is more than an address: a URL, or a name and a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<String>,
    /// Requests to it, where they differ from those of the loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<OwnRequests>,
}

/// Host and target of the requests to one server, in place of those of the loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnRequests {
    /// Server name in handshakes, without a port; `None`: that of the loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Value of Host fields, with a port unless it is the usual one.
    pub authority: String,
    /// Target of the requests; `None`: those of the loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl OwnRequests {
    /// Returns a load's flow as it is sent to this server.
    pub fn flow(&self, flow: &FlowSpec) -> FlowSpec {
        let mut flow = flow.clone();
        flow.host = Some(self.authority.clone());
        if let (Some(tls), Some(name)) = (&mut flow.tls, &self.server_name) {
            tls.server_name = Some(name.clone());
        }
        if let Some(target) = &self.target {
            flow.requests.iter_mut().for_each(|one| one.request.target.clone_from(target));
        }
        flow
    }
}

impl ExternalSpec {
    /// Creates a proxy that is known by its address alone.
    pub fn at(address: SocketAddr) -> ExternalSpec {
        ExternalSpec { address, also: Vec::new(), named: None, requests: None }
    }

    /// Iterates over all addresses, the first one first.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.address).chain(self.also.iter().copied())
    }
}

/// Why no server can be at an address; `None`: there can.
pub fn no_server_at(address: &SocketAddr) -> Option<String> {
    let ip = address.ip().to_canonical();
    if address.port() == 0 {
        Some(format!("{address} has port 0, which no server has"))
    } else if ip.is_multicast() {
        Some(format!("{ip} is a multicast address, which no server has"))
    } else if ip == Ipv4Addr::BROADCAST {
        Some(format!("{ip} is the broadcast address, which no server has"))
    } else {
        None
    }
}

impl fmt::Display for ExternalSpec {
    /// Writes for example `https://shop.example/ (192.0.2.7:443)`, or the address alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses().map(|address| address.to_string()).collect();
        let listed = addresses.join(", ");
        match &self.named {
            Some(named) => write!(f, "{named} ({listed})"),
            None => f.write_str(&listed),
        }
    }
}

/// A way to start a proxy's process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LauncherSpec {
    /// Program and arguments in front of the proxy's command line: `onload --profile=latency`. Empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefix: Vec<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Libraries that the dynamic linker loads before all others (LD_PRELOAD in ld.so(8)), in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preload: Vec<PathBuf>,
}

/// Passes the list of all proxies that weir starts to the macro `$each`: variant, name, title, and whether the proxy
/// can serve its own files. The name is used in studies and files; the proxy's crate is called `weir-` and the
/// name (`weir-proxies` imports it under the name alone), and its file of rows in `parameters/` has the name too.
#[macro_export]
macro_rules! proxies {
    ($each:ident) => {
        $each! {
            Nginx nginx "nginx" true;
            Haproxy haproxy "HAProxy" false;
            Envoy envoy "Envoy" false;
            Caddy caddy "Caddy" true;
            Httpd httpd "Apache httpd" true;
        }
    };
}

macro_rules! kinds {
    ($($variant:ident $name:ident $title:literal $files:literal;)*) => {
        /// Kind of a proxy that weir can use.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum ProxyKind {
            $(#[doc = $title] $variant,)*
            /// A proxy that runs independently of weir.
            External,
        }

        impl ProxyKind {
            /// Returns the kind of a proxy by the name of its process (comm, proc_pid_comm(5)); Debian calls httpd
            /// apache2.
            pub fn of_process(name: &str) -> Option<ProxyKind> {
                let program = if name == "apache2" { "httpd" } else { name };
                ProxyKind::started().find(|kind| kind.name() == program)
            }

            /// All kinds of proxies.
            pub const ALL: [ProxyKind; [$($title),*].len() + 1] =
                [$(ProxyKind::$variant,)* ProxyKind::External];

            /// Name in studies and files: `haproxy`.
            pub fn name(self) -> &'static str {
                match self {
                    $(ProxyKind::$variant => stringify!($name),)*
                    ProxyKind::External => "external",
                }
            }

            /// Name in sentences: `HAProxy`.
            pub fn title(self) -> &'static str {
                match self {
                    $(ProxyKind::$variant => $title,)*
                    ProxyKind::External => "the proxy",
                }
            }

            /// Returns true if the proxy can serve its own files.
            pub fn serves_files(self) -> bool {
                match self {
                    $(ProxyKind::$variant => $files,)*
                    ProxyKind::External => false,
                }
            }
        }
    };
}

proxies!(kinds);

impl ProxyKind {
    /// Iterates over the kinds that weir starts.
    pub fn started() -> impl Iterator<Item = ProxyKind> {
        ProxyKind::ALL.into_iter().filter(|kind| kind.is_started())
    }

    /// Returns true if weir starts this kind.
    pub fn is_started(self) -> bool {
        self != ProxyKind::External
    }
}

/// Role of the proxy in serving a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProxyRole {
    /// The proxy passes requests on to the origin server.
    ReverseProxy,
    /// The proxy serves its own files.
    StaticFiles {
        /// Size of the file in bytes.
        size: u64,
    },
}
